//! Which loads are passed on, and when: what a collector decides, without a socket or a clock.

use std::time::Duration;

use gslb_core::fleet::{Fleet, Heard, Output, Refusal};
use proto::load::LoadReport;
use proto::time::{Mono, Wall};

use crate::table::Value;

/// Hears reports and packs them.
#[derive(Debug)]
pub(crate) struct Packer {
    fleet: Fleet,
    /// Time between two packs while nothing changes.
    idle: Duration,
    /// Fleet version and time of the last pack.
    last: (u64, Mono),
}

impl Packer {
    pub(crate) const fn new(fleet: Fleet, idle: Duration, now: Mono) -> Self {
        Self { fleet, idle, last: (0, now) }
    }

    pub(crate) fn hear(&mut self, report: LoadReport, now: Mono) -> Result<Heard, Refusal> {
        self.fleet.handle(report, now)
    }

    /// Tells operators what became of nodes. Says whether one of them takes no more viewers, which
    /// must not wait until the next pack is due.
    pub(crate) fn tell(&mut self) -> bool {
        let mut is_urgent = false;
        while let Some(output) = self.fleet.poll() {
            match output {
                Output::Joined(node) => tracing::info!(%node, "a link node reports"),
                Output::Expired(node) => tracing::warn!(%node, "a link node fell silent"),
                Output::Draining(node) => tracing::info!(%node, "a link node drains"),
                Output::Besieged(node) => tracing::warn!(%node, "a link node is attacked"),
            }
            is_urgent |= matches!(output, Output::Draining(_) | Output::Besieged(_));
        }
        is_urgent
    }

    /// All loads, if something changed or nothing has for long.
    pub(crate) fn pack(&mut self, now: Mono, at: Wall) -> Option<Vec<Value>> {
        self.fleet.tick(now);
        self.tell();
        if self.fleet.version() == self.last.0 && now.since(self.last.1) < self.idle {
            return None;
        }
        self.last = (self.fleet.version(), now);
        let packed = self.fleet.pack(at).into_iter();
        Some(packed.map(|it| Value { bytes: it.encode(), region: it.region.into() }).collect())
    }
}
