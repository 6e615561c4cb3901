//! Times to come back, one for each of the refused.

use std::time::Duration;

use proto::time::Mono;

use super::{MICROS_PER_MS, WAIT_MAX, micros};

/// Up to when, in microseconds, the refused have a time of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns(u64);

impl Turns {
    /// Nobody was refused.
    pub(super) const NONE: Self = Self(0);

    /// The time after which it would be the turn of one more, if one may pass in `free_micros`:
    /// whole milliseconds and at least one, for 0 means never.
    pub(super) fn wait(self, free_micros: u64, now: Mono) -> Duration {
        let wait_micros = self.0.saturating_sub(micros_at(now)).max(free_micros);
        Duration::from_millis(wait_micros.div_ceil(MICROS_PER_MS).max(1)).min(WAIT_MAX)
    }

    /// Gives the next turn; one pass takes `each_micros`. Beyond `reach`, many have the same.
    pub(super) fn give(
        &mut self,
        free_micros: u64,
        each_micros: u64,
        reach: Duration,
        now: Mono,
    ) -> Duration {
        let wait = self.wait(free_micros, now);
        if wait < reach {
            let turn_micros = self.0.max(micros_at(now).saturating_add(free_micros));
            self.0 = turn_micros.saturating_add(each_micros);
        }
        wait
    }
}

fn micros_at(now: Mono) -> u64 {
    micros(now.since(Mono(0)))
}
