//! What this process takes from its machine.

pub mod kernel;

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::meter::{Meter, list};

/// Bytes of memory in use (resident set); 0 where `/proc` does not tell.
#[must_use]
pub fn resident_bytes() -> u64 {
    const KIB: u64 = 1024;
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        })
        .map_or(0, |kib| kib * KIB)
}

/// Raises the soft limit of open files to the hard one, and gives it.
///
/// # Errors
/// When the system refuses.
pub fn raise_descriptors() -> io::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum.unwrap_or(u64::MAX))
}

/// Sets the process's gauges; called when they are about to be read.
pub fn measure(meter: &Meter) {
    let resident = i64::try_from(resident_bytes()).unwrap_or(i64::MAX);
    meter.gauge(list::PROCESS_RESIDENT_BYTES, &[]).set(resident);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        let tasks = i64::try_from(runtime.metrics().num_alive_tasks()).unwrap_or(i64::MAX);
        meter.gauge(list::PROCESS_TASKS, &[]).set(tasks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_of_descriptors_becomes_the_hard_one() {
        let raised = raise_descriptors().unwrap();

        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!((current, current.unwrap_or(u64::MAX)), (maximum, raised));
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(resident_bytes() > 100_000);
    }
}
