//! The topics, their partitions, and how a key finds its partition.

use std::sync::Arc;

use proto::id::{NodeId, RoomId, UnitId, ViewerId};
use serde::{Deserialize, Serialize};

use crate::PartitionNo;

/// Partitions of every topic except `control` (1) and `reply` ([`REPLY_PARTITIONS`]).
///
/// `accepted` and `sealed` must agree: the lease on one fences the other.
pub const PARTITIONS: u32 = 16;
/// Partitions of `reply.{unit}`: link nodes share them, each filters its own records.
pub const REPLY_PARTITIONS: u32 = 64;

/// A topic.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Topic {
    /// Its name on the bus.
    pub name: Arc<str>,
    /// How many partitions it has; never changed.
    pub partitions: u32,
    /// How long its records are kept.
    pub keep: Keep,
}

/// How long records are kept.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Keep {
    /// Until the reading group has committed them; a full partition answers `busy`.
    UntilCommitted,
    /// Some minutes; the oldest give way.
    Recent,
    /// The newest of each key.
    Compacted,
}

/// Joins, leaves and comments of a unit.
#[must_use]
pub fn uplink(unit: UnitId) -> Topic {
    Topic {
        name: format!("uplink.{unit}").into(),
        partitions: PARTITIONS,
        keep: Keep::UntilCommitted,
    }
}

/// Answers to the links of a unit.
#[must_use]
pub fn reply(unit: UnitId) -> Topic {
    Topic { name: format!("reply.{unit}").into(), partitions: REPLY_PARTITIONS, keep: Keep::Recent }
}

/// Flushes for the links of a unit.
#[must_use]
pub fn downlink(unit: UnitId) -> Topic {
    Topic { name: format!("downlink.{unit}").into(), partitions: PARTITIONS, keep: Keep::Recent }
}

/// Admitted items.
#[must_use]
pub fn accepted() -> Topic {
    Topic { name: "accepted".into(), partitions: PARTITIONS, keep: Keep::UntilCommitted }
}

/// Flushed items, seals and fates.
#[must_use]
pub fn sealed() -> Topic {
    Topic { name: "sealed".into(), partitions: PARTITIONS, keep: Keep::Recent }
}

/// What links carry, once a second.
#[must_use]
pub fn gauges() -> Topic {
    Topic { name: "gauges".into(), partitions: PARTITIONS, keep: Keep::Recent }
}

/// Facts.
#[must_use]
pub fn control() -> Topic {
    Topic { name: "control".into(), partitions: 1, keep: Keep::Compacted }
}

impl Topic {
    /// The partition of a room.
    #[must_use]
    pub fn partition_of_room(&self, room: &RoomId) -> PartitionNo {
        self.pick(fnv(room.as_str().as_bytes(), FNV_START))
    }

    /// The partition of a viewer in a room.
    #[must_use]
    pub fn partition_of_viewer(&self, room: &RoomId, viewer: &ViewerId) -> PartitionNo {
        let room = fnv(room.as_str().as_bytes(), FNV_START);
        self.pick(fnv(viewer.as_str().as_bytes(), fnv(&[0], room)))
    }

    /// The partition of a node. A link's workers, whose numbers differ in the top byte, have
    /// different ones.
    #[must_use]
    pub fn partition_of_node(&self, node: NodeId) -> PartitionNo {
        PartitionNo(((node.0 & 0xff_ffff) + (node.0 >> 24)) % self.partitions)
    }

    fn pick(&self, hash: u64) -> PartitionNo {
        let partition = (hash >> 32) % u64::from(self.partitions);
        PartitionNo(u32::try_from(partition).expect("a remainder of a u32 fits a u32"))
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits: the same in every process and release, which std's hasher is not.
fn fnv(bytes: &[u8], start: u64) -> u64 {
    bytes
        .iter()
        .fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
