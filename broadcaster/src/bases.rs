//! Where segments are served: what viewers who poll are told of it, and what this process says.
//!
//! Which bases there are and what they weigh is decided by the gslb that leads; it hears from here
//! where this process serves, and how its stores take slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bus::{Bus, Publish, topic};
use kit::clock::Clock;
use proto::head::Base;
use proto::id::NodeId;
use proto::quality::{BaseGauges, StoreGauge};
use proto::time::{Mono, millis};
use tokio_util::sync::CancellationToken;

use crate::counts::Counts;
use crate::opener::Opener;

/// Weights stand in segments for so long after they changed: whoever polls has fetched one by then.
const RECENT: Duration = Duration::from_secs(60);
/// Between two announcements.
const EVERY: Duration = Duration::from_secs(1);

/// The bases and weights that `control` names.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    all: Vec<Base>,
    changed: Option<Mono>,
}

impl Bases {
    /// `control` names these.
    pub(crate) fn learn(&mut self, bases: Vec<Base>, now: Mono) {
        if bases != self.all {
            self.all = bases;
            self.changed = Some(now);
        }
    }

    /// For a head, which newcomers read.
    pub(crate) fn all(&self) -> &[Base] {
        &self.all
    }

    /// For a segment: nothing, unless they changed lately.
    pub(crate) fn recent(&self, now: Mono) -> &[Base] {
        let is_recent = self.changed.is_some_and(|it| now.since(it) < RECENT);
        if is_recent { &self.all } else { &[] }
    }
}

/// How stores take slots, since the last announcement.
#[derive(Debug, Default)]
pub(crate) struct Storing {
    stored: AtomicU32,
    unstored: AtomicU32,
    store_ms: AtomicU64,
}

impl Storing {
    /// A store had a slot after this time.
    pub(crate) fn stored(&self, took: Duration) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        self.store_ms.fetch_add(millis(took), Ordering::Relaxed);
    }

    /// No store had it in time.
    pub(crate) fn unstored(&self) {
        self.unstored.fetch_add(1, Ordering::Relaxed);
    }

    /// What it was since the last time.
    pub(crate) fn take(&self, base: &Base) -> StoreGauge {
        let stored = self.stored.swap(0, Ordering::Relaxed);
        let store_ms = self.store_ms.swap(0, Ordering::Relaxed);
        let mean = store_ms.checked_div(stored.into()).unwrap_or(0);
        StoreGauge {
            base: base.base.clone(),
            weight: base.weight,
            stored,
            unstored: self.unstored.swap(0, Ordering::Relaxed),
            store_ms: u32::try_from(mean).unwrap_or(u32::MAX),
        }
    }
}

/// Says on `gauges` where this process serves segments, and how well.
#[derive(Debug)]
pub(crate) struct Announcer {
    pub(crate) node: NodeId,
    /// Each base, and how slots get to where it serves them from.
    pub(crate) places: Vec<(Base, Arc<Storing>)>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
}

impl Announcer {
    /// One with nothing to say yet, on the bus of `opener`.
    pub(crate) fn of(opener: &Opener, node: NodeId) -> Self {
        let Opener { bus, clock, counts, .. } = opener.clone();
        Self { node, places: Vec::new(), bus, clock, counts }
    }

    /// Once a second until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut next = self.clock.mono();
        loop {
            tokio::select! {
                () = self.clock.sleep_until(next) => {}
                () = shutdown.cancelled() => return Ok(()),
            }
            next = (next + EVERY).max(self.clock.mono());
            if tokio::time::timeout(EVERY, self.say()).await.is_err() {
                self.counts.publish_error("gauges", "timeout");
            }
        }
    }

    async fn say(&self) {
        let Self { node, places, clock, .. } = self;
        let records = places.iter().map(|(base, storing)| {
            let store = Some(storing.take(base));
            let gauges = BaseGauges { node: *node, at: clock.wall(), bases: Vec::new(), store };
            let topic = topic::gauges();
            let partition = topic.partition_of_node(*node);
            Publish { topic, partition, term: None, key: None, value: gauges.encode() }
        });
        for result in self.bus.publish(records.collect()).await {
            if result.is_err() {
                self.counts.publish_error("gauges", "later");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(weight: u32) -> Base {
        Base { base: "https://origin.example".to_owned(), weight }
    }

    #[test]
    fn segments_name_bases_for_a_minute_after_a_change_and_heads_always() {
        let mut bases = Bases::default();
        assert!(bases.recent(Mono(0)).is_empty());

        bases.learn(vec![base(100)], Mono(1_000));
        bases.learn(vec![base(100)], Mono(50_000));

        assert_eq!(bases.recent(Mono(60_999)), [base(100)]);
        assert!(bases.recent(Mono(61_000)).is_empty());
        assert_eq!(bases.all(), [base(100)]);
        bases.learn(vec![base(1)], Mono(70_000));
        assert_eq!(bases.recent(Mono(70_001)), [base(1)]);
    }

    #[test]
    fn an_announcement_counts_from_the_last_one() {
        let storing = Storing::default();
        storing.stored(Duration::from_millis(10));
        storing.stored(Duration::from_millis(20));
        storing.unstored();

        let first = storing.take(&base(100));
        let second = storing.take(&base(100));

        assert_eq!((first.stored, first.unstored, first.store_ms), (2, 1, 15));
        assert_eq!((second.stored, second.unstored, second.store_ms), (0, 0, 0));
    }
}
