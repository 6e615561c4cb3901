//! Getting records onto the bus: batches, deadlines, patience.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bus::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Topic, topic};
use bytes::Bytes;
use kit::clock::Clock;
use kit::health::Part;
use prometheus::IntCounter;
use proto::control::Fact;
use proto::envelope::{Accepted, AcceptedBatch, Reply, ReplyBatch};
use proto::id::{ItemId, NodeId, UnitId};
use proto::limits::ENVELOPE_ENTRIES_MAX;

/// How long the bus may take to answer.
const DEADLINE: Duration = Duration::from_secs(2);
/// Pauses between tries while the bus is away.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Bytes of text in one record: half of what a record may have, for whatever stands around it.
const TEXT_BYTES_PER_RECORD_MAX: usize = proto::limits::RECORD_BYTES_MAX / 2;

/// A bus to write to, and what is known about it.
#[derive(Debug)]
pub(crate) struct Mail {
    bus: Arc<dyn Bus>,
    clock: Clock,
    health: Part,
    away: IntCounter,
    /// Whether the last look found it readable.
    reads: AtomicBool,
    /// Whether it took the last records.
    takes: AtomicBool,
}

/// A record with the ids of its items.
#[derive(Debug)]
pub(crate) struct ItemRecord {
    pub(crate) ids: Vec<ItemId>,
    pub(crate) record: Publish,
}

impl Mail {
    pub(crate) fn new(bus: Arc<dyn Bus>, clock: Clock, health: Part, away: IntCounter) -> Self {
        Self { bus, clock, health, away, reads: true.into(), takes: true.into() }
    }

    /// The bus itself, to read from.
    pub(crate) fn bus(&self) -> Arc<dyn Bus> {
        Arc::clone(&self.bus)
    }

    /// Looks whether the bus can be read.
    pub(crate) async fn probe(&self, topic: Topic) {
        let end = self.bus.locate(topic, PartitionNo(0), At::End);
        let found = matches!(tokio::time::timeout(DEADLINE, end).await, Ok(Ok(_)));
        self.reads.store(found, Ordering::Relaxed);
        self.report();
    }

    /// Says that all work before `next` is done.
    pub(crate) async fn commit(
        &self,
        group: &str,
        topic: Topic,
        (partition, next): (PartitionNo, Offset),
    ) -> Result<(), ReadError> {
        let committed = self.bus.commit(group.into(), topic, partition, next);
        tokio::time::timeout(DEADLINE, committed).await.unwrap_or(Err(ReadError::Away))
    }

    /// One try within [`DEADLINE`]; one result for each record.
    pub(crate) async fn send_once(&self, records: Vec<Publish>) -> Vec<Result<(), PublishError>> {
        let count = records.len();
        let sent = tokio::time::timeout(DEADLINE, self.bus.publish(records)).await;
        let sent: Vec<_> = match sent {
            Ok(sent) => sent.into_iter().map(|it| it.map(|_| ())).collect(),
            Err(_) => vec![Err(PublishError::Away); count],
        };
        let takes = !sent.contains(&Err(PublishError::Away));
        if !takes {
            self.away.inc();
        }
        self.takes.store(takes, Ordering::Relaxed);
        self.report();
        sent
    }

    /// Tries until the bus is there; one result for each record, never [`PublishError::Away`].
    /// A record may be on the bus twice then.
    ///
    /// Cancelling it may leave some records sent and others not.
    pub(crate) async fn send(&self, records: Vec<Publish>) -> Vec<Result<(), PublishError>> {
        let mut results = self.send_once(records.clone()).await;
        let mut pause = PAUSE_MIN;
        loop {
            let away = |it: &(usize, &Result<(), PublishError>)| *it.1 == Err(PublishError::Away);
            let again: Vec<usize> =
                results.iter().enumerate().filter(away).map(|it| it.0).collect();
            if again.is_empty() {
                return results;
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            let sent = self.send_once(again.iter().map(|&it| records[it].clone()).collect()).await;
            for (index, result) in again.into_iter().zip(sent) {
                results[index] = result;
            }
        }
    }

    fn report(&self) {
        match (self.reads.load(Ordering::Relaxed), self.takes.load(Ordering::Relaxed)) {
            (true, true) => self.health.ok(),
            (false, _) => self.health.fail("the bus cannot be read"),
            (true, false) => self.health.fail("the bus does not take records"),
        }
    }
}

/// Admitted items as records of `accepted`, in their order within each room.
pub(crate) fn accepted(items: Vec<Accepted>) -> Vec<ItemRecord> {
    let topic = topic::accepted();
    let mut partitions: BTreeMap<_, Vec<Accepted>> = BTreeMap::new();
    for item in items {
        partitions.entry(topic.partition_of_room(&item.room)).or_default().push(item);
    }
    let mut records = Vec::new();
    for (partition, items) in partitions {
        for entries in batches(items) {
            let ids = entries.iter().map(|it| it.item.id).collect();
            let value = AcceptedBatch { entries }.encode();
            records.push(ItemRecord { ids, record: record(topic.clone(), partition, value) });
        }
    }
    records
}

/// Answers as records of `reply.{unit}`, in their order for each link.
pub(crate) fn replies(unit: UnitId, replies: Vec<(NodeId, Reply)>) -> Vec<Publish> {
    let topic = topic::reply(unit);
    let mut nodes: BTreeMap<NodeId, Vec<Reply>> = BTreeMap::new();
    for (node, reply) in replies {
        nodes.entry(node).or_default().push(reply);
    }
    let mut records = Vec::new();
    for (node, entries) in nodes {
        for entries in entries.chunks(ENVELOPE_ENTRIES_MAX) {
            let value = ReplyBatch { node, entries: entries.to_vec() }.encode();
            records.push(record(topic.clone(), topic.partition_of_node(node), value));
        }
    }
    records
}

/// A fact as a record of `control`.
pub(crate) fn fact(fact: &Fact) -> Publish {
    let key = Some(fact.key().into());
    let partition = PartitionNo(0);
    Publish { topic: topic::control(), partition, term: None, key, value: fact.encode().into() }
}

fn record(topic: Topic, partition: PartitionNo, value: Bytes) -> Publish {
    Publish { topic, partition, term: None, key: None, value }
}

fn batches(items: Vec<Accepted>) -> Vec<Vec<Accepted>> {
    let mut batches: Vec<Vec<Accepted>> = Vec::new();
    let mut bytes = 0;
    for item in items {
        let text = item.item.body.text().map_or(0, str::len);
        match batches.last_mut() {
            Some(batch)
                if batch.len() < ENVELOPE_ENTRIES_MAX
                    && bytes + text <= TEXT_BYTES_PER_RECORD_MAX =>
            {
                bytes += text;
                batch.push(item);
            }
            Some(_) | None => {
                bytes = text;
                batches.push(vec![item]);
            }
        }
    }
    batches
}

#[cfg(test)]
#[path = "mail/tests.rs"]
mod tests;
