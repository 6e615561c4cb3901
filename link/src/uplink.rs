//! What viewers do, gathered for some milliseconds into one record per partition.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, PartitionNo, Publish, PublishError, Topic};
use parking_lot::Mutex;
use proto::envelope::{Act, UplinkBatch, UplinkEntry};
use proto::frame::{Ack, Downlink, Outcome};
use proto::id::{Cid, UnitId};
use proto::limits::{ENVELOPE_ENTRIES_MAX, RECORD_BYTES_MAX};
use proto::verdict::{Reason, Verdict};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::ms;
use crate::line::Mail;
use crate::node::Node;

/// Time the bus has to take records; then their senders are told `busy`.
const PUBLISH_MAX: Duration = Duration::from_secs(5);
/// When a sender who was told `busy` may try again.
pub(crate) const BUSY_RETRY_MS: u32 = 1000;
/// Bytes of an entry besides its names and text, generously.
const ENTRY_BYTES: usize = 160;
/// Bytes of a batch's entries; the rest of a record is for the batch itself.
const BATCH_BYTES_MAX: usize = RECORD_BYTES_MAX / 4 * 3;

/// Entries on their way.
#[derive(Debug)]
pub(crate) struct Uplink {
    topic: Topic,
    queues: Vec<Mutex<Vec<UplinkEntry>>>,
    entries_max: usize,
    pending: Notify,
}

/// The queue of the partition is full.
#[derive(Debug)]
pub(crate) struct Full;

impl Uplink {
    pub(crate) fn new(unit: UnitId, entries_max: usize) -> Self {
        let topic = bus::topic::uplink(unit);
        let queues = (0..topic.partitions).map(|_| Mutex::default()).collect();
        Self { topic, queues, entries_max, pending: Notify::new() }
    }

    /// Queues an entry.
    pub(crate) fn push(&self, entry: UplinkEntry) -> Result<(), Full> {
        let partition = self.topic.partition_of_viewer(&entry.room, &entry.viewer);
        {
            let mut queue = self.queues[partition.0 as usize].lock();
            if queue.len() >= self.entries_max {
                return Err(Full);
            }
            queue.push(entry);
        }
        self.pending.notify_one();
        Ok(())
    }

    /// Takes everything, in batches.
    fn take(&self) -> Vec<(PartitionNo, Vec<UplinkEntry>)> {
        let mut batches = Vec::new();
        for (partition, queue) in (0..).map(PartitionNo).zip(&self.queues) {
            let entries = std::mem::take(&mut *queue.lock());
            let mut batch = Vec::new();
            let mut bytes = 0;
            for entry in entries {
                let size = size(&entry);
                if batch.len() >= ENVELOPE_ENTRIES_MAX || bytes + size > BATCH_BYTES_MAX {
                    batches.push((partition, std::mem::take(&mut batch)));
                    bytes = 0;
                }
                bytes += size;
                batch.push(entry);
            }
            if !batch.is_empty() {
                batches.push((partition, batch));
            }
        }
        batches
    }
}

/// Publishes until `done`, then what is left.
pub(crate) async fn run(
    node: Arc<Node>,
    bus: Arc<dyn Bus>,
    done: CancellationToken,
) -> anyhow::Result<()> {
    loop {
        let ended = tokio::select! {
            () = node.uplink.pending.notified() => false,
            () = done.cancelled() => true,
        };
        if !ended {
            node.clock.sleep(ms(node.config.uplink_ms)).await;
        }
        publish(&node, bus.as_ref()).await;
        if ended {
            return Ok(());
        }
    }
}

async fn publish(node: &Node, bus: &dyn Bus) {
    let batches = node.uplink.take();
    if batches.is_empty() {
        return;
    }
    let (records, entries): (Vec<_>, Vec<_>) = batches
        .into_iter()
        .map(|(partition, entries)| {
            let batch = UplinkBatch { node: node.config.bus_node(), entries };
            let record = Publish {
                topic: node.uplink.topic.clone(),
                partition,
                term: None,
                key: None,
                value: batch.encode(),
            };
            (record, batch.entries)
        })
        .unzip();
    let results = tokio::time::timeout(PUBLISH_MAX, bus.publish(records)).await;
    let results = results.unwrap_or_else(|_| vec![Err(PublishError::Away); entries.len()]);
    for (result, entries) in results.into_iter().zip(entries) {
        if let Err(error) = result {
            tracing::debug!(%error, entries = entries.len(), "the bus did not take acts");
            refuse(node, entries);
        }
    }
}

/// Tells the senders.
fn refuse(node: &Node, entries: Vec<UplinkEntry>) {
    for entry in entries {
        node.counts.busy.inc();
        match entry.act {
            Act::Comment { cid, .. } => {
                node.counts.dropped(Reason::Busy);
                let frame = drop_frame(cid, Reason::Busy, BUSY_RETRY_MS);
                node.lines.put(entry.session, Mail::Frame(frame));
            }
            Act::Leave => node.counts.leaves_untold.inc(),
            Act::Join { .. } | Act::Like { .. } => {}
        }
    }
}

/// The answer to a comment that was not passed on.
pub(crate) fn drop_frame(cid: Cid, reason: Reason, retry_after_ms: u32) -> bytes::Bytes {
    let outcome = Outcome::Verdict(Verdict::Drop { reason, retry_after_ms });
    Downlink::Ack(Ack { cid, outcome }).encode()
}

fn size(entry: &UplinkEntry) -> usize {
    let text = match &entry.act {
        Act::Comment { text, .. } => text.len(),
        Act::Join { .. } | Act::Leave | Act::Like { .. } => 0,
    };
    ENTRY_BYTES + entry.room.as_str().len() + entry.viewer.as_str().len() + text
}
