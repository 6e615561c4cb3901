//! Hours of arrivals in virtual time over the planner alone: no clock, no network, no chance.
//!
//! [`run`] lets viewers arrive at a fleet as two files describe them, and says how they were
//! spread, which node was sent more than it can log in, and who was refused. The same files give
//! the same [`Outcome`], to the byte.

mod file;
mod outcome;
mod world;

pub use file::{Act, Arrivals, ArrivalsFile, Event, FleetFile, Nodes};
pub use outcome::{ByCarrier, ByGroup, Outcome, Row};

/// Why files cannot be played.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// Nobody is there.
    #[error("the fleet has no nodes, or more than {max}", max = crate::fleet::NODES_MAX)]
    Nodes,
    /// A node would be nowhere.
    #[error("{0} needs a machine room and a carrier, and has at most 16 carriers")]
    Group(String),
    /// An event is about nobody.
    #[error("no nodes are called {0}")]
    Unknown(String),
    /// It would never end, or never begin.
    #[error(
        "snapshot_ms, report_ms and replicas are at least 1, and a run has at most {STEPS_MAX} snapshots"
    )]
    Length,
}

/// Snapshots of a run: ten hours, one each 5 ms.
pub const STEPS_MAX: u64 = 7_200_000;

/// Plays it.
///
/// # Errors
/// When the files contradict themselves.
pub fn run(fleet: &FleetFile, arrivals: &ArrivalsFile) -> Result<Outcome, Invalid> {
    world::World::new(fleet, arrivals).map(world::World::play)
}
