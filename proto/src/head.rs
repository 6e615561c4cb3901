//! `head.json` and `gen.json`: what a poller reads before its first segment.

use serde::{Deserialize, Serialize};

use crate::dictionary::DictionaryInfo;
use crate::heat::Heat;
use crate::id::{AppId, Gen, ItemId, RoomId, SlotNo};
use crate::time::Wall;

/// Path of a room's head below a segment base.
#[must_use]
pub fn head_path(room: &RoomId) -> String {
    format!("dm/1/{room}/head.json")
}

/// Path of a segment below a segment base; `ext` is `bin`, `json`, `m4s` or `zbin`.
#[must_use]
pub fn segment_path(room: &RoomId, gen_no: Gen, tier: Tier, slot: SlotNo, ext: &str) -> String {
    format!("dm/1/{room}/{gen_no}/{}/{slot}.{ext}", tier.name())
}

/// Path of a gen's own file below a segment base.
#[must_use]
pub fn gen_path(room: &RoomId, gen_no: Gen) -> String {
    format!("dm/1/{room}/{gen_no}/gen.json")
}

/// Path of a room's HLS playlist below a segment base.
#[must_use]
pub fn playlist_path(room: &RoomId) -> String {
    format!("dm/1/{room}/live.m3u8")
}

/// Path of what comes before a room's HLS fragments, below a segment base.
#[must_use]
pub fn init_path(room: &RoomId) -> String {
    format!("dm/1/{room}/init.mp4")
}

/// Path of what a player reads before the minutes of a recording, below a segment base; without a
/// version, that of the room's newest one.
#[must_use]
pub fn recording_path(room: &RoomId, version: Option<u64>) -> String {
    match version {
        Some(version) => format!("dm/1/{room}/vod/{version}/index.json"),
        None => format!("dm/1/{room}/vod/index.json"),
    }
}

/// Path of one minute of a recording, below a segment base; `ext` is `bin` or `json`.
#[must_use]
pub fn minute_path(room: &RoomId, version: u64, minute: u64, ext: &str) -> String {
    format!("dm/1/{room}/vod/{version}/{minute}.{ext}")
}

/// A recording: what a player reads before its first minute.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Layout of this file; 1.
    pub v: u32,
    /// The folder of the minutes; a recording that is published again has a higher one.
    pub version: u64,
    /// When media time 0 was. An item without a media time of its own stands so long after it as it
    /// was shown.
    pub start_ms: Wall,
    /// Which minutes have a file: runs of them, each as its first one and how many. In the others
    /// nothing was shown.
    pub minutes: Vec<[u64; 2]>,
    /// Items in them.
    pub items: u64,
    /// Items that were shown and are in no minute, because theirs was full.
    pub left_out: u64,
}

/// How much of a room a segment carries.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Tier {
    /// Everything.
    #[default]
    Full = 0,
    /// A subset of each flush, for weak devices and networks.
    Lite = 1,
}

impl Tier {
    /// The word in paths and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Lite => "lite",
        }
    }
}

/// Where segments are served.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// Everything before `/dm/1/…`, without a slash at the end.
    pub base: String,
    /// Share of the viewers; relative.
    pub weight: u32,
}

/// What a gen fixes: written once, when the gen is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct GenInfo {
    /// Which.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// Start of slot 0.
    pub epoch_ms: Wall,
    /// Length of a slot.
    pub interval_ms: u32,
    /// Layout of the segments: [`PLAIN`] or [`SEALED`].
    pub layout: u32,
}

/// The layout of a gen whose segments anybody can read.
pub const PLAIN: u32 = 1;
/// The layout of a gen whose segments are sealed under the room's key of that gen.
pub const SEALED: u32 = 2;

impl GenInfo {
    /// Whether its segments are sealed.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.layout == SEALED
    }
}

/// Gens named in [`Head::past`]: a room opens one when its broadcaster starts without knowing what
/// was sealed, or when its interval changes.
pub const PAST_MAX: usize = 16;

/// A gen that ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Past {
    /// Which.
    #[serde(flatten)]
    pub info: GenInfo,
    /// Oldest slot still served when this was written.
    pub oldest: SlotNo,
    /// Its last slot.
    pub end: SlotNo,
}

/// Where a room's newest slot stands in its HLS playlist.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Its media sequence number: rises by one a slot, through all gens.
    pub number: u64,
    /// Discontinuities up to it.
    pub turns: u64,
}

/// A room's head.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Layout of this file; 1.
    pub v: u32,
    /// The newest gen with a sealed slot.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// Start of its slot 0.
    pub epoch_ms: Wall,
    /// Length of its slots.
    pub interval_ms: u32,
    /// Newest sealed slot.
    pub slot: SlotNo,
    /// Oldest slot still served.
    pub oldest: SlotNo,
    /// Server's time when this was written.
    pub now_ms: Wall,
    /// Clients spread their polls over this much.
    pub spread_ms: u32,
    /// Tiers that are written.
    pub tiers: Vec<Tier>,
    /// How the room is delivered.
    pub heat: Heat,
    /// People in the room.
    pub online: u32,
    /// Whether segments are encrypted.
    pub sealed: bool,
    /// Where segments are served, if not where this file was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<Base>,
    /// Ids recalled within `recall_ms`.
    #[serde(default)]
    pub recalled: Vec<ItemId>,
    /// Version of the gift catalogue; 0: none. It lies at [`crate::control::catalogue_path`].
    #[serde(default)]
    pub catalogue: u32,
    /// Whose catalogue it is; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppId>,
    /// The dictionary of the `.zbin` files; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dict: Option<DictionaryInfo>,
    /// The gen that follows, if one is announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<GenInfo>,
    /// The last slot of a room or gen that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<SlotNo>,
    /// Gens that ended and whose slots are still served, oldest first; at most [`PAST_MAX`]. A
    /// broadcaster that starts again knows from it what to serve and when to remove it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<Past>,
    /// Where the newest slot stands in the room's HLS playlist, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hls: Option<Place>,
}
