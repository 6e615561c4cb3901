//! How long to wait before a push connects again.

use std::time::Duration;

/// The first wait; each further one is twice as long.
const WAIT: Duration = Duration::from_millis(500);
/// The longest.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(15);
/// A connection that held this long starts the count over.
const STABLE: Duration = Duration::from_secs(30);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A connection ended that `held` so long, or none was made: how long to wait. `draw` is uniform
    /// in 0..1; half of the wait is by chance, so that those who lost one CDN together do not come
    /// back together.
    pub(super) fn failed(&mut self, held: Duration, draw: f64) -> Duration {
        if held >= STABLE {
            self.failures = 0;
        }
        let full = WAIT.saturating_mul(1 << self.failures.min(10)).min(WAIT_MAX);
        self.failures = self.failures.saturating_add(1);
        full.mul_f64(0.5 + draw.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_the_limit_and_half_of_them_is_chance() {
        let mut backoff = Backoff::default();
        let mut failed = |draw| backoff.failed(Duration::ZERO, draw).as_millis();

        assert_eq!([0.0, 0.0, 1.0, 0.5].map(&mut failed), [250, 500, 2_000, 3_000]);
        for _ in 0..100 {
            failed(1.0);
        }
        assert_eq!([0.0, 1.0].map(failed), [7_500, 15_000]);
    }

    #[test]
    fn only_a_connection_that_held_starts_the_count_over() {
        let mut backoff = Backoff::default();
        for _ in 0..3 {
            backoff.failed(Duration::ZERO, 1.0);
        }

        let short = backoff.failed(STABLE - Duration::from_millis(1), 1.0);
        let long = backoff.failed(STABLE, 1.0);

        assert_eq!((short, long), (Duration::from_secs(4), WAIT));
    }
}
