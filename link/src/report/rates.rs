//! What a node did lately: rates, from totals at two times.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::time::Mono;

use crate::node::Node;

/// Rates are measured over this.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Clock ticks of `/proc`, a second; fixed on Linux.
const TICKS_PER_S: u64 = 100;

/// Rates, and the totals from which the next ones are worked out.
#[derive(Clone, Copy, Default)]
pub(super) struct Rates {
    pub(super) egress_bps: u64,
    pub(super) handshakes_per_s: u32,
    pub(super) cpu_permille: u16,
    measured: Measure,
}

/// Totals at some time.
#[derive(Clone, Copy, Default)]
struct Measure {
    at: Mono,
    bytes_out: u64,
    logins: u64,
    cpu_ticks: u64,
}

impl Rates {
    /// Rates that are first known a second after `now`.
    pub(super) fn new(now: Mono) -> Self {
        Self { measured: Measure { at: now, ..Measure::default() }, ..Self::default() }
    }

    /// Measures, if it is time to.
    pub(super) fn measure(&mut self, node: &Node) {
        let now = node.clock.mono();
        let elapsed = now.since(self.measured.at);
        if elapsed < MEASURE_EVERY {
            return;
        }
        let measured = Measure {
            at: now,
            bytes_out: node.traffic.bytes_out.load(Ordering::Relaxed),
            logins: node.traffic.logins.load(Ordering::Relaxed),
            cpu_ticks: cpu_ticks(),
        };
        let before = self.measured;
        let elapsed_ms = proto::time::millis(elapsed).max(1);
        let per_s =
            |now: u64, then: u64| now.saturating_sub(then).saturating_mul(1000) / elapsed_ms;
        let cores = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
        let cpu = per_s(measured.cpu_ticks, before.cpu_ticks) * 1000 / (TICKS_PER_S * cores);
        *self = Self {
            egress_bps: per_s(measured.bytes_out, before.bytes_out) * 8,
            handshakes_per_s: u32::try_from(per_s(measured.logins, before.logins))
                .unwrap_or(u32::MAX),
            cpu_permille: u16::try_from(cpu).unwrap_or(1000).min(1000),
            measured,
        };
    }
}

/// CPU time of this process in ticks; 0 where `/proc` does not tell.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold spaces; user and system time are 12th and 13th behind it.
    let behind = stat.rsplit_once(") ").map_or("", |(_, it)| it);
    let times = behind.split(' ').skip(11).take(2);
    times.filter_map(|it| it.parse::<u64>().ok()).sum()
}
