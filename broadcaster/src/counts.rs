//! The broadcaster's metrics, each handle fetched once.

use kit::meter::{Meter, list};
use prometheus::{IntCounter, IntGauge};
use proto::head::Tier;
use proto::item::Lane;

/// What became of an item, as a label.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Became {
    Sealed,
    Told,
    Deferred,
    Shed(proto::verdict::Reason),
}

/// All counters. Those with many labels are looked up each time: an item has one fate, so that is
/// some hundred times a second and room.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    meter: Meter,
    pub(crate) rooms: IntGauge,
    pub(crate) flushes: IntCounter,
    pub(crate) seals: IntCounter,
    pub(crate) held: IntGauge,
    pub(crate) live_viewers: IntGauge,
    pub(crate) live_lagged: IntCounter,
    pub(crate) stores_refusing: IntGauge,
}

impl Counts {
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            meter: meter.clone(),
            rooms: meter.gauge(list::BROADCASTER_ROOMS, &[]),
            flushes: meter.counter(list::BROADCASTER_FLUSHES_TOTAL, &[]),
            seals: meter.counter(list::BROADCASTER_SEALS_TOTAL, &[]),
            held: meter.gauge(list::BROADCASTER_HELD_REQUESTS, &[]),
            live_viewers: meter.gauge(list::BROADCASTER_LIVE_VIEWERS, &[]),
            live_lagged: meter.counter(list::BROADCASTER_LIVE_LAGGED_TOTAL, &[]),
            stores_refusing: meter.gauge(list::BROADCASTER_STORES_REFUSING, &[]),
        }
    }

    pub(crate) fn item(&self, lane: Lane, became: Became) {
        let fate = match became {
            Became::Sealed => "sealed",
            Became::Told => "told_again",
            Became::Deferred => "deferred",
            Became::Shed(reason) => reason.name(),
        };
        self.meter.counter(list::BROADCASTER_ITEMS_TOTAL, &[lane.name(), fate]).inc();
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

    pub(crate) fn purge(&self, outcome: &str) {
        self.meter.counter(list::BROADCASTER_PURGES_TOTAL, &[outcome]).inc();
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
