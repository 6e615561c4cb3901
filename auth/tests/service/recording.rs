//! A bus that remembers every epoch it took, compacted away or not, and that can be slow to take
//! what it was given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bus::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use parking_lot::Mutex;
use proto::control::Fact;

/// Remembers.
#[derive(Debug)]
pub(crate) struct RecordingBus {
    inner: Arc<dyn Bus>,
    randoms: Mutex<BTreeMap<u32, BTreeSet<String>>>,
}

impl RecordingBus {
    pub(crate) fn new(inner: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self { inner, randoms: Mutex::default() })
    }

    /// The randoms that were ever on the log, by epoch.
    pub(crate) fn randoms(&self) -> BTreeMap<u32, BTreeSet<String>> {
        self.randoms.lock().clone()
    }
}

impl Bus for RecordingBus {
    fn publish(&self, records: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>> {
        async move {
            let answers = self.inner.publish(records.clone()).await;
            for (record, answer) in records.iter().zip(&answers) {
                if let (Ok(Fact::Epoch(fact)), Ok(_)) = (Fact::decode(&record.value), answer) {
                    self.randoms.lock().entry(fact.epoch).or_default().insert(fact.random);
                }
            }
            answers
        }
        .boxed()
    }

    fn read(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        self.inner.read(topic, partition, from, records_max, wait)
    }

    fn locate(
        &self,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    ) -> BoxFuture<'_, Result<Offset, ReadError>> {
        self.inner.locate(topic, partition, at)
    }

    fn commit(
        &self,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>> {
        self.inner.commit(group, topic, partition, next)
    }
}

/// While it holds, what is published is neither taken nor refused, and everything else works: the
/// way of a record through a network that is slow at the wrong moment.
#[derive(Debug)]
pub(crate) struct HoldingBus {
    inner: Arc<dyn Bus>,
    held: Mutex<Option<Vec<Publish>>>,
}

impl HoldingBus {
    pub(crate) fn new(inner: Arc<dyn Bus>) -> Arc<Self> {
        Arc::new(Self { inner, held: Mutex::new(None) })
    }

    pub(crate) fn hold(&self) {
        *self.held.lock() = Some(Vec::new());
    }

    /// Whether an epoch is among what is held.
    pub(crate) fn holds_epochs(&self) -> bool {
        let held = self.held.lock();
        let facts = held.iter().flatten().map(|it| Fact::decode(&it.value));
        facts.into_iter().any(|it| matches!(it, Ok(Fact::Epoch(_))))
    }

    /// Lets everything through now, in its order; tells what the bus said.
    pub(crate) async fn release(&self) -> Vec<Result<Offset, PublishError>> {
        let held = self.held.lock().take().unwrap();
        self.inner.publish(held).await
    }
}

impl Bus for HoldingBus {
    fn publish(&self, records: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>> {
        if let Some(held) = self.held.lock().as_mut() {
            held.extend(records);
            return pending().boxed();
        }
        self.inner.publish(records)
    }

    fn read(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        self.inner.read(topic, partition, from, records_max, wait)
    }

    fn locate(
        &self,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    ) -> BoxFuture<'_, Result<Offset, ReadError>> {
        self.inner.locate(topic, partition, at)
    }

    fn commit(
        &self,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>> {
        self.inner.commit(group, topic, partition, next)
    }
}
