//! This service's metrics, fetched once.

use std::io;
use std::time::Duration;

use channel::Fault;
use kit::meter::{Meter, list};
use link_core::quality::Counted;
use prometheus::{IntCounter, IntGauge};
use proto::close::CloseCode;
use proto::verdict::Reason;

/// Handles of what is counted often; the rest is looked up by label when it happens.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    meter: Meter,
    pub(crate) sessions: IntGauge,
    pub(crate) handshakes: IntGauge,
    pub(crate) frames: IntCounter,
    pub(crate) bytes_out: IntCounter,
    pub(crate) saved_bytes: IntCounter,
    pub(crate) writes: IntCounter,
    pub(crate) skipped: IntCounter,
    pub(crate) outbox_bytes: IntGauge,
    pub(crate) ring_bytes: IntGauge,
    pub(crate) flushes: IntCounter,
    pub(crate) busy: IntCounter,
    pub(crate) capped: IntCounter,
    pub(crate) leaves: IntGauge,
    pub(crate) leaves_untold: IntCounter,
    pub(crate) horizon_s: IntGauge,
    pub(crate) reports: IntCounter,
    pub(crate) damaged: IntCounter,
    pub(crate) policy_refusals: IntCounter,
    pub(crate) owed_joins: IntCounter,
    pub(crate) entry_nodes: IntGauge,
    pub(crate) besieged: IntGauge,
    pub(crate) facts_ignored: IntGauge,
    pub(crate) rooms_refused: IntGauge,
    pub(crate) unkept_uses: IntCounter,
    pub(crate) control_losses: IntCounter,
    pub(crate) retries: IntCounter,
    control_age_ms: IntGauge,
}

impl Counts {
    pub(crate) fn new(meter: Meter) -> Self {
        Self {
            sessions: meter.gauge(list::LINK_SESSIONS, &[]),
            handshakes: meter.gauge(list::LINK_HANDSHAKES, &[]),
            frames: meter.counter(list::LINK_FRAMES_TOTAL, &[]),
            bytes_out: meter.counter(list::LINK_WRITTEN_BYTES_TOTAL, &[]),
            saved_bytes: meter.counter(list::LINK_SAVED_BYTES_TOTAL, &[]),
            writes: meter.counter(list::LINK_WRITES_TOTAL, &[]),
            skipped: meter.counter(list::LINK_SKIPPED_ITEMS_TOTAL, &[]),
            outbox_bytes: meter.gauge(list::LINK_OUTBOX_BYTES, &[]),
            ring_bytes: meter.gauge(list::LINK_RING_BYTES, &[]),
            flushes: meter.counter(list::LINK_FLUSHES_TOTAL, &[]),
            busy: meter.counter(list::LINK_BUSY_ACTS_TOTAL, &[]),
            capped: meter.counter(list::LINK_CAPPED_COMMENTS_TOTAL, &[]),
            leaves: meter.gauge(list::LINK_LEAVES_WAITING, &[]),
            leaves_untold: meter.counter(list::LINK_LEAVES_UNTOLD_TOTAL, &[]),
            horizon_s: meter.gauge(list::LINK_KEYS_HORIZON_SECONDS, &[]),
            reports: meter.counter(list::LINK_LOAD_REPORTS_TOTAL, &[]),
            damaged: meter.counter(list::LINK_DAMAGED_RECORDS_TOTAL, &[]),
            policy_refusals: meter.counter(list::LINK_POLICY_REFUSALS_TOTAL, &[]),
            owed_joins: meter.counter(list::LINK_OWED_JOINS_TOTAL, &[]),
            entry_nodes: meter.gauge(list::LINK_ENTRY_NODES, &[]),
            besieged: meter.gauge(list::LINK_BESIEGED, &[]),
            facts_ignored: meter.gauge(list::LINK_FACTS_IGNORED, &[]),
            rooms_refused: meter.gauge(list::LINK_ROOMS_REFUSED, &[]),
            unkept_uses: meter.counter(list::LINK_UNKEPT_USES_TOTAL, &[]),
            control_losses: meter.counter(list::LINK_CONTROL_LOSSES_TOTAL, &[]),
            retries: meter.counter(list::LINK_RETRIES_TOTAL, &[]),
            control_age_ms: meter.gauge(list::LINK_CONTROL_AGE_MILLISECONDS, &[]),
            meter,
        }
    }

    /// How old the node's knowledge of `control` is.
    pub(crate) fn control_age(&self, age: Duration) {
        self.control_age_ms.set(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    }

    /// A login ended so; the word is `ok` or that of a refusal.
    pub(crate) fn login(&self, outcome: &str) {
        self.meter.counter(list::LINK_LOGINS_TOTAL, &[outcome]).inc();
    }

    /// A join ended so; the word is `in` or that of a refusal.
    pub(crate) fn join(&self, outcome: &str) {
        self.meter.counter(list::LINK_JOINS_TOTAL, &[outcome]).inc();
    }

    /// The nodes' talk about joins went so.
    pub(crate) fn entry_turn(&self, outcome: &str) {
        self.meter.counter(list::LINK_ENTRY_TURNS_TOTAL, &[outcome]).inc();
    }

    /// A connection was not taken at all.
    pub(crate) fn turned_away(&self, why: &str) {
        self.meter.counter(list::LINK_TURNED_AWAY_TOTAL, &[why]).inc();
    }

    /// A connection could not be read any more.
    pub(crate) fn unreadable(&self, error: &io::Error) {
        if let Some(fault) = error.get_ref().and_then(|it| it.downcast_ref::<Fault>()) {
            self.meter.counter(list::LINK_TLS_FAULTS_TOTAL, &[fault.name()]).inc();
        }
    }

    /// A conversation was ended here.
    pub(crate) fn close(&self, code: CloseCode) {
        self.meter.counter(list::LINK_CLOSES_TOTAL, &[code.name()]).inc();
    }

    /// A session was sent away because the node drains.
    pub(crate) fn drained(&self, to: &str) {
        self.meter.counter(list::LINK_DRAINED_SESSIONS_TOTAL, &[to]).inc();
    }

    /// A comment was not passed on.
    pub(crate) fn dropped(&self, reason: Reason) {
        self.meter.counter(list::LINK_DROPPED_COMMENTS_TOTAL, &[reason.name()]).inc();
    }

    /// The keys were asked for.
    pub(crate) fn key_fetch(&self, outcome: &str) {
        self.meter.counter(list::LINK_KEY_FETCHES_TOTAL, &[outcome]).inc();
    }

    /// The keys of sealed rooms were asked for.
    pub(crate) fn room_key_fetch(&self, outcome: &str) {
        self.meter.counter(list::LINK_ROOM_KEY_FETCHES_TOTAL, &[outcome]).inc();
    }

    /// Segments that viewers fetched, or could not.
    pub(crate) fn fetches(&self, outcome: &str, count: u32) {
        self.meter.counter(list::LINK_VIEWER_FETCHES_TOTAL, &[outcome]).inc_by(u64::from(count));
    }

    /// Viewers said how segment bases serve them.
    pub(crate) fn votes(&self, counted: Counted) {
        let Counted { good, bad, unknown } = counted;
        for (vote, count) in [("good", good), ("bad", bad), ("unknown", unknown)] {
            self.meter.counter(list::LINK_BASE_VOTES_TOTAL, &[vote]).inc_by(count);
        }
    }

    /// Records that were gone before this node read them.
    pub(crate) fn lost_records(&self, topic: &str, records: u64) {
        self.meter.counter(list::LINK_LOST_RECORDS_TOTAL, &[topic]).inc_by(records);
    }
}
