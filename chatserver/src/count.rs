//! The chatserver's metrics, fetched once.

use kit::meter::{Meter, list};
use prometheus::{Histogram, IntCounter, IntGauge};
use proto::item::Lane;
use proto::verdict::{Reason, Verdict};

/// Handles of everything that is counted.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    meter: Meter,
    admitted: IntCounter,
    shadowed: IntCounter,
    /// In the order of [`Reason::ALL`].
    refused: Vec<IntCounter>,
    pub(crate) joins: IntCounter,
    pub(crate) leaves: IntCounter,
    pub(crate) likes: IntCounter,
    pub(crate) merged: IntCounter,
    pub(crate) shed: IntCounter,
    pub(crate) damaged: IntCounter,
    pub(crate) uplink_age: Histogram,
    pub(crate) turn: Histogram,
    pub(crate) skipped: IntCounter,
    pub(crate) away: IntCounter,
    pub(crate) rooms: IntGauge,
    pub(crate) asked: IntGauge,
    pub(crate) held: IntGauge,
    pub(crate) facts_ignored: IntGauge,
    pub(crate) untold: IntCounter,
    pub(crate) open_entries: IntGauge,
    pub(crate) republished: IntCounter,
    pub(crate) closed: IntCounter,
    pub(crate) flow_nodes: IntGauge,
    pub(crate) rooms_sampled: IntGauge,
    pub(crate) keeps: IntCounter,
    pub(crate) devices_closed: IntCounter,
    pub(crate) devices_failed: IntCounter,
    pub(crate) limited: IntCounter,
    pub(crate) sweep_bytes: IntGauge,
    pub(crate) sweep_forgotten: IntCounter,
}

/// What became of a request for a gift or a notice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gift {
    /// Journaled.
    Accepted,
    /// Its key came before, with the same content.
    Repeated,
    /// Its key came before, with other content.
    Reused,
    /// Its lane cannot show it soon enough.
    OverShare,
}

impl Gift {
    const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Repeated => "repeated",
            Self::Reused => "reused",
            Self::OverShare => "over_share",
        }
    }
}

impl Counts {
    pub(crate) fn new(meter: Meter) -> Self {
        let comments = |verdict: &str| meter.counter(list::CHATSERVER_COMMENTS_TOTAL, &[verdict]);
        let acts = |act: &str| meter.counter(list::CHATSERVER_ACTS_TOTAL, &[act]);
        let fates = |fate: &str| meter.counter(list::CHATSERVER_FATES_TOLD_TOTAL, &[fate]);
        Self {
            admitted: comments("admit"),
            shadowed: comments("shadow"),
            refused: Reason::ALL.iter().map(|it| comments(it.name())).collect(),
            joins: acts("join"),
            leaves: acts("leave"),
            likes: acts("like"),
            merged: fates("merged"),
            shed: fates("shed"),
            damaged: meter.counter(list::CHATSERVER_RECORDS_DAMAGED_TOTAL, &[]),
            uplink_age: meter.histogram(list::CHATSERVER_UPLINK_AGE_SECONDS, &[]),
            turn: meter.histogram(list::CHATSERVER_TURN_SECONDS, &[]),
            skipped: meter.counter(list::CHATSERVER_RECORDS_SKIPPED_TOTAL, &[]),
            away: meter.counter(list::CHATSERVER_BUS_AWAY_TOTAL, &[]),
            rooms: meter.gauge(list::CHATSERVER_ROOMS, &[]),
            asked: meter.gauge(list::CHATSERVER_ITEMS_ASKED, &[]),
            held: meter.gauge(list::CHATSERVER_COMMENTS_HELD, &[]),
            facts_ignored: meter.gauge(list::CHATSERVER_FACTS_IGNORED, &[]),
            untold: meter.counter(list::CHATSERVER_FACTS_UNTOLD_TOTAL, &[]),
            open_entries: meter.gauge(list::CHATSERVER_JOURNAL_OPEN_ENTRIES, &[]),
            republished: meter.counter(list::CHATSERVER_JOURNAL_REPUBLISHED_TOTAL, &[]),
            closed: meter.counter(list::CHATSERVER_JOURNAL_CLOSED_TOTAL, &[]),
            flow_nodes: meter.gauge(list::CHATSERVER_FLOW_NODES, &[]),
            rooms_sampled: meter.gauge(list::CHATSERVER_ROOMS_SAMPLED, &[]),
            keeps: meter.counter(list::CHATSERVER_KEEPS_TOLD_TOTAL, &[]),
            devices_closed: meter.counter(list::CHATSERVER_DEVICES_CLOSED_TOTAL, &[]),
            devices_failed: meter.counter(list::CHATSERVER_DEVICES_FAILED_TOTAL, &[]),
            sweep_bytes: meter.gauge(list::CHATSERVER_SWEEP_BYTES, &[]),
            sweep_forgotten: meter.counter(list::CHATSERVER_SWEEP_FORGOTTEN_TOTAL, &[]),
            limited: meter.counter(list::CHATSERVER_REQUESTS_LIMITED_TOTAL, &[]),
            meter,
        }
    }

    /// Counts a verdict as it is told to a sender.
    pub(crate) fn verdict(&self, verdict: Verdict) {
        match verdict {
            Verdict::Admit(_) => self.admitted.inc(),
            Verdict::Shadow(_) => self.shadowed.inc(),
            Verdict::Drop { reason, .. } => {
                let counter = Reason::ALL.iter().position(|&it| it == reason);
                if let Some(counter) = counter.and_then(|it| self.refused.get(it)) {
                    counter.inc();
                }
            }
        }
    }

    /// Counts a request for a gift or a notice.
    pub(crate) fn gift(&self, lane: Lane, outcome: Gift) {
        self.meter.counter(list::CHATSERVER_GIFTS_TOTAL, &[lane.name(), outcome.name()]).inc();
    }

    /// Counts a turn of telling the other chatservers and hearing from them.
    pub(crate) fn flow_turn(&self, outcome: &str) {
        self.meter.counter(list::CHATSERVER_FLOW_TURNS_TOTAL, &[outcome]).inc();
    }

    /// Counts comments that were looked at again.
    pub(crate) fn swept(&self, outcome: &str, comments: usize) {
        let counter = self.meter.counter(list::CHATSERVER_SWEPT_COMMENTS_TOTAL, &[outcome]);
        counter.inc_by(u64::try_from(comments).unwrap_or(u64::MAX));
    }

    /// Counts an answered request of the business API.
    pub(crate) fn request(&self, status: u16) {
        self.meter.counter(list::CHATSERVER_REQUESTS_TOTAL, &[&status.to_string()]).inc();
    }
}
