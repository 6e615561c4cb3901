//! What an operator sees of a node.

use std::time::Duration;

use proto::load::LoadReport;
use proto::time::Mono;
use serde::Serialize;

use super::Fleet;
use crate::fleet::row::State;
use crate::snapshot::Snapshot;

/// A node under lease.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What it said last.
    pub report: &'a LoadReport,
    /// What it is there for.
    pub standing: Standing,
    /// Since that report, without the time in which nobody could be heard.
    pub age: Duration,
    /// Answers since that report that sent a viewer there first.
    pub answers: u32,
    /// Viewers that may be sent there before the next plan.
    pub left: u32,
}

/// What a node is there for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It takes its full share of viewers.
    Taking,
    /// It takes viewers, and grows to its full share.
    Growing,
    /// It finishes and leaves.
    Draining,
    /// It is attacked.
    Besieged,
}

impl Fleet {
    /// All nodes under lease by id, with what `snapshot`, the last one planned from this fleet,
    /// says of them.
    pub fn look<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        now: Mono,
    ) -> impl Iterator<Item = Look<'a>> + 'a {
        self.live().map(move |(slot, member)| {
            let at = slot as usize;
            let left = self.leases[at].expires.since(now);
            let (answers, places) = snapshot.answers(at);
            Look {
                report: &member.report,
                standing: Standing::of(&member.report, self.rows[at].state),
                age: self.limits.lease.saturating_sub(left),
                answers,
                left: places,
            }
        })
    }
}

impl Standing {
    const fn of(report: &LoadReport, state: State) -> Self {
        if report.load.besieged {
            return Self::Besieged;
        }
        if report.load.draining {
            return Self::Draining;
        }
        match state {
            State::Growing => Self::Growing,
            State::Taking | State::Resting | State::Dead => Self::Taking,
        }
    }
}
