//! CPU time, user and system together.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What all threads of this process have used.
pub(crate) fn process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// What this thread has used.
pub(crate) fn thread() -> Duration {
    read(ClockId::ThreadCPUTime)
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
