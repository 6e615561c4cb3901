//! Which loads are passed on, and when: what a collector decides, without a socket or a clock.

use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;

use auth_core::node::NodeSecret;
use gslb_core::fleet::{Fleet, Heard, Output};
use proto::id::NodeId;
use proto::load::{KnownReport, RegionLoads, ReportView};
use proto::time::{Mono, Wall};

use super::Unheard;
use crate::table::Value;

/// Hears reports and packs them.
#[derive(Debug)]
pub(crate) struct Packer {
    fleet: Fleet,
    /// Time between two packs while nothing changes.
    idle: Duration,
    /// Fleet version and time of the last pack.
    last: (u64, Mono),
    /// Every node's last report as it came, which is how it is passed on. They are as many as there
    /// are secrets.
    reports: BTreeMap<NodeId, KnownReport>,
    /// Reports that nodes counted and nobody heard, since they were asked for.
    lost: u64,
}

impl Packer {
    pub(crate) const fn new(fleet: Fleet, idle: Duration, now: Mono) -> Self {
        Self { fleet, idle, last: (0, now), reports: BTreeMap::new(), lost: 0 }
    }

    /// Hears the report in `bytes`, which `node` signed.
    ///
    /// Most differ in numbers alone from the one before. Those are compared and not read.
    pub(crate) fn hear(
        &mut self,
        bytes: &[u8],
        node: &NodeSecret,
        now: Mono,
    ) -> Result<Heard, Unheard> {
        if let Some(known) = self.reports.get_mut(&node.node)
            && let Some(numbers) = known.compare(bytes)
            && let Some(heard) = self.fleet.renew_numbers(numbers, now)
        {
            let heard = heard.map_err(Unheard::Refused)?;
            let lost = numbers.counter - numbers.before - 1;
            self.lost = self.lost.saturating_add(lost);
            known.renew(bytes);
            return Ok(heard);
        }
        let report = ReportView::read(bytes).map_err(|_| Unheard::Malformed)?;
        if report.node() != node.node {
            return Err(Unheard::Malformed);
        }
        if !report.hosts().all(|it| node.has_host(it)) {
            return Err(Unheard::ForeignHost);
        }
        let heard = self.fleet.hear(report, now).map_err(Unheard::Refused)?;
        self.reports.insert(node.node, KnownReport::new(report, bytes));
        Ok(heard)
    }

    /// Reports that were lost on their way since this was last asked.
    pub(crate) fn take_lost(&mut self) -> u64 {
        mem::take(&mut self.lost)
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
        let regions = self.fleet.by_region();
        Some(regions.map(|(region, nodes)| self.value(region, &nodes, at)).collect())
    }

    fn value(&self, region: &str, nodes: &[NodeId], at: Wall) -> Value {
        let reports = nodes.iter().filter_map(|it| self.reports.get(it));
        let reports: Vec<&[u8]> = reports.map(KnownReport::bytes).collect();
        Value { region: region.into(), bytes: RegionLoads::pack(region, at, &reports) }
    }
}
