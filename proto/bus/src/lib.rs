//! How envelopes are carried: topics with a fixed number of partitions, offsets, at-least-once.
//!
//! The semantics are Kafka's in every adapter. [`Bus`] is the port; [`Tail`] and [`Group`] are the
//! two ways to read, written once on top of it.
#![deny(missing_docs)]

pub mod fault;
pub mod group;
pub mod lease;
pub mod memory;
pub mod remote;
pub mod tail;
pub mod topic;

#[cfg(test)]
mod contract;
mod reads;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proto::id::Term;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

pub use fault::{Fault, FaultyBus};
pub use group::{Group, GroupConfig, GroupEvent};
pub use lease::{Lease, LeaseConfig, LeaseEvent};
pub use memory::{Limits, MemoryBus};
pub use tail::{Tail, Tailed};
pub use topic::Topic;

/// A partition of a topic, from 0.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
pub struct PartitionNo(pub u32);

/// A record's place in its partition, from 0, rising, with holes possible.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
pub struct Offset(pub u64);

/// A record on its way in.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Publish {
    /// Where.
    pub topic: Topic,
    /// Which partition: [`Topic::partition_of_room`] and its like.
    pub partition: PartitionNo,
    /// Lease term of the publisher; the bus refuses a term older than it has seen in this
    /// partition. `None` on topics that many may write.
    pub term: Option<Term>,
    /// Compaction key, on compacted topics: the record replaces the one of the same key. None is
    /// the empty key.
    pub key: Option<Arc<str>>,
    /// At most [`proto::limits::RECORD_BYTES_MAX`] bytes. Empty on a compacted topic: nothing is
    /// known of the key any more, and the record may be forgotten.
    pub value: Bytes,
}

/// A record on its way out.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Record {
    /// Its partition.
    pub partition: PartitionNo,
    /// Its place.
    pub offset: Offset,
    /// When the bus took it.
    pub at: Wall,
    /// Compaction key.
    pub key: Option<Arc<str>>,
    /// The bytes.
    pub value: Bytes,
}

/// Why a record was not taken.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
pub enum PublishError {
    /// The queue is full: tell the sender, or try again.
    #[error("the bus is busy")]
    Busy,
    /// Another holds the partition with a newer term: stop.
    #[error("term {given:?} is older than {newest:?}")]
    Fenced {
        /// The publisher's.
        given: Term,
        /// The newest seen.
        newest: Term,
    },
    /// More than [`proto::limits::RECORD_BYTES_MAX`].
    #[error("a record of {bytes} bytes is too large")]
    TooLarge {
        /// Bytes given.
        bytes: usize,
    },
    /// No such partition.
    #[error("no such partition")]
    NoPartition,
    /// The bus is away.
    #[error("the bus is away")]
    Away,
}

/// Why nothing could be read, found or committed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
pub enum ReadError {
    /// Records before `oldest` are gone.
    #[error("records before {oldest:?} are gone")]
    Gone {
        /// Oldest offset that is still there.
        oldest: Offset,
    },
    /// No such partition.
    #[error("no such partition")]
    NoPartition,
    /// The bus is away.
    #[error("the bus is away")]
    Away,
}

/// Where to begin reading.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum At {
    /// The oldest record kept.
    Oldest,
    /// Behind the newest record.
    End,
    /// The first record taken at or after this time.
    Time(Wall),
    /// Where this group committed; the oldest record if it never did.
    Committed(Arc<str>),
}

/// The port. Every call may be repeated; a record that is published again is there twice.
pub trait Bus: Send + Sync + Debug {
    /// Appends records; one result each, in order. Records of one partition keep their order.
    fn publish(&self, records: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>>;

    /// Reads from `from` on, at most `records_max`, waiting up to `wait` for the first one.
    ///
    /// No records are a promise: at some moment after the call began there was none at or behind
    /// `from`. Whoever cannot tell that in time says [`ReadError::Away`].
    ///
    /// Cancelling it loses nothing.
    fn read(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>>;

    /// The offset of a place.
    fn locate(
        &self,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    ) -> BoxFuture<'_, Result<Offset, ReadError>>;

    /// Remembers that `group` has done all work before `next`. A commit never goes back.
    fn commit(
        &self,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>>;
}
