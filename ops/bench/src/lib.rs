//! Benchmarks: each prints one line that a machine can read.
//!
//! A figure is the median of several rounds and counts CPU time, so other programs disturb it
//! little. Where there is a peer, rounds of both are interleaved, and the ratio is the claim:
//! compare ratios, not machines.
#![deny(missing_docs)]

mod admit;
mod aside;
mod broadcaster;
mod cpu;
mod fanout;
mod gslb;
mod handshake;
mod line;
mod link;
mod peer;
mod place;
mod segment;
mod sizes;
mod storm;
mod timing;
mod token;
mod wire;

pub use line::Line;
pub use sizes::{Sizes, sizes};

/// The names that [`run`] takes.
pub const NAMES: &[&str] = &[
    "token",
    "admit",
    "segment",
    "wire",
    "gslb",
    "place",
    "broadcast",
    "origin.held_bytes",
    "fanout",
    "handshake",
    "link",
    "storm",
];

/// No benchmark has this name.
#[derive(Debug, thiserror::Error)]
#[error("no benchmark is called {0}: there are {names} and all", names = NAMES.join(", "))]
pub struct Unknown(String);

/// Runs the benchmarks of one name.
///
/// # Errors
/// [`Unknown`], or what kept one from running.
pub async fn run(name: &str) -> anyhow::Result<Vec<Line>> {
    match name {
        "token" => token::run(),
        "admit" => admit::run(),
        "segment" => segment::run(),
        "wire" => wire::run(),
        gslb::CALLERS => Box::pin(gslb::call()).await.map(|()| Vec::new()),
        gslb::NODES => Box::pin(gslb::report()).await.map(|()| Vec::new()),
        name if gslb::has(name) => Box::pin(gslb::run(name)).await,
        "place" => place::run(),
        "broadcast" => broadcaster::run(),
        broadcaster::held::NAME => Box::pin(broadcaster::held::run()).await,
        "fanout" => Box::pin(link::run("link.fanout.")).await,
        link::NODE => Box::pin(link::hold()).await.map(|()| Vec::new()),
        storm::GUESTS => Box::pin(storm::serve()).await.map(|()| Vec::new()),
        name if storm::has(name) => Box::pin(storm::run(name)).await,
        name if link::has(name) => Box::pin(link::run(name)).await,
        fanout::RECEIVER => Box::pin(fanout::receive()).await.map(|()| Vec::new()),
        fanout::SUBSCRIBERS => Box::pin(fanout::subscribe()).await.map(|()| Vec::new()),
        fanout::BARE => Box::pin(fanout::serve()).await.map(|()| Vec::new()),
        name if fanout::has_peers(name) => {
            Box::pin(fanout::beside_peers(name, "link.fanout.")).await
        }
        handshake::GUESTS => Box::pin(handshake::serve()).await.map(|()| Vec::new()),
        name if handshake::has(name) => Box::pin(handshake::run(name)).await,
        _ => Err(Unknown(name.to_owned()).into()),
    }
}
