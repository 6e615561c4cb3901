//! How a fleet changes: slots are taken and given back, nodes come, move and go.

use std::sync::Arc;

use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};

use super::lease::{Lease, Past, Ramp, Stamp};
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

    /// What is known of the node of a slot when it reports with this `start`.
    pub(super) fn past(&self, slot: u32, start: Wall, now: Mono) -> Past {
        let (at, is_settling) = (slot as usize, now < self.settled);
        let before = self.member(slot).map(|it| &it.report);
        let ramp = match before {
            Some(before) if before.load.besieged => Ramp::Siege(now),
            Some(before) if before.load.draining || before.start != start => Ramp::Start(now),
            Some(_) if self.rows[at].is_live() => self.leases[at].ramp,
            Some(_) | None if is_settling => Ramp::Done,
            Some(_) | None => Ramp::Start(now),
        };
        Past { ramp, drained: before.is_some_and(|it| it.load.draining) }
    }

    /// Puts what changes seldom of a node in its place.
    pub(super) fn settle(&mut self, slot: u32, report: LoadReport, region: Region) {
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
        self.slots.insert(report.node, slot);
        self.members[at] = Some(Member { report, region, listeners });
    }

    /// Extends the lease of a settled node, whose numbers are now these.
    pub(super) fn renew(&mut self, slot: u32, said: (Stamp, Load), past: Past, now: Mono) {
        let at = slot as usize;
        let Some(Member { report, .. }) = &mut self.members[at] else { return };
        let (stamp, load) = said;
        (report.start, report.counter, report.load) = (stamp.start, stamp.counter, load);
        self.heard = self.heard.max(now);
        self.version += 1;
        let state = if load.draining || load.besieged {
            State::Resting
        } else if past.ramp == Ramp::Done {
            State::Taking
        } else {
            State::Growing
        };
        // Cut off: only two neighbouring numbers are ever compared.
        let report_no = u32::try_from(self.version & u64::from(u32::MAX)).expect("it is cut off");
        self.rows[at] = Row::new(report, report_no, state);
        let node = report.node;
        let expires = now + self.limits.lease;
        self.leases[at] = Lease { expires, ramp: past.ramp };
        self.due = self.due.min(expires);
        if !load.draining {
            self.draining.remove(&node);
        } else if self.draining.insert(node) && !past.drained {
            self.tell(Output::Draining(node));
        }
        if !load.besieged {
            self.besieged.remove(&node);
        } else if self.besieged.insert(node) {
            self.tell(Output::Besieged(node));
        }
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
        self.draining.remove(&self.rows[slot].node);
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
