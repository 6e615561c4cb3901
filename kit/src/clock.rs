//! The only place that reads the clock.
//!
//! A [`Clock`] is cheap to clone; clones share one wall offset, which tests and drills step.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proto::time::{Mono, Wall, millis};
use rustix::time::{ClockId, clock_gettime};

/// Tells both kinds of time.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    /// The same as the kernel counts it.
    start_since_boot: Duration,
    wall_offset_ms: Arc<AtomicI64>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]
    pub fn system() -> Self {
        let start = Instant::now();
        // Behind it, so that what is told lately is never ahead.
        let start_since_boot = read(ClockId::Monotonic);
        Self { start, start_since_boot, wall_offset_ms: Arc::default() }
    }

    /// Milliseconds since this clock was made.
    #[must_use]
    pub fn mono(&self) -> Mono {
        Mono(millis(self.start.elapsed()))
    }

    /// Microseconds since this clock was made: for latencies shorter than a millisecond.
    #[must_use]
    pub fn micros(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Nanoseconds since this clock was made: for the time that one call takes.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Milliseconds since 1970, plus the offset.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]
    pub fn wall(&self) -> Wall {
        self.stepped(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// As [`mono`](Self::mono) told at the kernel's last tick, up to 10 ms ago; for what is asked
    /// with each request, since it costs a fifth.
    #[must_use]
    #[inline]
    pub fn mono_lately(&self) -> Mono {
        Mono(millis(read(ClockId::MonotonicCoarse).saturating_sub(self.start_since_boot)))
    }

    /// As [`wall`](Self::wall) told at the kernel's last tick, the same as that of
    /// [`mono_lately`](Self::mono_lately).
    #[must_use]
    #[inline]
    pub fn wall_lately(&self) -> Wall {
        self.stepped(read(ClockId::RealtimeCoarse))
    }

    #[inline]
    fn stepped(&self, since_1970: Duration) -> Wall {
        let offset_ms = self.wall_offset_ms.load(Ordering::Relaxed);
        Wall(millis(since_1970).saturating_add_signed(offset_ms))
    }

    /// Moves this clock's wall time, and that of its clones, as an administrator or a bad NTP
    /// server would. Monotonic time is not touched.
    pub fn step(&self, by_ms: i64) {
        self.wall_offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Waits until the monotonic `deadline`; returns at once if it is past.
    pub async fn sleep_until(&self, deadline: Mono) {
        tokio::time::sleep(deadline.since(self.mono())).await;
    }

    /// Waits.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[inline]
fn read(clock: ClockId) -> Duration {
    // Times before 1970 are 0.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_moves_the_wall_of_every_clone_and_no_monotonic_time() {
        let clock = Clock::system();
        let clone = clock.clone();
        let (mono, wall) = (clock.mono(), clock.wall());

        clone.step(3_600_000);

        assert!(clock.wall() >= wall + Duration::from_hours(1));
        assert!(clock.mono().since(mono) < Duration::from_hours(1));
        clone.step(-7_200_000);
        assert!(clock.wall() < wall);
    }

    #[test]
    fn a_wall_stepped_before_1970_stays_there() {
        let clock = Clock::system();

        clock.step(i64::MIN);

        assert_eq!(clock.wall(), Wall(0));
    }

    #[test]
    fn other_clocks_are_not_stepped() {
        let (stepped, other) = (Clock::system(), Clock::system());

        stepped.step(3_600_000);

        assert!(stepped.wall().since(other.wall()) > Duration::from_mins(59));
    }

    #[tokio::test]
    async fn a_deadline_is_waited_for_and_a_past_one_is_not() {
        let clock = Clock::system();
        let deadline = clock.mono() + Duration::from_millis(5);

        clock.sleep_until(deadline).await;
        assert!(clock.mono() >= deadline);

        clock.sleep_until(Mono(0)).await;
    }

    #[test]
    fn what_is_told_lately_was_so_not_long_ago() {
        let clock = Clock::system();
        clock.step(3_600_000);
        let (mono, wall) = (clock.mono(), clock.wall());

        while clock.mono_lately() <= mono || clock.wall_lately() <= wall {
            std::hint::spin_loop();
        }

        let (mono, wall) = (clock.mono_lately(), clock.wall_lately());
        assert!(mono <= clock.mono());
        assert!(wall <= clock.wall());
    }

    #[test]
    fn microseconds_and_milliseconds_agree() {
        let clock = Clock::system();

        let before = clock.mono();
        let micros = clock.micros();

        assert!(micros >= before.0 * 1000);
        assert!(micros <= (clock.mono().0 + 1) * 1000);
    }
}
