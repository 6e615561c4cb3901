//! What one client lives through with one base.

use std::time::Duration;

use proto::quality::BaseReport;
use proto::time::{Mono, millis};

use super::{Fetched, LATE};

/// Bad fetches in a row after which the base is left.
const STRIKES_MAX: u32 = 2;
/// Wait before a base that was left is tried again; it doubles up to the longest one.
const WAIT: Duration = Duration::from_secs(5);
/// See [`WAIT`].
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Questions under way that are looked at; a client has one for each of its rooms.
const UNDER_WAY_MAX: usize = 16;

/// How well a base serves this client.
#[derive(Debug, Default)]
pub(super) struct Quality {
    /// When the questions under way were asked.
    under_way: Vec<Mono>,
    /// Bad ones in a row. One that was left has one strike already when it is tried again.
    strikes: u32,
    /// Times it was left in a row.
    leaves: u32,
    left_until: Mono,
    is_bad: bool,
    fetches: u32,
    failures: u32,
    late: u32,
    fetch_ms: u64,
}

impl Quality {
    pub(super) fn ask(&mut self, now: Mono) {
        if self.under_way.len() < UNDER_WAY_MAX {
            self.under_way.push(now);
        }
    }

    pub(super) fn end(&mut self, asked: Mono, fetched: Fetched, now: Mono) {
        if let Some(index) = self.under_way.iter().position(|it| *it == asked) {
            self.under_way.swap_remove(index);
        }
        match fetched {
            Fetched::Whole { took } => {
                self.count(took);
                if took < LATE {
                    (self.strikes, self.leaves, self.is_bad) = (0, 0, false);
                    self.left_until = Mono(0);
                } else {
                    self.late = self.late.saturating_add(1);
                    self.strike(now);
                }
            }
            Fetched::Failed => self.fail(now.since(asked), now),
            Fetched::NotThere => {}
        }
    }

    /// A fetch failed after so long.
    pub(super) fn fail(&mut self, took: Duration, now: Mono) {
        self.count(took);
        self.failures = self.failures.saturating_add(1);
        self.strike(now);
    }

    fn count(&mut self, took: Duration) {
        self.fetches = self.fetches.saturating_add(1);
        self.fetch_ms = self.fetch_ms.saturating_add(millis(took));
    }

    fn strike(&mut self, now: Mono) {
        self.is_bad = true;
        self.strikes += 1;
        if self.strikes >= STRIKES_MAX {
            let wait = WAIT.saturating_mul(1 << self.leaves.min(8)).min(WAIT_MAX);
            self.left_until = now + wait;
            self.leaves = self.leaves.saturating_add(1);
            self.strikes = STRIKES_MAX - 1;
        }
    }

    /// Whether this client should ask elsewhere.
    pub(super) fn is_left(&self, now: Mono) -> bool {
        now < self.left_until
    }

    /// What happened since the last report, if anything did.
    pub(super) fn report(&mut self, base: &str, now: Mono) -> Option<BaseReport> {
        let is_waiting = self.under_way.iter().any(|it| now.since(*it) >= LATE);
        if self.fetches == 0 && !is_waiting {
            return None;
        }
        let mean = self.fetch_ms.checked_div(self.fetches.into()).unwrap_or(0);
        let report = BaseReport {
            base: base.to_owned(),
            fetches: self.fetches,
            failures: self.failures,
            late: self.late,
            fetch_ms: u32::try_from(mean).unwrap_or(u32::MAX),
            is_bad: self.is_bad || is_waiting,
        };
        (self.fetches, self.failures, self.late, self.fetch_ms) = (0, 0, 0, 0);
        Some(report)
    }
}
