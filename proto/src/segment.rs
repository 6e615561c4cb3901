//! The sealed, immutable bytes of one slot, before compression.
//!
//! `"DMS1" | CRC-32 (IEEE) of the rest, u32 little-endian | FlatBuffer with the items as columns`.

use serde::{Deserialize, Serialize};

pub use crate::codec::{Line, Moment};
use crate::head::{Base, GenInfo, Tier};
use crate::heat::Heat;
use crate::id::{Gen, ItemId, RoomId, SlotNo};
use crate::item::{Placed, Repeat};
use crate::time::Wall;

/// One slot of a room.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// What a poller needs.
    pub header: Header,
    /// The slot's items, seq rising.
    pub items: Vec<Placed>,
    /// Protected items and tombstones of the previous slot, and tombstones still to be repeated.
    pub repeats: Vec<Repeat>,
}

/// What a poller needs, in every segment.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Where.
    pub room: RoomId,
    /// Gen of the items.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// This slot.
    pub slot: SlotNo,
    /// How much it carries.
    pub tier: Tier,
    /// Start of slot 0.
    pub epoch_ms: Wall,
    /// Length of a slot.
    pub interval_ms: u32,
    /// Server's time when this was sealed.
    pub now_ms: Wall,
    /// Clients spread their polls over this much.
    pub spread_ms: u32,
    /// Tier to use from now on, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_tier: Option<Tier>,
    /// People in the room.
    pub online: u32,
    /// How the room is delivered.
    pub heat: Heat,
    /// Where segments are served, when that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<Base>,
    /// The gen that follows, if one is announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<GenInfo>,
    /// The last slot of this gen, if it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<SlotNo>,
}

/// CRC-32 (IEEE) over ids as little-endian u64, in order: what [`crate::frame::Seal`] tells.
#[must_use]
pub fn ids_crc(ids: impl IntoIterator<Item = ItemId>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for id in ids {
        hasher.update(&id.0.to_le_bytes());
    }
    hasher.finalize()
}
