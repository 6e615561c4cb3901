//! How long to wait before coming back.
//!
//! `base × factor^n` with full jitter, so that viewers who left together do not return together;
//! it starts over only after a connection that held, so that one which is accepted and closed at
//! once does not count as success.

use std::time::Duration;

use proto::close::CloseCode;
use proto::enter::Retry;
use proto::time::Mono;

/// A connection that held this long starts the count over.
pub const STABLE: Duration = Duration::from_secs(30);
/// No wait is longer than this, whatever a server says.
pub const WAIT_MAX: Duration = Duration::from_secs(600);

/// Counts failures and says how long to wait.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    retry: Retry,
    failures: u32,
    connected: Option<Mono>,
}

impl Backoff {
    /// Starts with `retry`.
    #[must_use]
    pub const fn new(retry: Retry) -> Self {
        Self { retry, failures: 0, connected: None }
    }

    /// Takes over what the server says about trying again; the count stays.
    pub const fn retune(&mut self, retry: Retry) {
        self.retry = retry;
    }

    /// A connection was made.
    pub const fn connected(&mut self, now: Mono) {
        self.connected = Some(now);
    }

    /// A connection or an attempt ended, with this code if the server said one: how long to wait,
    /// or `None` if the code forbids coming back.
    ///
    /// `draw` is uniform in 0..1. The jittered wait comes on top of `retry_after`.
    pub fn failed(
        &mut self,
        code: Option<CloseCode>,
        retry_after: Duration,
        now: Mono,
        draw: f64,
    ) -> Option<Duration> {
        if code.is_some_and(|it| !it.comes_back()) {
            return None;
        }
        if self.connected.take().is_some_and(|at| now.since(at) >= STABLE) {
            self.failures = 0;
        }
        let wait = retry_after.min(WAIT_MAX) + self.jittered(draw);
        self.failures = self.failures.saturating_add(1);
        Some(wait.min(WAIT_MAX))
    }

    fn jittered(&self, draw: f64) -> Duration {
        let finite = |value: f32, low: f32, high: f32, instead: f32| {
            if value.is_finite() { value.clamp(low, high) } else { instead }
        };
        let factor = f64::from(finite(self.retry.factor, 1.0, 10.0, 2.0));
        let jitter = f64::from(finite(self.retry.jitter, 0.0, 1.0, 1.0));
        let exponent = i32::try_from(self.failures.min(64)).unwrap_or(64);
        let base_ms = f64::from(self.retry.base_ms.max(1));
        let ceiling_ms = (base_ms * factor.powi(exponent)).min(f64::from(self.retry.max_ms));
        let wait_ms = ceiling_ms * (1.0 - jitter + jitter * draw.clamp(0.0, 1.0));
        Duration::try_from_secs_f64(wait_ms / 1000.0).unwrap_or(WAIT_MAX).min(WAIT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(Retry { base_ms: 500, max_ms: 4_000, factor: 2.0, jitter: 1.0 })
    }

    fn ms(wait: Option<Duration>) -> u128 {
        wait.unwrap().as_millis()
    }

    #[test]
    fn waits_grow_to_the_limit_and_jitter_takes_all_of_them() {
        let mut backoff = backoff();

        let longest = [500, 1_000, 2_000, 4_000, 4_000];

        for expected in longest {
            let shortest = backoff.clone().failed(None, Duration::ZERO, Mono(0), 0.0);
            assert_eq!(ms(shortest), 0);
            assert_eq!(ms(backoff.failed(None, Duration::ZERO, Mono(0), 1.0)), expected);
        }
    }

    #[test]
    fn only_a_connection_that_held_starts_the_count_over() {
        let mut backoff = backoff();
        for _ in 0..3 {
            backoff.failed(None, Duration::ZERO, Mono(0), 1.0);
        }

        backoff.connected(Mono(1_000));
        let after_a_short_one = backoff.failed(None, Duration::ZERO, Mono(30_999), 1.0);
        backoff.connected(Mono(40_000));
        let after_a_long_one = backoff.failed(None, Duration::ZERO, Mono(70_000), 1.0);

        assert_eq!(ms(after_a_short_one), 4_000);
        assert_eq!(ms(after_a_long_one), 500);
    }

    #[test]
    fn the_given_delay_is_honoured_and_terminal_codes_end_it() {
        let mut backoff = backoff();

        let draining =
            backoff.failed(Some(CloseCode::Draining), Duration::from_secs(7), Mono(0), 0.5);
        let other_device =
            backoff.failed(Some(CloseCode::OtherDevice), Duration::from_secs(7), Mono(0), 0.5);

        assert_eq!(ms(draining), 7_250);
        assert_eq!(other_device, None);
    }

    #[test]
    fn nonsense_from_a_server_gives_a_bounded_wait() {
        let retry = Retry { base_ms: 0, max_ms: u32::MAX, factor: f32::NAN, jitter: -3.0 };
        let mut backoff = Backoff::new(retry);

        for _ in 0..200 {
            let wait = backoff.failed(None, Duration::MAX, Mono(0), 1.0).unwrap();
            assert!(wait <= WAIT_MAX);
        }
    }
}
