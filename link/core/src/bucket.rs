//! A token bucket over `now`: so many at once, then one for every `refill`.

use std::time::Duration;

use proto::time::{Mono, millis};

/// How much passes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// How many may pass at once; at least 1.
    pub burst: u32,
    /// Time after which one more may pass; at least 1 ms.
    pub refill: Duration,
}

/// Counts what passed. It holds one instant: when the bucket will be full again.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    full_at: Mono,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, full_at: Mono(0) }
    }

    /// Lets one pass, or says after what time one would.
    pub fn take(&mut self, now: Mono) -> Result<(), Duration> {
        let refill_ms = millis(self.rate.refill).max(1);
        let depth_ms = refill_ms.saturating_mul(u64::from(self.rate.burst.max(1)));
        let full_at = Mono(self.full_at.max(now).0.saturating_add(refill_ms));
        let debt = full_at.since(now);
        let depth = Duration::from_millis(depth_ms);
        if debt > depth {
            return Err(debt - depth);
        }
        self.full_at = full_at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 3, refill: Duration::from_millis(50) };

    #[test]
    fn a_burst_passes_and_then_one_for_each_refill() {
        let mut bucket = Bucket::new(RATE);

        let burst: Vec<_> = (0..4).map(|_| bucket.take(Mono(1000))).collect();

        assert_eq!(burst, [Ok(()), Ok(()), Ok(()), Err(Duration::from_millis(50))]);
        assert_eq!(bucket.take(Mono(1049)), Err(Duration::from_millis(1)));
        assert_eq!(bucket.take(Mono(1050)), Ok(()));
        assert_eq!(bucket.take(Mono(1050)), Err(Duration::from_millis(50)));
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
}
