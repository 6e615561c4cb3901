//! What a room's machine keeps to: the room's own settings and the broadcaster's configuration.

use std::time::Duration;

use proto::control::{LaneShares, RoomFact, RoomSettings, Segments};
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
    /// Guaranteed shares of the lanes, where a room has none of its own.
    pub shares: Shares,
    /// A clock step or standstill up to this long is filled with empty slots; a longer one opens
    /// a new gen.
    pub jump_ms_max: u32,
    /// Clients spread their polls over this much.
    pub spread_ms: u32,
    /// Comments a second that the lite tier carries, where a room does not say so.
    pub lite_comments_per_s: u32,
    /// How long a room must be full before it turns hot.
    pub hot_hold: Duration,
    /// How long a room must be empty before it turns cold.
    pub cold_hold: Duration,
    /// How long nothing must have happened in an empty room before it rests.
    pub rest: Duration,
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
            rest: Duration::from_mins(5),
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
    /// Comments a second that the lite tier carries.
    pub lite_comments_per_s: u32,
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
        let RoomSettings { items_per_s, bytes_per_s, hot_sessions, cold_sessions, lanes, .. } =
            fact.settings;
        let combo_ms = fact.settings.combo_ms;
        Self {
            room: fact.room.clone(),
            interval_ms: fact.settings.interval_ms.clamp(INTERVAL_MS_MIN, INTERVAL_MS_MAX),
            segments: fact.settings.segments,
            lite_comments_per_s: fact
                .settings
                .lite_comments_per_s
                .unwrap_or(house.lite_comments_per_s),
            scheduler: scheduler::Limits {
                budget: Budget { items_max: items_per_s, bytes_max: bytes_per_s },
                shares: lanes.and_then(shares).unwrap_or(house.shares),
                wait_ms_max: house.wait_ms_max,
                protected_waiting_max: house.protected_waiting_max,
                combo: Duration::from_millis(combo_ms.into()),
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

/// `None` where they promise more than there is.
fn shares(lanes: LaneShares) -> Option<Shares> {
    let LaneShares { notice, high_gift, low_gift, comment } = lanes;
    Shares::new([notice, high_gift, low_gift, comment].map(u32::from))
}

#[cfg(test)]
mod tests {
    use proto::id::AppId;
    use proto::item::Lane;

    use super::*;

    fn settings(settings: RoomSettings) -> Settings {
        let room = RoomId::parse("r").unwrap();
        let fact = RoomFact { app: AppId(1), room, version: 1, open: true, settings };
        Settings::new(&fact, House::default())
    }

    #[test]
    fn a_room_has_its_own_shares_and_lite_tier_or_the_houses() {
        let own = settings(RoomSettings {
            lanes: Some(LaneShares { notice: 1, high_gift: 2, low_gift: 3, comment: 94 }),
            lite_comments_per_s: Some(0),
            ..RoomSettings::default()
        });
        let none = settings(RoomSettings::default());
        let too_much = settings(RoomSettings {
            lanes: Some(LaneShares { notice: 50, high_gift: 50, low_gift: 1, comment: 0 }),
            ..RoomSettings::default()
        });

        let of =
            |it: &Settings| (it.scheduler.shares.of(Lane::Comment, 100), it.lite_comments_per_s);
        assert_eq!(of(&own), (94, 0));
        assert_eq!(of(&none), (40, 10));
        assert_eq!(of(&too_much), (40, 10));
    }
}
