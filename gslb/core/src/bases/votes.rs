//! What viewers said of a base in the last seconds.

use proto::quality::BaseGauge;
use proto::time::Mono;

/// Seconds that count. Viewers report every 5 to 10 s: that many seconds hear of a third of them.
const SECONDS: usize = 3;
/// No viewer's milliseconds weigh more than this.
const FETCH_MS_MAX: u32 = 10_000;

/// Votes by second; the last entry is the running one.
#[derive(Clone, Debug, Default)]
pub(super) struct Votes {
    seconds: [Second; SECONDS],
    heard: Mono,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    reports: u32,
    bad: u32,
    /// Sum over the reports.
    fetch_ms: u64,
}

impl Votes {
    /// Counts a link's second; gives how many of its votes were bad.
    pub(super) fn take(&mut self, gauge: &BaseGauge, now: Mono) -> u32 {
        let bad = gauge.bad.min(gauge.reports);
        if gauge.reports > 0 {
            self.heard = now;
        }
        let [.., second] = &mut self.seconds;
        second.reports = second.reports.saturating_add(gauge.reports);
        second.bad = second.bad.saturating_add(bad);
        let fetch_ms = u64::from(gauge.fetch_ms.min(FETCH_MS_MAX));
        second.fetch_ms += fetch_ms * u64::from(gauge.reports);
        bad
    }

    /// A second is over.
    pub(super) fn turn(&mut self) {
        self.seconds.rotate_left(1);
        let [.., second] = &mut self.seconds;
        *second = Second::default();
    }

    /// Votes, and how many of them are bad.
    pub(super) fn sum(&self) -> (u32, u32) {
        self.seconds.iter().fold((0, 0), |(reports, bad), it| {
            (it.reports.saturating_add(reports), it.bad.saturating_add(bad))
        })
    }

    /// Thousandths of the votes that are bad, if there are at least so many votes.
    pub(super) fn bad_permille(&self, reports_min: u32) -> Option<u32> {
        let (reports, bad) = self.sum();
        let permille = (u64::from(bad) * 1000).checked_div(reports.into())?;
        (reports >= reports_min).then_some(u32::try_from(permille).unwrap_or(1000))
    }

    /// Mean milliseconds of a fetch.
    pub(super) fn fetch_ms(&self) -> u32 {
        let sum: u64 = self.seconds.iter().map(|it| it.fetch_ms).sum();
        let mean = sum.checked_div(self.sum().0.into()).unwrap_or(0);
        u32::try_from(mean).unwrap_or(u32::MAX)
    }

    /// When somebody last said something.
    pub(super) const fn heard(&self) -> Mono {
        self.heard
    }
}
