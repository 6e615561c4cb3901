//! CPU time, user and system together, and a clock for what takes less than a microsecond.

use std::time::Duration;

use kit::clock::Clock;
use rustix::time::{ClockId, clock_gettime};

/// What all threads of this process have used.
pub(crate) fn process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// What this thread has used.
pub(crate) fn thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// The time of the clock that nobody sets, in nanoseconds.
pub(crate) fn nanos() -> u64 {
    u64::try_from(read(ClockId::Monotonic).as_nanos()).unwrap_or(u64::MAX)
}

/// A while of this process, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// CPU time.
    pub(crate) used: f64,
    /// By the clock.
    pub(crate) lasted: f64,
}

impl Stretch {
    /// What the counters stand at.
    pub(crate) fn begin(clock: &Clock) -> Self {
        Self { used: process().as_secs_f64(), lasted: clock.micros() as f64 / 1e6 }
    }

    /// What has passed.
    pub(crate) fn end(self, clock: &Clock) -> Self {
        let Self { used, lasted } = Self::begin(clock);
        Self { used: used - self.used, lasted: lasted - self.lasted }
    }

    /// CPU time, less what would have been used if this while had been like `rest`.
    pub(crate) fn used_beyond(self, rest: Self) -> f64 {
        self.used - rest.cores() * self.lasted
    }

    /// As many cores were busy.
    pub(crate) fn cores(self) -> f64 {
        self.used / self.lasted
    }
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_of_its_thread_and_of_the_process() {
        let (before, thread_before) = (process(), thread());

        while thread() - thread_before < Duration::from_millis(1) {
            std::hint::spin_loop();
        }

        assert!(process() - before >= Duration::from_millis(1));
    }
}
