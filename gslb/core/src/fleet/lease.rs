//! How long a node is there, since when, and which of its reports is the newest.

use proto::load::LoadReport;
use proto::time::{Mono, Wall};

/// Until when a node is there, and since when it grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) expires: Mono,
    pub(super) ramp: Ramp,
}

/// Whether and since when a node grows to its full share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ramp {
    /// It has it.
    Done,
    /// It joined or came back.
    Start(Mono),
    /// It was besieged.
    Siege(Mono),
}

/// What the reports before say of the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    /// From when on the node grows, and how fast.
    pub(super) ramp: Ramp,
    /// Whether it drained already.
    pub(super) drained: bool,
}

/// A report's place in its node's history.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Stamp {
    pub(super) start: Wall,
    pub(super) counter: u64,
}

impl Stamp {
    pub(super) const fn of(report: &LoadReport) -> Self {
        Self { start: report.start, counter: report.counter }
    }
}
