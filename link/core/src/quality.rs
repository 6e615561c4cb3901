//! What this node's viewers say of segment bases, summed up for a second.
//!
//! A report is one vote for each base in it, whatever numbers it has, and a session has one report
//! in [`REPORT_GAP_MIN`]: one viewer moves little. Bases that nobody handed out are not listened to,
//! and nobody can say that one serves well without a fetch; that it is bad, who waits for the first
//! answer can.

use std::time::Duration;

use proto::frame::Report;
use proto::head::Base;
use proto::limits::BASES_MAX;
use proto::quality::BaseGauge;

/// Reports of one session come at most this often; clients send them every 5 to 10 s.
pub const REPORT_GAP_MIN: Duration = Duration::from_secs(4);
/// No report's milliseconds count for more.
const FETCH_MS_MAX: u32 = 10_000;

/// Votes on the bases that are handed out.
#[derive(Debug, Default)]
pub struct Quality(Vec<Votes>);

#[derive(Debug, Default)]
struct Votes {
    base: String,
    reports: u32,
    bad: u32,
    fetch_ms: u64,
}

/// How many votes of one report counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counted {
    /// The base serves well.
    pub good: u64,
    /// It does not.
    pub bad: u64,
    /// Nobody hands out such a base, it was named twice, or serves well without a fetch.
    pub unknown: u64,
}

impl Quality {
    /// These bases are handed out now; votes on others are forgotten.
    pub fn learn(&mut self, bases: &[Base]) {
        let mut before = std::mem::take(&mut self.0);
        for Base { base, .. } in bases.iter().take(BASES_MAX) {
            let known = before.iter().position(|it| it.base == *base);
            let new = || Votes { base: base.clone(), ..Votes::default() };
            self.0.push(known.map_or_else(new, |it| before.swap_remove(it)));
        }
    }

    /// Counts a viewer's report.
    pub fn take(&mut self, report: &Report) -> Counted {
        let mut counted = Counted::default();
        let mut is_taken = [false; BASES_MAX];
        for it in &report.bases {
            let index = self.0.iter().position(|votes| votes.base == it.base);
            let says_something = it.fetches > 0 || it.is_bad;
            let Some(index) = index.filter(|index| says_something && !is_taken[*index]) else {
                counted.unknown += 1;
                continue;
            };
            is_taken[index] = true;
            let votes = &mut self.0[index];
            votes.reports = votes.reports.saturating_add(1);
            votes.bad = votes.bad.saturating_add(it.is_bad.into());
            votes.fetch_ms += u64::from(it.fetch_ms.min(FETCH_MS_MAX));
            counted.bad += u64::from(it.is_bad);
            counted.good += u64::from(!it.is_bad);
        }
        counted
    }

    /// The sums since the last time; bases without votes are left out.
    pub fn drain(&mut self) -> Vec<BaseGauge> {
        let voted = self.0.iter_mut().filter(|it| it.reports > 0);
        let gauge = |it: &mut Votes| {
            let gauge = BaseGauge {
                base: it.base.clone(),
                reports: it.reports,
                bad: it.bad,
                fetch_ms: u32::try_from(it.fetch_ms / u64::from(it.reports)).unwrap_or(u32::MAX),
            };
            (it.reports, it.bad, it.fetch_ms) = (0, 0, 0);
            gauge
        };
        voted.map(gauge).collect()
    }
}

#[cfg(test)]
mod tests {
    use proto::quality::BaseReport;

    use super::*;

    fn bases(names: &[&str]) -> Vec<Base> {
        names.iter().map(|it| Base { base: (*it).to_owned(), weight: 1 }).collect()
    }

    fn report(bases: &[(&str, u32, bool)]) -> Report {
        let base = |&(base, fetch_ms, is_bad): &(&str, u32, bool)| BaseReport {
            base: base.to_owned(),
            fetches: u32::MAX,
            failures: 0,
            late: 0,
            fetch_ms,
            is_bad,
        };
        Report { bases: bases.iter().map(base).collect(), ..Report::default() }
    }

    #[test]
    fn a_report_is_one_vote_a_base_whatever_is_in_it() {
        let mut quality = Quality::default();
        quality.learn(&bases(&["a", "b"]));

        let liar = report(&[("a", u32::MAX, true), ("a", 1, true), ("c", 1, true)]);
        assert_eq!(quality.take(&liar), Counted { good: 0, bad: 1, unknown: 2 });
        quality.take(&report(&[("a", 100, false), ("b", 50, false)]));

        let [a, b] = &quality.drain()[..] else { panic!("two bases have votes") };
        assert_eq!((a.reports, a.bad, a.fetch_ms), (2, 1, 5_050));
        assert_eq!((b.reports, b.bad, b.fetch_ms), (1, 0, 50));
        assert!(quality.drain().is_empty());
    }

    #[test]
    fn without_a_fetch_a_base_may_be_bad_but_not_well() {
        let mut quality = Quality::default();
        quality.learn(&bases(&["a", "b"]));
        let mut report = report(&[("a", 0, false), ("b", 0, true)]);
        report.bases.iter_mut().for_each(|it| it.fetches = 0);

        let counted = quality.take(&report);

        assert_eq!(counted, Counted { good: 0, bad: 1, unknown: 1 });
        let [b] = &quality.drain()[..] else { panic!("one base has votes") };
        assert_eq!((b.base.as_str(), b.reports, b.bad), ("b", 1, 1));
    }

    #[test]
    fn votes_stay_when_weights_change_and_go_with_their_base() {
        let mut quality = Quality::default();
        quality.learn(&bases(&["a", "b"]));
        quality.take(&report(&[("a", 1, true), ("b", 1, false)]));

        quality.learn(&bases(&["c", "b"]));

        let [b] = &quality.drain()[..] else { panic!("one base has votes") };
        assert_eq!(b.base, "b");
        quality.learn(&[]);
        assert_eq!(quality.take(&report(&[("b", 1, true)])).unknown, 1);
    }
}
