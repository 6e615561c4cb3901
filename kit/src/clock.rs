//! The only place that reads the clock.
//!
//! A [`Clock`] is cheap to clone; clones share one wall offset, which tests and drills step.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proto::time::{Mono, Wall, millis};

/// Tells both kinds of time.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    wall_offset_ms: Arc<AtomicI64>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]
    pub fn system() -> Self {
        Self { start: Instant::now(), wall_offset_ms: Arc::default() }
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

    /// Milliseconds since 1970, plus the offset.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]
    pub fn wall(&self) -> Wall {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Wall(millis(since).saturating_add_signed(self.wall_offset_ms.load(Ordering::Relaxed)))
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
