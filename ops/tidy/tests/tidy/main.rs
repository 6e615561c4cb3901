//! The rules of the house that neither the compiler nor clippy knows. A failure lists every
//! place that breaks the rule.

mod arrows;
mod bounds;
mod config;
mod docs;
mod doors;
mod metrics;
mod rooms;
mod tree;
mod vectors;
mod workspace;

/// Fails with every complaint, one a line.
#[track_caller]
fn nothing_wrong(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
