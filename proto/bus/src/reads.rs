//! Reads of several partitions of a topic at a time, each behind its own cursor.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Bound;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::tail::Tailed;
use crate::{Bus, Offset, PartitionNo, ReadError, Record, Topic};

/// Longest wait of one read; a reader then asks again.
const WAIT: Duration = Duration::from_secs(5);
/// Records of one read.
const RECORDS_MAX: usize = 500;
/// First and longest pause after a failed read.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

type Read = BoxFuture<'static, Result<Vec<Record>, ReadError>>;

pub(crate) struct Reads {
    bus: Arc<dyn Bus>,
    topic: Topic,
    cursors: BTreeMap<PartitionNo, Cursor>,
    /// The partition served last: the next one has the first turn.
    served: PartitionNo,
}

struct Cursor {
    next: Offset,
    read: Read,
    pause: Duration,
}

impl std::fmt::Debug for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cursors: Vec<_> = self.cursors.iter().map(|(no, it)| (no.0, it.next.0)).collect();
        f.debug_struct("Reads").field("topic", &self.topic.name).field("at", &cursors).finish()
    }
}

impl Reads {
    pub(crate) fn new(bus: Arc<dyn Bus>, topic: Topic) -> Self {
        Self { bus, topic, cursors: BTreeMap::new(), served: PartitionNo(0) }
    }

    /// Reads `partition` from `next` on.
    pub(crate) fn begin(&mut self, partition: PartitionNo, next: Offset) {
        let read = self.read(partition, next, Duration::ZERO);
        self.cursors.insert(partition, Cursor { next, read, pause: Duration::ZERO });
    }

    /// Reads `partition` no more.
    pub(crate) fn end(&mut self, partition: PartitionNo) {
        self.cursors.remove(&partition);
    }

    /// The next records of any partition. After an error the partition is read again from the same
    /// place, following a pause.
    ///
    /// Without any partition it waits for ever. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self, records_max: usize) -> Result<Tailed, ReadError> {
        poll_fn(|cx| self.poll_next(records_max, cx)).await
    }

    fn poll_next(
        &mut self,
        records_max: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Tailed, ReadError>> {
        let behind = (Bound::Excluded(self.served), Bound::Unbounded);
        let turns = self.cursors.range(behind).chain(self.cursors.range(..=self.served));
        let turns: Vec<_> = turns.map(|(&partition, _)| partition).collect();
        for partition in turns {
            while let Some(Poll::Ready(read)) = self.poll_read(partition, cx) {
                if let Some(found) = self.advance(partition, read, records_max).transpose() {
                    self.served = partition;
                    return Poll::Ready(found);
                }
            }
        }
        Poll::Pending
    }

    fn poll_read(
        &mut self,
        partition: PartitionNo,
        cx: &mut Context<'_>,
    ) -> Option<Poll<Result<Vec<Record>, ReadError>>> {
        self.cursors.get_mut(&partition).map(|it| it.read.poll_unpin(cx))
    }

    /// Moves the cursor behind what was read and reads again from there.
    fn advance(
        &mut self,
        partition: PartitionNo,
        read: Result<Vec<Record>, ReadError>,
        records_max: usize,
    ) -> Result<Option<Tailed>, ReadError> {
        let Some(cursor) = self.cursors.get(&partition) else { return Ok(None) };
        let (next, pause, found) = match read {
            Ok(mut records) => {
                records.truncate(records_max.max(1));
                match records.last() {
                    None => (cursor.next, Duration::ZERO, Ok(None)),
                    Some(last) => {
                        let next = Offset(last.offset.0 + 1);
                        (next, Duration::ZERO, Ok(Some(Tailed::Records(records))))
                    }
                }
            }
            Err(ReadError::Gone { oldest }) => {
                let records = oldest.0.saturating_sub(cursor.next.0);
                (oldest, Duration::ZERO, Ok(Some(Tailed::Skipped { partition, records, oldest })))
            }
            Err(error @ (ReadError::Away | ReadError::NoPartition)) => {
                (cursor.next, (cursor.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX), Err(error))
            }
        };
        let read = self.read(partition, next, pause);
        self.cursors.insert(partition, Cursor { next, read, pause });
        found
    }

    fn read(&self, partition: PartitionNo, from: Offset, pause: Duration) -> Read {
        let bus = Arc::clone(&self.bus);
        let topic = self.topic.clone();
        async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            bus.read(topic, partition, from, RECORDS_MAX, WAIT).await
        }
        .boxed()
    }
}
