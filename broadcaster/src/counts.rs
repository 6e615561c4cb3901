//! The broadcaster's metrics, each handle fetched once.

use kit::meter::{Meter, list};
use prometheus::{Histogram, IntCounter, IntGauge};
use proto::head::Tier;
use proto::item::Lane;

/// What became of an item, as a label.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Became {
    Sealed,
    Told,
    Merged,
    Deferred,
    Shed(proto::verdict::Reason),
}

/// All counters. Those with many labels are looked up each time, of items once for all in a row
/// that became the same.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    meter: Meter,
    pub(crate) rooms: IntGauge,
    pub(crate) flushes: IntCounter,
    pub(crate) seals: IntCounter,
    pub(crate) tick_late: Histogram,
    pub(crate) held: IntGauge,
    pub(crate) live_viewers: IntGauge,
    pub(crate) live_lagged: IntCounter,
    pub(crate) stores_refusing: IntGauge,
    pub(crate) unsealed: IntGauge,
    pub(crate) archive_recorded: IntCounter,
    pub(crate) archive_lost: IntCounter,
}

impl Counts {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            meter: meter.clone(),
            rooms: meter.gauge(list::BROADCASTER_ROOMS, &[]),
            flushes: meter.counter(list::BROADCASTER_FLUSHES_TOTAL, &[]),
            seals: meter.counter(list::BROADCASTER_SEALS_TOTAL, &[]),
            tick_late: meter.histogram(list::BROADCASTER_TICK_LATE_SECONDS, &[]),
            held: meter.gauge(list::BROADCASTER_HELD_REQUESTS, &[]),
            live_viewers: meter.gauge(list::BROADCASTER_LIVE_VIEWERS, &[]),
            live_lagged: meter.counter(list::BROADCASTER_LIVE_LAGGED_TOTAL, &[]),
            stores_refusing: meter.gauge(list::BROADCASTER_STORES_REFUSING, &[]),
            unsealed: meter.gauge(list::BROADCASTER_KEYLESS_SLOTS, &[]),
            archive_recorded: meter.counter(list::BROADCASTER_ARCHIVE_SLOTS_TOTAL, &["recorded"]),
            archive_lost: meter.counter(list::BROADCASTER_ARCHIVE_SLOTS_TOTAL, &["lost"]),
        }
    }

    pub(crate) fn item(&self, lane: Lane, became: Became) {
        self.items(lane, became, 1);
    }

    /// Counts items of one lane that became the same.
    pub(crate) fn items(&self, lane: Lane, became: Became, items: usize) {
        let fate = match became {
            Became::Sealed => "sealed",
            Became::Told => "told_again",
            Became::Merged => "merged",
            Became::Deferred => "deferred",
            Became::Shed(reason) => reason.name(),
        };
        let items = u64::try_from(items).unwrap_or(u64::MAX);
        self.meter.counter(list::BROADCASTER_ITEMS_TOTAL, &[lane.name(), fate]).inc_by(items);
    }

    pub(crate) fn segment_bytes(&self, tier: Tier, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let counter = self.meter.counter(list::BROADCASTER_SEGMENT_BYTES_TOTAL, &[tier.name()]);
        counter.inc_by(bytes);
    }

    pub(crate) fn store_error(&self, store: usize, call: &str) {
        let labels = [&*store.to_string(), call];
        self.meter.counter(list::BROADCASTER_STORE_ERRORS_TOTAL, &labels).inc();
    }

    /// Slots of sealed rooms that were given up since their key did not come.
    pub(crate) fn lost_slots(&self, slots: usize) {
        let slots = u64::try_from(slots).unwrap_or(u64::MAX);
        self.meter.counter(list::BROADCASTER_KEYLESS_SLOTS_LOST_TOTAL, &[]).inc_by(slots);
    }

    /// A sealed file in a store did not open.
    pub(crate) fn unopened(&self) {
        self.meter.counter(list::BROADCASTER_UNOPENED_FILES_TOTAL, &[]).inc();
    }

    pub(crate) fn key_fetch(&self, outcome: &str) {
        self.meter.counter(list::BROADCASTER_KEY_FETCHES_TOTAL, &[outcome]).inc();
    }

    pub(crate) fn archive_error(&self, call: &str) {
        self.meter.counter(list::BROADCASTER_ARCHIVE_ERRORS_TOTAL, &[call]).inc();
    }

    pub(crate) fn purge(&self, outcome: &str) {
        self.meter.counter(list::BROADCASTER_PURGES_TOTAL, &[outcome]).inc();
    }

    /// Whether a push is taken.
    pub(crate) fn push_up(&self, push: usize) -> IntGauge {
        self.meter.gauge(list::BROADCASTER_PUSHES_UP, &[&*push.to_string()])
    }

    pub(crate) fn push_connection(&self, push: usize, outcome: &str) {
        let labels = [&*push.to_string(), outcome];
        self.meter.counter(list::BROADCASTER_PUSH_CONNECTIONS_TOTAL, &labels).inc();
    }

    pub(crate) fn push_frames(&self, push: usize, frames: u64) {
        let labels = [&*push.to_string()];
        self.meter.counter(list::BROADCASTER_PUSH_FRAMES_TOTAL, &labels).inc_by(frames);
    }

    pub(crate) fn push_lost(&self, push: usize, moments: u64) {
        let labels = [&*push.to_string()];
        self.meter.counter(list::BROADCASTER_PUSH_LOST_MOMENTS_TOTAL, &labels).inc_by(moments);
    }

    pub(crate) fn publish_error(&self, topic: &str, why: &str) {
        self.meter.counter(list::BROADCASTER_PUBLISH_ERRORS_TOTAL, &[topic, why]).inc();
    }

    pub(crate) fn skipped(&self, topic: &str) {
        self.meter.counter(list::BROADCASTER_RECORDS_SKIPPED_TOTAL, &[topic]).inc();
    }

    pub(crate) fn answer(&self, status: u16) {
        let labels = [&*status.to_string()];
        self.meter.counter(list::BROADCASTER_ORIGIN_ANSWERS_TOTAL, &labels).inc();
    }
}
