//! Items, flushes and segments of the one room of these tests.

use proto::frame::{Batch, Seal};
use proto::head::{Head, Tier};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Repeat, Role, Style};
use proto::segment::{Header, Segment};
use proto::time::Wall;

use crate::link::SERVER_MS;

pub(crate) const GEN: Gen = Gen(1);
pub(crate) const INTERVAL_MS: u32 = 200;

pub(crate) fn room() -> RoomId {
    RoomId::parse("room-1").expect("a room's name")
}

/// Item `seq` of the room; its id is seq + 1,000.
pub(crate) fn item(seq: u64) -> Placed {
    let body = Body::Comment {
        text: format!("comment {seq}").into(),
        style: Style::default(),
        media_ms: None,
        count: 1,
    };
    let item = Item {
        id: ItemId(1_000 + seq),
        lane: Lane::Comment,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: SERVER_MS,
        body,
    };
    Placed { seq: Seq(seq), item }
}

pub(crate) fn gift(seq: u64) -> Placed {
    let Placed { seq, item } = item(seq);
    Placed { seq, item: Item { lane: Lane::HighGift, ..item } }
}

pub(crate) fn batch(slot: u64, part: u32, seqs: &[u64]) -> Batch {
    Batch {
        room: room(),
        gen_no: GEN,
        slot: SlotNo(slot),
        part,
        items: seqs.iter().map(|&it| item(it)).collect(),
    }
}

pub(crate) fn seal(slot: u64, seqs: &[u64]) -> Seal {
    let ids = seqs.iter().flat_map(|it| (1_000 + it).to_le_bytes()).collect::<Vec<_>>();
    Seal {
        room: room(),
        gen_no: GEN,
        slot: SlotNo(slot),
        items: u32::try_from(seqs.len()).expect("few"),
        crc: crc(&ids),
    }
}

/// CRC-32 (IEEE), bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

pub(crate) fn segment(slot: u64, items: Vec<Placed>) -> Segment {
    segment_of(GEN, slot, items, SERVER_MS)
}

/// Slot 0 of the gen starts at `epoch_ms`.
pub(crate) fn segment_of(gen_no: Gen, slot: u64, items: Vec<Placed>, epoch_ms: Wall) -> Segment {
    let header = Header {
        room: room(),
        gen_no,
        slot: SlotNo(slot),
        tier: Tier::Full,
        epoch_ms,
        interval_ms: INTERVAL_MS,
        now_ms: Wall(epoch_ms.0 + (slot + 1) * u64::from(INTERVAL_MS)),
        spread_ms: 0,
        next_tier: None,
        online: 1,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    };
    Segment { header, items, repeats: Vec::new() }
}

pub(crate) fn repeat(placed: Placed) -> Repeat {
    Repeat { gen_no: GEN, placed }
}

pub(crate) fn head(newest: u64) -> Head {
    head_of(GEN, newest, SERVER_MS)
}

pub(crate) fn head_of(gen_no: Gen, newest: u64, epoch_ms: Wall) -> Head {
    Head {
        v: 1,
        gen_no,
        epoch_ms,
        interval_ms: INTERVAL_MS,
        slot: SlotNo(newest),
        oldest: SlotNo(0),
        now_ms: Wall(epoch_ms.0 + (newest + 1) * u64::from(INTERVAL_MS)),
        spread_ms: 0,
        tiers: vec![Tier::Full],
        heat: Heat::Hot,
        online: 1,
        sealed: false,
        bases: Vec::new(),
        recalled: Vec::new(),
        catalogue: 0,
        app: None,
        dict: None,
        next: None,
        end: None,
        past: Vec::new(),
        hls: None,
    }
}
