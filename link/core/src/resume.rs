//! What a returning session gets: all it missed, or an honest gap.

use bytes::Bytes;
use proto::frame::{Downlink, Place, Resumed};
use proto::id::Seq;

use crate::ring::{Cursor, Reading, Ring};

/// How a session goes on in a room.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the session is told.
    pub resumed: Resumed,
    /// Where it reads on.
    pub cursor: Cursor,
}

/// Decides how a session that has shown everything up to `place` goes on.
///
/// Where the ring knows no place at all, as when the node has just started and the room is quiet,
/// the gap is empty: `from` and `to` are both just behind `place`, and what lies there is for the
/// segments to say.
#[must_use]
pub fn plan(ring: &Ring, place: Place, reading: Reading) -> Plan {
    let latest = ring.latest();
    let Some(floor) = ring.floor() else {
        let behind = latest.map_or_else(|| after(place), |it| after(it).max(after(place)));
        return Plan {
            resumed: Resumed::Gap { from: after(place), to: behind },
            cursor: ring.cursor(reading),
        };
    };
    let latest = latest.unwrap_or(floor);
    if place >= latest {
        return Plan { resumed: Resumed::Recovered { items: 0 }, cursor: ring.cursor(reading) };
    }
    if place < floor {
        let to = ring.batches().next().map_or_else(|| after(latest), |(_, first, ..)| first);
        return Plan {
            resumed: Resumed::Gap { from: after(place), to },
            cursor: ring.cursor_at(ring.oldest(), reading, None),
        };
    }
    recover(ring, place, reading)
}

fn recover(ring: &Ring, place: Place, reading: Reading) -> Plan {
    let mut start = None;
    let mut known = None;
    let mut items = 0_u32;
    for (position, first, last, count, frame) in ring.batches() {
        if last <= place {
            continue;
        }
        start.get_or_insert(position);
        if first <= place {
            known = Some(place);
            items = items.saturating_add(items_after(frame, place));
        } else {
            items = items.saturating_add(count);
        }
    }
    let cursor = match start {
        Some(position) => ring.cursor_at(position, reading, known),
        None => ring.cursor(reading),
    };
    Plan { resumed: Resumed::Recovered { items }, cursor }
}

/// The frame of a batch without the items up to `place`; none if it holds none of those.
pub(crate) fn trimmed(frame: &[u8], place: Place) -> Option<Bytes> {
    let Ok(Downlink::Batch(mut batch)) = Downlink::decode(frame) else {
        return None;
    };
    if batch.gen_no != place.gen_no {
        return None;
    }
    batch.items.retain(|it| it.seq > place.seq);
    Some(Downlink::Batch(batch).encode())
}

fn items_after(frame: &[u8], place: Place) -> u32 {
    let Ok(Downlink::Batch(batch)) = Downlink::decode(frame) else {
        return 0;
    };
    let after = batch.items.iter().filter(|it| it.seq > place.seq).count();
    u32::try_from(after).unwrap_or(u32::MAX)
}

const fn after(place: Place) -> Place {
    Place { gen_no: place.gen_no, seq: Seq(place.seq.0.saturating_add(1)) }
}
