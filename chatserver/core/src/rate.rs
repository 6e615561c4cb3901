//! A token bucket in one number, for one viewer.
//!
//! Kept as the time at which the bucket is full again (GCRA), so an untouched bucket needs no
//! memory and no refilling.

use proto::time::Mono;

/// A viewer's bucket.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rate {
    /// Milliseconds of monotonic time at which nothing is owed any more.
    full_at: Mono,
}

impl Rate {
    /// Time until one may be taken; 0: now.
    #[must_use]
    pub fn wait_ms(self, burst: u32, refill_ms: u32, now: Mono) -> u64 {
        let owed = self.full_at.0.saturating_sub(now.0);
        let allowed = u64::from(refill_ms) * u64::from(burst.max(1) - 1);
        // A bucket that was filled under a slower setting owes at most what this one can hold.
        owed.min(u64::from(refill_ms) * u64::from(burst.max(1))).saturating_sub(allowed)
    }

    /// Takes one, whether or not there is one.
    pub fn take(&mut self, refill_ms: u32, now: Mono) {
        self.full_at = Mono(self.full_at.max(now).0.saturating_add(u64::from(refill_ms)));
    }

    /// Whether the bucket is full: as if nothing had ever been taken.
    #[must_use]
    pub fn is_full(self, now: Mono) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_the_next_one_waits_for_a_refill() {
        let mut rate = Rate::default();
        let now = Mono(10_000);

        for _ in 0..5 {
            assert_eq!(rate.wait_ms(5, 1000, now), 0);
            rate.take(1000, now);
        }

        assert_eq!(rate.wait_ms(5, 1000, now), 1000);
        assert_eq!(rate.wait_ms(5, 1000, Mono(10_999)), 1);
        assert_eq!(rate.wait_ms(5, 1000, Mono(11_000)), 0);
        assert!(!rate.is_full(Mono(14_999)));
        assert!(rate.is_full(Mono(15_000)));
    }

    #[test]
    fn a_faster_setting_bites_at_once() {
        let mut rate = Rate::default();
        rate.take(600_000, Mono(0));

        assert_eq!(rate.wait_ms(1, 1000, Mono(0)), 1000);
    }
}
