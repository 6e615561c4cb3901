//! What to do when there is no answer, or no file.

use std::time::Duration;

use proto::time::Mono;

use super::{MISSES_MAX, Miss, Poll, Stage};

/// After "not there yet": caches keep that answer for one second.
const NOT_YET_WAIT: Duration = Duration::from_millis(1_000);
/// Shortest and longest wait after failures.
const BACK_OFF_MIN: Duration = Duration::from_secs(1);
const BACK_OFF_MAX: Duration = Duration::from_secs(30);

impl Poll {
    /// Decides what to do about an answer that did not come.
    pub(super) fn missed(&mut self, why: Miss, now: Mono, draw: f64) {
        match self.stage {
            Stage::HeadAsked => {
                self.head_attempt = self.head_attempt.saturating_add(1);
                self.wait(now, draw);
            }
            Stage::SlotAsked => self.slot_missed(why, now, draw),
            Stage::Stopped | Stage::Head | Stage::Slot => {}
        }
    }

    fn slot_missed(&mut self, why: Miss, now: Mono, draw: f64) {
        self.attempt = self.attempt.saturating_add(1);
        self.is_gone = why == Miss::Gone;
        match (why, self.attempt) {
            (Miss::Failed, 1) => self.stage = Stage::Slot,
            (Miss::NotYet | Miss::Gone, _) if self.is_over => self.stage = Stage::Head,
            (Miss::NotYet, 1) => {
                self.stage = Stage::Slot;
                self.not_before = now + NOT_YET_WAIT;
            }
            (Miss::NotYet, 2) | (Miss::Gone, ..3) => self.stage = Stage::Head,
            // Whether it is this file or the server that fails, the head knows. While that does
            // not answer either, nothing is given up.
            (Miss::Failed, 2) if !self.is_over => self.stage = Stage::Head,
            (Miss::Failed | Miss::NotYet | Miss::Gone, _) => self.give_up(now, draw),
        }
    }

    /// The current slot will not come.
    fn give_up(&mut self, now: Mono, draw: f64) {
        if let Some(timeline) = self.timeline {
            self.tell_lost((timeline.gen_no, self.next));
        }
        self.misses = self.misses.saturating_add(1);
        self.advance();
        if self.misses >= MISSES_MAX && self.stage == Stage::Slot {
            self.wait(now, draw);
        }
    }

    /// Reads the head after a wait of 1–30 s, longer each time, a random half of it.
    fn wait(&mut self, now: Mono, draw: f64) {
        let longest = BACK_OFF_MIN.saturating_mul(1 << self.waits.min(5)).min(BACK_OFF_MAX);
        let share = 0.5 + 0.5 * draw.clamp(0.0, 1.0);
        self.not_before = now + longest.mul_f64(share).max(BACK_OFF_MIN);
        self.waits = self.waits.saturating_add(1);
        self.stage = Stage::Head;
    }
}
