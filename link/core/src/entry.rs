//! What a session that comes into a room is told, and where it begins to read.

use proto::frame::{Control, Path, Place, Resumed};
use proto::heat::Heat;

use crate::resume;
use crate::ring::{Cursor, Reading, Ring, Switch};

/// A session's beginning in a room.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Push or segments, in the slot that is being filled.
    pub heat: Heat,
    /// How items come from now on: push or segments.
    pub path: Path,
    /// What resume found.
    pub resumed: Resumed,
    /// To be said right after the answer: a switch that was announced before the session came and
    /// is still ahead. It is behind the cursor, so the session would never hear of it.
    pub news: Option<Control>,
    /// Where it reads on.
    pub cursor: Cursor,
}

/// Decides how a session begins in a room; `resume` is the last place it was shown.
#[must_use]
pub fn enter(ring: &Ring, resume: Option<Place>, reading: Reading) -> Entry {
    let heat = ring.open_heat();
    let path = match (reading, heat) {
        (Reading::Promoted, _) | (Reading::Auto, Heat::Cold) => Path::Push,
        (Reading::Auto, Heat::Hot) | (Reading::Segments, _) => Path::Segments,
    };
    let (resumed, cursor) = match resume {
        Some(place) if path == Path::Push => {
            let plan = resume::plan(ring, place, reading);
            (plan.resumed, plan.cursor)
        }
        Some(_) | None => (Resumed::Fresh, ring.cursor(reading)),
    };
    let news = ring.pending().map(|Switch { heat, gen_no, slot }| Control::Heat {
        room: ring.room().clone(),
        heat,
        gen_no,
        slot,
    });
    Entry { heat, path, resumed, news, cursor }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proto::frame::Seal;
    use proto::id::{Gen, RoomId, SlotNo};
    use proto::time::Mono;

    use super::*;
    use crate::ring::Limits;

    const NOW: Mono = Mono(1000);

    fn ring(sealed: u64, heat: Heat, from: u64) -> Ring {
        let keep = Duration::from_secs(60);
        let limits = Limits { bytes_max: 1 << 20, kept_bytes_max: 1 << 20, keep };
        let room = RoomId::parse("room").unwrap();
        let mut ring = Ring::new(room.clone(), limits);
        let switch = |heat, slot| Switch { heat, gen_no: Gen(1), slot: SlotNo(slot) };
        if heat == Heat::Cold {
            ring.switch(switch(Heat::Hot, 0), NOW);
        }
        let seal = Seal { room, gen_no: Gen(1), slot: SlotNo(sealed), items: 0, crc: 0 };
        ring.seal(seal, NOW);
        ring.switch(switch(heat, from), NOW);
        ring
    }

    #[test]
    fn a_switch_that_is_still_ahead_is_told_and_not_yet_followed() {
        let to_cold = enter(&ring(33, Heat::Cold, 36), None, Reading::Auto);
        let to_hot = enter(&ring(13, Heat::Hot, 16), None, Reading::Auto);

        assert_eq!((to_cold.heat, to_cold.path), (Heat::Hot, Path::Segments));
        assert!(matches!(to_cold.news, Some(Control::Heat { slot: SlotNo(36), .. })));
        assert_eq!((to_hot.heat, to_hot.path), (Heat::Cold, Path::Push));
        assert!(matches!(to_hot.news, Some(Control::Heat { slot: SlotNo(16), .. })));
    }

    #[test]
    fn a_switch_in_force_is_followed() {
        let entry = enter(&ring(35, Heat::Cold, 36), None, Reading::Auto);

        assert_eq!((entry.heat, entry.path, entry.news), (Heat::Cold, Path::Push, None));
    }
}
