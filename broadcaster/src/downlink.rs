//! Flushes to the units, each through a queue of its own, so that a dead unit delays nobody.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, Publish, PublishError, topic};
use bytes::Bytes;
use kit::clock::Clock;
use kit::task::Tasks;
use proto::id::UnitId;
use tokio::sync::mpsc;

use crate::counts::Counts;

/// Records sent to a unit in one call.
const RECORDS_MAX: usize = 64;
/// Longest time for one call.
const PUBLISH_MAX: Duration = Duration::from_secs(1);
/// A record that a unit did not take for so long is past its display time.
const ATTEMPTS_MAX: u32 = 10;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The queues of all units.
#[derive(Debug)]
pub(crate) struct Downlink {
    units: Vec<(bus::Topic, mpsc::Sender<Publish>)>,
    counts: Counts,
}

impl Downlink {
    /// Starts a task for each unit; it ends when the [`Downlink`] is dropped and its queue is sent.
    pub(crate) fn start(
        buses: BTreeMap<UnitId, Arc<dyn Bus>>,
        queues_max: usize,
        clock: &Clock,
        counts: &Counts,
        tasks: &mut Tasks,
    ) -> Self {
        let mut units = Vec::new();
        for (unit, bus) in buses {
            let (sender, queue) = mpsc::channel(queues_max);
            units.push((topic::downlink(unit), sender));
            let (clock, counts) = (clock.clone(), counts.clone());
            tasks.spawn("downlink", async move {
                run(bus, queue, clock, counts).await;
                Ok(())
            });
        }
        Self { units, counts: counts.clone() }
    }

    /// Puts a record into every unit's queue; a full queue drops it.
    pub(crate) fn send(&self, partition: bus::PartitionNo, value: &Bytes) {
        for (topic, queue) in &self.units {
            let value = value.clone();
            let record = Publish { topic: topic.clone(), partition, term: None, key: None, value };
            if queue.try_send(record).is_err() {
                self.counts.publish_error("downlink", "queue_full");
            }
        }
    }
}

async fn run(bus: Arc<dyn Bus>, mut queue: mpsc::Receiver<Publish>, clock: Clock, counts: Counts) {
    let mut records = Vec::new();
    while queue.recv_many(&mut records, RECORDS_MAX).await > 0 {
        for _ in 0..ATTEMPTS_MAX {
            records = publish(&*bus, records, &counts).await;
            if records.is_empty() {
                break;
            }
            if queue.is_closed() {
                // The process ends, and the unit's viewers have the segments.
                return;
            }
            clock.sleep(PAUSE).await;
        }
        for _ in records.drain(..) {
            counts.publish_error("downlink", "given_up");
        }
    }
}

/// Gives back the records that may be tried again, in order. Receivers drop what comes twice.
async fn publish(bus: &dyn Bus, records: Vec<Publish>, counts: &Counts) -> Vec<Publish> {
    let Ok(results) = tokio::time::timeout(PUBLISH_MAX, bus.publish(records.clone())).await else {
        counts.publish_error("downlink", "timeout");
        return records;
    };
    let mut left = Vec::new();
    for (record, result) in records.into_iter().zip(results) {
        match result {
            Ok(_) => {}
            Err(PublishError::Busy | PublishError::Away) => left.push(record),
            Err(error) => {
                counts.publish_error("downlink", "refused");
                tracing::error!(%error, "a unit's bus refuses flushes");
            }
        }
    }
    left
}
