//! When those come back who were sent away: each at a moment of its own.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kit::clock::Clock;

use crate::config;

/// Hands out moments to come back, evenly spaced.
#[derive(Debug)]
pub(crate) struct Returns {
    clock: Clock,
    /// Microseconds between two returns.
    spacing: u64,
    /// Microseconds from the first return to the last.
    span: u64,
    wait_ms_min: u32,
    /// Microseconds of the clock: the last moment that was handed out, without `wait_ms_min`.
    last: AtomicU64,
    /// Those beyond the last moment that may be handed out.
    beyond: AtomicU32,
}

impl Returns {
    pub(crate) fn new(config: &config::Full, clock: Clock) -> Self {
        let span_ms = config.wait_ms_max.saturating_sub(config.wait_ms_min);
        Self {
            clock,
            spacing: 1_000_000 / u64::from(config.returns_per_s.max(1)),
            span: u64::from(span_ms) * 1000,
            wait_ms_min: config.wait_ms_min,
            last: AtomicU64::new(0),
            beyond: AtomicU32::new(0),
        }
    }

    /// Milliseconds until one more may come back.
    pub(crate) fn next_ms(&self) -> u32 {
        self.next_ms_at(self.clock.micros())
    }

    fn next_ms_at(&self, now: u64) -> u32 {
        let next = |last: u64| {
            let next = last.max(now) + self.spacing;
            (next - now <= self.span).then_some(next)
        };
        let wait = match self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) => last.max(now) + self.spacing - now,
            Err(_) => self.spread(),
        };
        self.wait_ms_min + u32::try_from(wait / 1000).expect("no wait is longer than the span")
    }

    /// Anywhere in the span: steps of the golden ratio leave no gap and meet no moment twice.
    fn spread(&self) -> u64 {
        let step = self.beyond.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9);
        (self.span * u64::from(step)) >> u32::BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returns(returns_per_s: u32) -> Returns {
        let config = config::Full { returns_per_s, wait_ms_min: 1_000, wait_ms_max: 61_000 };
        Returns::new(&config, Clock::system())
    }

    #[test]
    fn whoever_is_alone_comes_back_soon() {
        let returns = returns(1_000);

        assert_eq!(returns.next_ms_at(5_000_000), 1_001);
        assert_eq!(returns.next_ms_at(9_000_000), 1_001);
    }

    #[test]
    fn no_second_gets_more_than_its_returns_until_the_span_is_full() {
        let returns = returns(1_000);

        let mut seconds = [0; 62];
        for _ in 0..60_000 {
            seconds[returns.next_ms_at(7) as usize / 1000] += 1;
        }

        assert_eq!((seconds[0], seconds[61]), (0, 1));
        assert!(seconds[1..61].iter().all(|it| (999..=1_001).contains(it)), "{seconds:?}");
    }

    #[test]
    fn a_million_at_once_come_back_evenly_within_the_longest_wait() {
        let returns = returns(1_000);

        let mut seconds = [0_u32; 62];
        for _ in 0..1_000_000 {
            seconds[returns.next_ms_at(7) as usize / 1000] += 1;
        }

        assert_eq!(seconds[0], 0);
        let even = 1_000_000 / 60;
        let is_even = |it: &u32| it.abs_diff(even) < even / 50;
        assert!(seconds[1..61].iter().all(is_even), "{seconds:?}");
        assert!(seconds[61] <= 1);
    }
}
