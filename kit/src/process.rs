//! What this process takes from its machine.

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
    fn this_process_uses_memory() {
        assert!(resident_bytes() > 100_000);
    }
}
