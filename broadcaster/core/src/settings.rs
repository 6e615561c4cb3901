//! What a room's machine keeps to: the room's own settings and the broadcaster's configuration.

use std::time::Duration;

use proto::control::{RoomFact, RoomSettings, Segments};
use proto::id::RoomId;

use crate::budget::Budget;
use crate::lane::Shares;
use crate::{scheduler, thermostat};

/// Shortest and longest slot; what a room asks for is moved into this range.
pub const INTERVAL_MS_MIN: u32 = 200;
/// See [`INTERVAL_MS_MIN`].
pub const INTERVAL_MS_MAX: u32 = 10_000;

/// The broadcaster's part: the same for all rooms.
#[derive(Clone, Copy, Debug)]
pub struct House {
    /// Length of a flush.
    pub flush_ms: u32,
    /// A comment that waited this long is shed.
    pub wait_ms_max: u32,
    /// Items waiting in one protected lane of one room.
    pub protected_waiting_max: usize,
    /// Guaranteed shares of the lanes.
    pub shares: Shares,
    /// A clock step or standstill up to this long is filled with empty slots; a longer one opens
    /// a new gen.
    pub jump_ms_max: u32,
    /// Clients spread their polls over this much.
    pub spread_ms: u32,
    /// Comments a second that the lite tier carries.
    pub lite_comments_per_s: u32,
    /// How long a room must be full before it turns hot.
    pub hot_hold: Duration,
    /// How long a room must be empty before it turns cold.
    pub cold_hold: Duration,
}

impl Default for House {
    fn default() -> Self {
        Self {
            flush_ms: 200,
            wait_ms_max: 3000,
            protected_waiting_max: 10_000,
            shares: Shares::default(),
            jump_ms_max: 30_000,
            spread_ms: 300,
            lite_comments_per_s: 10,
            hot_hold: Duration::from_secs(2),
            cold_hold: Duration::from_secs(10),
        }
    }
}

/// What one room's machine keeps to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which room.
    pub room: RoomId,
    /// Length of a slot, within its range.
    pub interval_ms: u32,
    /// When segments are written.
    pub segments: Segments,
    /// What fits.
    pub scheduler: scheduler::Limits,
    /// Push or segments.
    pub thermostat: thermostat::Limits,
    /// The broadcaster's part.
    pub house: House,
}

impl Settings {
    /// Puts a room's wishes and the house's rules together.
    #[must_use]
    pub fn new(fact: &RoomFact, house: House) -> Self {
        let RoomSettings { items_per_s, bytes_per_s, hot_sessions, cold_sessions, .. } =
            fact.settings;
        Self {
            room: fact.room.clone(),
            interval_ms: fact.settings.interval_ms.clamp(INTERVAL_MS_MIN, INTERVAL_MS_MAX),
            segments: fact.settings.segments,
            scheduler: scheduler::Limits {
                budget: Budget { items_max: items_per_s, bytes_max: bytes_per_s },
                shares: house.shares,
                wait_ms_max: house.wait_ms_max,
                protected_waiting_max: house.protected_waiting_max,
            },
            thermostat: thermostat::Limits {
                hot_sessions,
                cold_sessions,
                hot_hold: house.hot_hold,
                cold_hold: house.cold_hold,
            },
            house,
        }
    }
}
