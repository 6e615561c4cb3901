//! What a room's machine keeps to: the room's own settings and the broadcaster's configuration.

use std::time::Duration;

use proto::control::{LaneShares, RoomFact, RoomSettings, Segments};
use proto::head::{PLAIN, SEALED};
use proto::id::RoomId;
use proto::limits::{SEGMENT_BYTES_MAX, SEGMENT_ITEMS_MAX};

use crate::budget::Budget;
use crate::lane::Shares;
use crate::{scheduler, tempo, thermostat};

/// Shortest and longest slot; what a room asks for is moved into this range.
pub const INTERVAL_MS_MIN: u32 = 200;
/// See [`INTERVAL_MS_MIN`].
pub const INTERVAL_MS_MAX: u32 = 10_000;
/// How long more must fetch a room's slots than shorter ones allow before they become longer.
const LONGER_HOLD: Duration = Duration::from_secs(10);
/// How long fewer must before they become shorter: each change is a new gen.
const SHORTER_HOLD: Duration = Duration::from_mins(1);

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
    /// Longest slot while very many fetch a room's slots, where a room does not say so.
    pub interval_ms_max: u32,
    /// Requests a second for one room's slots from which they become longer.
    pub polls_per_s_max: u32,
    /// Which rooms are recorded.
    pub archived: Archived,
}

/// Which rooms a house records.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Archived {
    /// None, whatever they ask for.
    #[default]
    None,
    /// Those that ask for it.
    Asked,
    /// All that do not ask for the contrary.
    All,
}

impl Archived {
    /// Whether a room is recorded. Sealed ones never are: the archive is no place for what only
    /// those may read who paid.
    fn holds(self, settings: &RoomSettings) -> bool {
        let is_asked = match self {
            Self::None => false,
            Self::Asked => settings.archive.unwrap_or(false),
            Self::All => settings.archive.unwrap_or(true),
        };
        is_asked && !settings.sealed
    }
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
            interval_ms_max: 5000,
            polls_per_s_max: 300_000,
            archived: Archived::None,
        }
    }
}

/// What one room's machine keeps to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which room.
    pub room: RoomId,
    /// How long slots are.
    pub tempo: tempo::Limits,
    /// When segments are written.
    pub segments: Segments,
    /// Whether the room is recorded.
    pub is_archived: bool,
    /// Layout of the segments: [`PLAIN`] or [`SEALED`]. A change opens a gen.
    pub layout: u32,
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
        let is_archived = house.archived.holds(&fact.settings);
        Self {
            room: fact.room.clone(),
            tempo: tempo(&fact.settings, &house),
            segments: if is_archived { Segments::Always } else { fact.settings.segments },
            is_archived,
            layout: if fact.settings.sealed { SEALED } else { PLAIN },
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
                merges_equal: fact.settings.merge_equal,
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

/// A room whose second fills a segment's half keeps its slots short enough for the rest of it.
fn tempo(settings: &RoomSettings, house: &House) -> tempo::Limits {
    let filled_ms = |max: usize, per_s: u32| {
        let ms = (max / 2).saturating_mul(1000) / (per_s.max(1) as usize);
        u32::try_from(ms).unwrap_or(u32::MAX)
    };
    let interval_ms_max = settings.interval_ms_max.unwrap_or(house.interval_ms_max);
    tempo::Limits {
        interval_ms: settings.interval_ms.clamp(INTERVAL_MS_MIN, INTERVAL_MS_MAX),
        interval_ms_max: interval_ms_max
            .min(INTERVAL_MS_MAX)
            .min(filled_ms(SEGMENT_ITEMS_MAX, settings.items_per_s))
            .min(filled_ms(SEGMENT_BYTES_MAX, settings.bytes_per_s)),
        polls_per_s_max: house.polls_per_s_max,
        longer_hold: LONGER_HOLD,
        shorter_hold: SHORTER_HOLD,
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

    #[test]
    fn a_room_is_recorded_as_it_and_the_house_say_but_never_a_sealed_one() {
        let room = RoomId::parse("r").unwrap();
        let is_archived = |archived, archive, sealed| {
            let settings = RoomSettings { archive, sealed, ..RoomSettings::default() };
            let fact =
                RoomFact { app: AppId(1), room: room.clone(), version: 1, open: true, settings };
            let settings = Settings::new(&fact, House { archived, ..House::default() });
            assert_eq!(settings.is_archived, settings.segments == Segments::Always);
            settings.is_archived
        };

        let words = [None, Some(true), Some(false)];
        let by = |archived| words.map(|it| is_archived(archived, it, false));
        assert_eq!(by(Archived::None), [false, false, false]);
        assert_eq!(by(Archived::Asked), [false, true, false]);
        assert_eq!(by(Archived::All), [true, true, false]);
        assert!(!is_archived(Archived::All, Some(true), true));
    }
}
