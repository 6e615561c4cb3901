//! A token bucket over `now`: so many at once, then so many a second.

use std::time::Duration;

use proto::time::Mono;

/// How much passes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// How many may pass at once; at least 1.
    pub burst: u32,
    /// How many a second pass in the long run; at least 1.
    pub per_s: u32,
}

const NANOS_PER_MS: u64 = 1_000_000;
const NANOS_PER_S: u64 = 1_000_000_000;

/// Counts what passed. It holds one instant: when the bucket will be full again.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    full_at_nanos: u64,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, full_at_nanos: 0 }
    }

    /// Lets one pass, or says after what time one would.
    ///
    /// # Errors
    /// The time.
    pub fn take(&mut self, now: Mono) -> Result<(), Duration> {
        self.take_many(1, now)
    }

    /// Lets so many pass at once, or says after what time they would; more than a burst never do.
    ///
    /// # Errors
    /// The time.
    pub fn take_many(&mut self, count: u32, now: Mono) -> Result<(), Duration> {
        let refill = NANOS_PER_S / u64::from(self.rate.per_s.max(1));
        let depth = refill * u64::from(self.rate.burst.max(1));
        let now = now.0.saturating_mul(NANOS_PER_MS);
        let full_at = self.full_at_nanos.max(now).saturating_add(refill * u64::from(count));
        let debt = full_at - now;
        if debt > depth {
            return Err(Duration::from_millis((debt - depth).div_ceil(NANOS_PER_MS)));
        }
        self.full_at_nanos = full_at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 3, per_s: 20 };

    #[test]
    fn a_burst_passes_and_then_so_many_a_second() {
        let mut bucket = Bucket::new(RATE);

        let burst: Vec<_> = (0..4).map(|_| bucket.take(Mono(1000))).collect();

        assert_eq!(burst, [Ok(()), Ok(()), Ok(()), Err(Duration::from_millis(50))]);
        assert_eq!(bucket.take(Mono(1049)), Err(Duration::from_millis(1)));
        assert_eq!(bucket.take(Mono(1050)), Ok(()));
        assert_eq!(bucket.take(Mono(1050)), Err(Duration::from_millis(50)));
    }

    #[test]
    fn many_pass_together_or_not_at_all() {
        let mut bucket = Bucket::new(RATE);

        assert_eq!(bucket.take_many(2, Mono(1000)), Ok(()));
        assert_eq!(bucket.take_many(2, Mono(1000)), Err(Duration::from_millis(50)));
        assert_eq!(bucket.take_many(1, Mono(1000)), Ok(()));
        assert!(bucket.take_many(4, Mono(9000)).is_err(), "more than a burst");
    }

    #[test]
    fn a_long_rest_saves_no_more_than_a_burst() {
        let mut bucket = Bucket::new(RATE);
        for _ in 0..3 {
            bucket.take(Mono(0)).unwrap();
        }

        let passed = (0..10).filter(|_| bucket.take(Mono(1_000_000)).is_ok()).count();

        assert_eq!(passed, 3);
    }

    #[test]
    fn more_than_one_a_millisecond_can_pass() {
        let mut bucket = Bucket::new(Rate { burst: 1000, per_s: 50_000 });
        while bucket.take(Mono(0)).is_ok() {}

        let passed = (0..100).filter(|_| bucket.take(Mono(1)).is_ok()).count();

        assert_eq!(passed, 50);
    }
}
