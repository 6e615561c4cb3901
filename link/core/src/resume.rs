//! What a returning session gets: all it missed, or an honest gap.

use bytes::Bytes;
use proto::frame::{Downlink, Place, Resumed};
use proto::id::Seq;

use crate::ring::{Cursor, Known, Reading, Ring};

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
            cursor: ring.cursor_behind(place, reading),
        };
    };
    let latest = latest.unwrap_or(floor);
    if place >= latest {
        // Behind it, as at a node that lags, come items that the session knows.
        let cursor = match place == latest {
            true => ring.cursor(reading),
            false => ring.cursor_behind(place, reading),
        };
        return Plan { resumed: Resumed::Recovered { items: 0 }, cursor };
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
            let batch = Batched::of(frame, place);
            known = Some(Known { place, plain: batch.plain_before });
            items = items.saturating_add(batch.after);
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

/// What is left of a batch for a session that knows its first items.
#[derive(Debug)]
pub(crate) enum Trimmed {
    /// All of it.
    Whole,
    /// A frame with the rest.
    Rest(Bytes),
    /// The session knows all of it.
    Nothing,
}

/// The frame of a batch without the items up to `place`.
pub(crate) fn trimmed(frame: &[u8], place: Place) -> Trimmed {
    let Ok(Downlink::Batch(mut batch)) = Downlink::decode(frame) else {
        return Trimmed::Whole;
    };
    let before = batch.items.len();
    batch.items.retain(|it| batch.gen_no != place.gen_no || it.seq > place.seq);
    match batch.items.len() {
        0 => Trimmed::Nothing,
        after if after == before => Trimmed::Whole,
        _ => Trimmed::Rest(Downlink::Batch(batch).encode()),
    }
}

/// How a batch lies around a place that is in it.
#[derive(Debug, Default)]
struct Batched {
    /// Items up to the place that are not protected.
    plain_before: u32,
    /// Items after it.
    after: u32,
}

impl Batched {
    fn of(frame: &[u8], place: Place) -> Self {
        let mut batched = Self::default();
        if let Ok(Downlink::Batch(batch)) = Downlink::decode(frame) {
            for it in &batch.items {
                batched.after += u32::from(it.seq > place.seq);
                let is_plain = it.seq <= place.seq && !it.item.lane.is_protected();
                batched.plain_before += u32::from(is_plain);
            }
        }
        batched
    }
}

const fn after(place: Place) -> Place {
    Place { gen_no: place.gen_no, seq: Seq(place.seq.0.saturating_add(1)) }
}
