//! How a fleet changes: slots are taken and given back, nodes come, move and go.

use std::sync::Arc;

use proto::load::LoadReport;
use proto::time::Mono;

use super::lease::{Lease, Ramp};
use super::row::{Row, State};
use super::{Fleet, Member, OUTPUTS_PER_NODE, Output};
use crate::listener::Listener;
use crate::region::Region;

impl Fleet {
    /// A slot for one more node, at the cost of the one that has been silent longest if need be.
    pub(super) fn slot(&mut self) -> Option<u32> {
        if self.slots.len() >= self.limits.nodes_max {
            let rows = self.rows.iter().enumerate();
            let silent = rows.filter(|&(slot, row)| !row.is_live() && self.members[slot].is_some());
            let (slot, _) = silent.min_by_key(|&(slot, _)| self.leases[slot].expires)?;
            self.forget(slot);
        }
        self.free.pop().or_else(|| {
            let slot = u32::try_from(self.rows.len()).ok()?;
            self.rows.push(Row::default());
            self.leases.push(Lease { expires: Mono::default(), ramp: Ramp::Done });
            self.members.push(None);
            Some(slot)
        })
    }

    /// From when on the node grows, and how fast.
    pub(super) fn next_ramp(&self, slot: u32, report: &LoadReport, now: Mono) -> Ramp {
        let (at, is_settling) = (slot as usize, now < self.settled);
        let before = self.member(slot).map(|it| &it.report);
        match before {
            Some(before) if before.load.besieged => Ramp::Siege(now),
            Some(before) if before.load.draining || before.start != report.start => {
                Ramp::Start(now)
            }
            Some(_) if self.rows[at].is_live() => self.leases[at].ramp,
            Some(_) | None if is_settling => Ramp::Done,
            Some(_) | None => Ramp::Start(now),
        }
    }

    /// Puts what is known of a node in its place.
    pub(super) fn settle(&mut self, slot: u32, report: LoadReport, region: Region, lease: Lease) {
        let at = slot as usize;
        let same = self.members[at].as_ref().filter(|_| self.rows[at].is_live()).filter(|it| {
            it.region == region
                && it.report.addresses == report.addresses
                && it.report.reserve == report.reserve
        });
        let listeners = same.map(|it| Arc::clone(&it.listeners)).unwrap_or_else(|| {
            self.shape += 1;
            Listener::prepare(&report.addresses, &report.reserve)
        });
        let state = if report.load.draining || report.load.besieged {
            State::Resting
        } else if lease.ramp == Ramp::Done {
            State::Taking
        } else {
            State::Growing
        };
        // Cut off: only two neighbouring numbers are ever compared.
        let report_no = u32::try_from(self.version & u64::from(u32::MAX)).expect("it is cut off");
        self.rows[at] = Row::new(&report, report_no, state);
        self.leases[at] = lease;
        self.slots.insert(report.node, slot);
        self.members[at] = Some(Member { report, region, listeners });
        self.due = self.due.min(lease.expires);
    }

    pub(super) fn enter(&mut self, region: Region) {
        let regions = self.regions.len();
        self.lived_in.resize(regions, 0);
        self.lived_in[region.index()] += 1;
        self.live += 1;
    }

    pub(super) fn leave(&mut self, region: Option<Region>) {
        if let Some(region) = region {
            self.lived_in[region.index()] -= 1;
            self.live -= 1;
        }
    }

    pub(super) fn expire(&mut self, slot: usize) {
        let region = self.members[slot].as_ref().map(|it| it.region);
        self.leave(region);
        self.rows[slot].state = State::Dead;
        self.shape += 1;
        self.version += 1;
        self.besieged.remove(&self.rows[slot].node);
        self.tell(Output::Expired(self.rows[slot].node));
    }

    pub(super) fn forget(&mut self, slot: usize) {
        if let (Some(member), Ok(free)) = (self.members[slot].take(), u32::try_from(slot)) {
            self.slots.remove(&member.report.node);
            self.rows[slot] = Row::default();
            self.free.push(free);
        }
    }

    pub(super) fn tell(&mut self, output: Output) {
        if self.outputs.len() < OUTPUTS_PER_NODE * self.limits.nodes_max {
            self.outputs.push_back(output);
        }
    }
}
