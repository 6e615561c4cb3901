//! A bus in memory: the semantics of the real one, within one process and within bounds.

mod lapse;
mod partition;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use kit::clock::Clock;
use parking_lot::{Mutex, RwLock};
use proto::limits::RECORD_BYTES_MAX;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use self::partition::{Now, Partition, RECORD_OVERHEAD_BYTES};
use crate::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};

/// What one partition may hold.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Records kept of a partition.
    pub records_max: usize,
    /// Bytes kept of a partition, 100 bytes a record included. With some 200 partitions of a
    /// unit, the default can take 1.6 GiB when every one of them is full.
    pub bytes_max: usize,
    /// How long [`Keep::Recent`](crate::topic::Keep::Recent) keeps a record, in milliseconds.
    pub recent_ms: u64,
    /// Keys of a compacted partition; beyond, a new key is `Busy`.
    pub keys_max: usize,
    /// Bytes of a compacted partition; beyond, `Busy`.
    pub compacted_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            records_max: 16_384,
            bytes_max: 8 << 20,
            recent_ms: 120_000,
            keys_max: 100_000,
            compacted_bytes_max: 64 << 20,
        }
    }
}

/// The bus. Topics come into being when they are first named; names come from code, not from
/// viewers, so there are a few.
#[derive(Debug)]
pub struct MemoryBus {
    clock: Clock,
    limits: Limits,
    topics: RwLock<BTreeMap<Arc<str>, Arc<[Shelf]>>>,
}

/// A partition and those who wait for it.
#[derive(Debug)]
struct Shelf {
    partition: Mutex<Partition>,
    fresh: Notify,
}

impl MemoryBus {
    /// An empty bus. A limit below one largest record is raised to it.
    #[must_use]
    pub fn new(clock: Clock, mut limits: Limits) -> Arc<Self> {
        let largest = RECORD_BYTES_MAX + RECORD_OVERHEAD_BYTES;
        limits.bytes_max = limits.bytes_max.max(largest);
        limits.compacted_bytes_max = limits.compacted_bytes_max.max(largest);
        Arc::new(Self { clock, limits, topics: RwLock::default() })
    }

    fn shelves(&self, topic: &Topic) -> Arc<[Shelf]> {
        if let Some(shelves) = self.topics.read().get(&topic.name) {
            return Arc::clone(shelves);
        }
        let mut topics = self.topics.write();
        let shelves = topics.entry(Arc::clone(&topic.name)).or_insert_with(|| {
            let new = |_| Shelf {
                partition: Mutex::new(Partition::new(topic.keep, self.limits.clone())),
                fresh: Notify::new(),
            };
            (0..topic.partitions).map(new).collect()
        });
        Arc::clone(shelves)
    }

    fn now(&self) -> Now {
        Now { mono: self.clock.mono(), wall: self.clock.wall() }
    }

    fn publish_one(&self, record: Publish) -> Result<Offset, PublishError> {
        let shelves = self.shelves(&record.topic);
        let shelf = pick(&shelves, record.partition).ok_or(PublishError::NoPartition)?;
        let offset = shelf.partition.lock().append(record, self.now())?;
        shelf.fresh.notify_waiters();
        Ok(offset)
    }

    /// Calls `f` on a partition.
    fn with<R>(
        &self,
        topic: &Topic,
        partition: PartitionNo,
        f: impl FnOnce(&mut Partition) -> R,
    ) -> Result<R, ReadError> {
        let shelves = self.shelves(topic);
        let shelf = pick(&shelves, partition).ok_or(ReadError::NoPartition)?;
        Ok(f(&mut shelf.partition.lock()))
    }

    async fn read_or_wait(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> Result<Vec<Record>, ReadError> {
        let shelves = self.shelves(&topic);
        let shelf = pick(&shelves, partition).ok_or(ReadError::NoPartition)?;
        let read = || shelf.partition.lock().read(from, records_max, self.now());
        let records = read()?;
        if !records.is_empty() || wait.is_zero() {
            return Ok(records);
        }
        let mut deadline = std::pin::pin!(self.clock.sleep(wait));
        loop {
            let mut fresh = std::pin::pin!(shelf.fresh.notified());
            // Registered before looking, so that nothing published in between is missed.
            fresh.as_mut().enable();
            let records = read()?;
            if !records.is_empty() {
                return Ok(records);
            }
            tokio::select! {
                () = fresh => {}
                () = deadline.as_mut() => return Ok(records),
            }
        }
    }
}

impl Bus for MemoryBus {
    fn publish(&self, records: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>> {
        ready(records.into_iter().map(|it| self.publish_one(it)).collect()).boxed()
    }

    fn read(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        self.read_or_wait(topic, partition, from, records_max, wait).boxed()
    }

    fn locate(
        &self,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    ) -> BoxFuture<'_, Result<Offset, ReadError>> {
        let now = self.now();
        ready(self.with(&topic, partition, |it| it.locate(&at, now))).boxed()
    }

    fn commit(
        &self,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>> {
        ready(self.with(&topic, partition, |it| it.commit(group, next))).boxed()
    }
}

fn pick(shelves: &[Shelf], partition: PartitionNo) -> Option<&Shelf> {
    shelves.get(partition.0 as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;

    #[tokio::test]
    async fn memory_keeps_the_contract() {
        contract::check(|| {
            let limits = Limits { records_max: contract::RECORDS_MAX, ..Limits::default() };
            MemoryBus::new(Clock::system(), limits)
        })
        .await;
    }
}
