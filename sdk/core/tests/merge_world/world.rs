//! Random worlds: what happened in a room, as pushes and as segments.

use proptest::prelude::*;
use proto::frame::{Batch, Seal};
use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Repeat, Role};
use proto::segment::{Header, Segment};
use proto::time::Wall;

use crate::GEN;

/// A room's whole history: slots of flushes of items.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) slots: Vec<Vec<Vec<Placed>>>,
}

/// One frame of the push stream.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Batch(Batch),
    Seal(Seal),
    Heat { heat: Heat, slot: SlotNo },
}

impl World {
    pub(crate) fn items(&self, slot: usize) -> impl Iterator<Item = &Placed> {
        self.slots[slot].iter().flatten()
    }

    fn seal(&self, slot: usize) -> Seal {
        let mut crc = crc32fast::Hasher::new();
        for placed in self.items(slot) {
            crc.update(&placed.item.id.0.to_le_bytes());
        }
        Seal {
            room: room(),
            gen_no: GEN,
            slot: SlotNo(slot as u64),
            items: u32::try_from(self.items(slot).count()).expect("few items"),
            crc: crc.finalize(),
        }
    }

    pub(crate) fn segment(&self, slot: usize) -> Segment {
        let before = slot.checked_sub(1);
        let repeats = before.into_iter().flat_map(|it| self.items(it));
        let repeats = repeats.filter(|it| it.item.lane.is_protected());
        Segment {
            header: header(slot),
            items: self.items(slot).cloned().collect(),
            repeats: repeats.map(|it| Repeat { gen_no: GEN, placed: it.clone() }).collect(),
        }
    }

    /// The push stream. A seal comes after its slot's flushes, or one flush later.
    pub(crate) fn frames(&self, late_seals: bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut late = None;
        for (slot, flushes) in self.slots.iter().enumerate() {
            for (part, items) in flushes.iter().enumerate() {
                frames.push(Frame::Batch(Batch {
                    room: room(),
                    gen_no: GEN,
                    slot: SlotNo(slot as u64),
                    part: u32::try_from(part).expect("few flushes"),
                    items: items.clone(),
                }));
                frames.extend(late.take());
            }
            frames.extend(late.take());
            let seal = Frame::Seal(self.seal(slot));
            if late_seals {
                late = Some(seal);
            } else {
                frames.push(seal);
            }
        }
        frames.extend(late);
        frames
    }

    pub(crate) fn ids_from(&self, slot: usize) -> Vec<ItemId> {
        (slot..self.slots.len()).flat_map(|it| self.items(it)).map(|it| it.item.id).collect()
    }
}

/// 4–16 slots of 0–3 flushes of 1–3 items; in half of the worlds seq has holes by design.
pub(crate) fn world() -> impl Strategy<Value = World> {
    let item = (any::<bool>(), 1_u64..4);
    let flush = prop::collection::vec(item, 1..4);
    let slot = prop::collection::vec(flush, 0..4);
    (prop::collection::vec(slot, 4..16), any::<bool>()).prop_map(|(slots, sparse)| {
        let mut seq = 0;
        let mut place = |(protected, step)| {
            seq += if sparse { step } else { 1 };
            let lane = if protected { Lane::HighGift } else { Lane::Comment };
            Placed { seq: Seq(seq), item: item_of(1_000 + seq, lane) }
        };
        let mut flush_of = |it: Vec<_>| it.into_iter().map(&mut place).collect::<Vec<_>>();
        let mut slot_of = |it: Vec<_>| it.into_iter().map(&mut flush_of).collect::<Vec<_>>();
        World { slots: slots.into_iter().map(&mut slot_of).collect() }
    })
}

fn item_of(id: u64, lane: Lane) -> Item {
    Item {
        id: ItemId(id),
        lane,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: Wall(0),
        body: Body::Entry,
    }
}

fn header(slot: usize) -> Header {
    Header {
        room: room(),
        gen_no: GEN,
        slot: SlotNo(slot as u64),
        tier: Tier::Full,
        epoch_ms: Wall(0),
        interval_ms: 1_000,
        now_ms: Wall(0),
        spread_ms: 500,
        next_tier: None,
        online: 1,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    }
}

fn room() -> RoomId {
    RoomId::parse("room-1").expect("a room's name")
}
