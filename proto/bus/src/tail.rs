//! Reading without ownership: everything of some partitions, from a chosen place on.

use std::sync::Arc;

use crate::reads::Reads;
use crate::{At, Bus, Offset, PartitionNo, ReadError, Record, Topic};

/// A reader that nobody else knows of.
#[derive(Debug)]
pub struct Tail {
    reads: Reads,
}

/// What a tail found.
#[derive(Clone, Debug)]
pub enum Tailed {
    /// Records of one partition, at least one, in order.
    Records(Vec<Record>),
    /// The reader was too slow, and records are gone; it goes on with the oldest kept.
    Skipped {
        /// Where.
        partition: PartitionNo,
        /// How many at most; compaction may have removed some of them before.
        records: u64,
        /// The oldest kept.
        oldest: Offset,
    },
}

impl Tail {
    /// Begins at `at` in each of `partitions`.
    ///
    /// # Errors
    /// When a place cannot be found: the bus is away, or there is no such partition.
    pub async fn open(
        bus: Arc<dyn Bus>,
        topic: Topic,
        partitions: Vec<PartitionNo>,
        at: At,
    ) -> Result<Self, ReadError> {
        let mut reads = Reads::new(Arc::clone(&bus), topic.clone());
        for partition in partitions {
            let next = bus.locate(topic.clone(), partition, at.clone()).await?;
            reads.begin(partition, next);
        }
        Ok(Self { reads })
    }

    /// Every partition of a topic.
    #[must_use]
    pub fn all(topic: &Topic) -> Vec<PartitionNo> {
        (0..topic.partitions).map(PartitionNo).collect()
    }

    /// Waits for the next records of any partition, at most `records_max`.
    ///
    /// Cancelling it loses nothing.
    ///
    /// # Errors
    /// When the bus is away. Calling it again goes on at the same place, after a pause of up to a
    /// second that it makes itself: a caller reports the error and calls again.
    pub async fn next(&mut self, records_max: usize) -> Result<Tailed, ReadError> {
        self.reads.next(records_max).await
    }
}
