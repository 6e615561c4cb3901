//! Benchmarks: each prints one line that a machine can read.
//!
//! A figure is the median of several rounds; where there is a peer, rounds of both are
//! interleaved, and the ratio is the claim. Timings are CPU time of this machine: compare ratios,
//! not machines.
#![deny(missing_docs)]

mod line;
mod segment;
mod timing;
mod token;

use kit::clock::Clock;

pub use line::Line;

/// The names that [`run`] takes.
pub const NAMES: &[&str] = &["token", "segment", "fanout"];

/// No benchmark has this name.
#[derive(Debug, thiserror::Error)]
#[error("no benchmark is called {0}: there are token, segment, fanout and all")]
pub struct Unknown(String);

/// Runs the benchmarks of one name.
///
/// # Errors
/// [`Unknown`], or what kept one from running.
pub async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    let clock = Clock::system();
    match name {
        "token" => token::run(&clock),
        "segment" => segment::run(&clock),
        _ => Err(Unknown(name.to_owned()).into()),
    }
}
