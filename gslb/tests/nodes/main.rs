//! Nodes that stop, drain and are attacked, in a running system: real links, real viewers, real
//! processes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod besieged;
mod crowd;
mod draining;
mod process;
mod site;
mod stopped;
