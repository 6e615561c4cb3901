//! How well segments are served: what viewers report of the bases, and what nodes count of it.
//!
//! A viewer's word is worth one vote a base and report, so that no single one moves much.

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::time::Wall;

/// One base in a viewer's [`crate::frame::Report`].
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct BaseReport {
    /// Which, as it was handed out.
    pub base: String,
    /// Segments asked for there since the last report.
    pub fetches: u32,
    /// Of them, without an answer, with a server's error, or with other bytes than they should be.
    pub failures: u32,
    /// Of them, answered too late to be shown in time.
    pub late: u32,
    /// Mean milliseconds of a fetch.
    pub fetch_ms: u32,
    /// Whether the newest fetch failed, is late, or has no answer for as long.
    pub is_bad: bool,
}

/// `gauges`, once a second: what a link heard of bases, or where a broadcaster serves segments.
///
/// It is the same structure on the wire as [`crate::envelope::LinkGauges`]; each reads its part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaseGauges {
    /// From.
    pub node: NodeId,
    /// When.
    pub at: Wall,
    /// From a link: at most [`crate::limits::BASES_MAX`].
    pub bases: Vec<BaseGauge>,
    /// From a broadcaster.
    pub store: Option<StoreGauge>,
}

/// What one link's viewers reported of a base within the second.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct BaseGauge {
    /// Which.
    pub base: String,
    /// Viewers who reported.
    pub reports: u32,
    /// Of them, those for whom it is bad.
    pub bad: u32,
    /// Mean of their mean milliseconds, each cut to a bound.
    pub fetch_ms: u32,
}

/// Where one broadcaster serves segments, and how its stores took slots within the second.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct StoreGauge {
    /// The base that it announces.
    pub base: String,
    /// Its share, compared with the other bases.
    pub weight: u32,
    /// Slots that a store took.
    pub stored: u32,
    /// Slots that no store took in time.
    pub unstored: u32,
    /// Mean milliseconds until a store had a slot.
    pub store_ms: u32,
}
