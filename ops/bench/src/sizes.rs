//! Bytes of what a room's viewers fetch or are sent: made here and now from the comments of the other
//! benchmarks, for the arithmetic of an event.

use broadcaster_core::pack::{Packed, Packing, pack};
use broadcaster_core::video::{flv, fragment};
use proto::frame::{Batch, Downlink, Seal, prefixed};
use proto::id::{Gen, SlotNo};
use proto::item::Placed;
use proto::segment::Moment;
use proto::time::Wall;
use serde::Serialize;

use crate::segment::{Comments, NOW, header, place};

/// Bytes of one of each.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sizes {
    /// A slot's `.bin`.
    pub segment: usize,
    /// A slot's fragment for HLS.
    pub fragment: usize,
    /// A flush as a frame of the long connection, not compressed.
    pub flush_frame: usize,
    /// The end of a slot as a frame.
    pub seal_frame: usize,
    /// A flush as a tag of the FLV stream.
    pub flush_tag: usize,
}

/// What a room that shows `items_per_s` costs in slots of `interval_ms` with flushes of `flush_ms`.
/// Made-up comments of 16 bytes in the mean: more items a slot are smaller each.
///
/// # Errors
/// Rates for which there are no whole items.
pub fn sizes(items_per_s: u32, interval_ms: u32, flush_ms: u32) -> anyhow::Result<Sizes> {
    let count = |ms: u32| u64::from(items_per_s) * u64::from(ms) / 1000;
    let (per_slot, per_flush) = (count(interval_ms).max(1), count(flush_ms).max(1));
    let step_ms = u64::from(interval_ms) / per_slot;
    let items: Vec<Placed> = place(Comments::new(NOW, step_ms).take(usize::try_from(per_slot)?));
    let flush: Vec<Placed> = items.iter().take(usize::try_from(per_flush)?).cloned().collect();
    let header = header()?;
    let (room, gen_no, slot) = (header.room.clone(), header.gen_no, header.slot);
    let segment = pack(header, vec![items], Vec::new());
    let Packed { bin, json, .. } = Packed::of(&segment, &Packing::default());
    Ok(Sizes {
        segment: bin.len(),
        fragment: fragment::fragment(slot, interval_ms, &json).len(),
        flush_tag: tag(gen_no, slot, &flush),
        seal_frame: {
            let seal = Seal { room: room.clone(), gen_no, slot, items: items_per_s, crc: u32::MAX };
            prefixed(&Downlink::Seal(seal).encode()).len()
        },
        flush_frame: {
            let batch = Batch { room, gen_no, slot, part: 1, items: flush };
            prefixed(&Downlink::Batch(batch).encode()).len()
        },
    })
}

fn tag(gen_no: Gen, slot: SlotNo, items: &[Placed]) -> usize {
    let event = proto::envelope::RoomEvent::Flush {
        gen_no,
        slot,
        part: 1,
        at: Wall(NOW),
        items: items.to_vec(),
    };
    let json = Moment::of(&event).map(|it| it.to_json()).unwrap_or_default();
    flv::tag(0, NOW, &json).map_or(0, |it| it.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_items_are_more_bytes_and_less_each() {
        let (few, many) = (sizes(20, 1000, 200).unwrap(), sizes(100, 1000, 200).unwrap());

        assert!(few.segment < many.segment && many.segment < 5 * few.segment, "{few:?} {many:?}");
        assert!(few.flush_frame < many.flush_frame && few.flush_tag < many.flush_tag);
        assert!(many.fragment > many.segment);
    }
}
