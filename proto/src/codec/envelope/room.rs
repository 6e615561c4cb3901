//! `sealed` and `downlink.{unit}`: what happened in rooms.

use bytes::Bytes;
use flatbuffers::{UnionWIPOffset, WIPOffset};

use super::{ReadRooms, Rooms, build, check_entries, record};
use crate::codec::columns::{self, Order};
use crate::codec::word::{self, Code};
use crate::codec::{Builder, refused};
use crate::decode::DecodeError;
use crate::envelope::{RoomBatch, RoomEntry, RoomEvent};
use crate::generated as fb;
use crate::heat::Heat;
use crate::id::{Gen, ItemId, Seq, SlotNo};
use crate::limits;
use crate::time::Wall;
use crate::verdict::Fate;

/// Bytes that an item has for itself, its sender: what flushes share may not pass for more items.
const ITEM_BYTES_MIN: usize = 8;

pub(in crate::codec) fn write(batch: &RoomBatch) -> Bytes {
    let bytes: usize = batch.entries.iter().map(|it| size_hint(&it.event)).sum();
    build(64 + bytes, |b| {
        let mut rooms = Rooms::default();
        let entries: Vec<_> = batch
            .entries
            .iter()
            .map(|it| {
                let room = rooms.index(it.app, &it.room);
                let (event_type, event) = write_event(b, &it.event);
                let args = fb::RoomEntryArgs { event_type, event: Some(event), room };
                fb::RoomEntry::create(b, &args)
            })
            .collect();
        let args = fb::RoomBatchArgs {
            rooms: Some(rooms.write(b)),
            entries: Some(b.create_vector(&entries)),
        };
        fb::RoomBatch::create(b, &args)
    })
}

fn size_hint(event: &RoomEvent) -> usize {
    match event {
        RoomEvent::Flush { items, .. } => 256 + items.len() * 96,
        RoomEvent::Fates { fates } => 128 + fates.len() * 24,
        RoomEvent::Opened { .. } | RoomEvent::Seal { .. } | RoomEvent::Heat { .. } => 96,
    }
}

fn write_event(b: &mut Builder, event: &RoomEvent) -> (fb::RoomEvent, WIPOffset<UnionWIPOffset>) {
    match event {
        RoomEvent::Opened { gen_no, epoch_ms, interval_ms, layout } => {
            let (gen_no, epoch_ms, interval_ms) = (gen_no.0, epoch_ms.0, *interval_ms);
            let args = fb::OpenedArgs { gen_no, epoch_ms, interval_ms, layout: *layout };
            (fb::RoomEvent::Opened, fb::Opened::create(b, &args).as_union_value())
        }
        RoomEvent::Flush { gen_no, slot, part, at, items } => {
            let args = fb::FlushArgs {
                gen_no: gen_no.0,
                slot: slot.0,
                part: *part,
                at_ms: at.0,
                items: Some(columns::write_placed(b, items.iter())),
            };
            (fb::RoomEvent::Flush, fb::Flush::create(b, &args).as_union_value())
        }
        RoomEvent::Seal { gen_no, slot, items, crc } => {
            let (gen_no, slot, items, crc) = (gen_no.0, slot.0, *items, *crc);
            let args = fb::SealedArgs { gen_no, slot, items, crc };
            (fb::RoomEvent::Sealed, fb::Sealed::create(b, &args).as_union_value())
        }
        RoomEvent::Fates { fates } => {
            (fb::RoomEvent::Fates, write_fates(b, fates).as_union_value())
        }
        RoomEvent::Heat { heat, gen_no, slot, online } => {
            let (heat, gen_no, slot, online) = (heat.wire(), gen_no.0, slot.0, *online);
            let args = fb::HeatedArgs { heat, gen_no, slot, online };
            (fb::RoomEvent::Heated, fb::Heated::create(b, &args).as_union_value())
        }
    }
}

fn write_fates(b: &mut Builder, fates: &[(ItemId, Fate)]) -> WIPOffset<fb::Fates<'static>> {
    let (mut kinds, mut into, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    let (mut gens, mut seqs, mut slots) = (Vec::new(), Vec::new(), Vec::new());
    for (_, fate) in fates {
        kinds.push(match fate {
            Fate::Sealed { gen_no, seq, slot } => {
                gens.push(gen_no.0);
                seqs.push(seq.0);
                slots.push(slot.0);
                fb::FateKind::Sealed.0
            }
            Fate::Merged { into: other } => {
                into.push(other.0);
                fb::FateKind::Merged.0
            }
            Fate::Shed { reason } => {
                reasons.push(*reason as u8);
                fb::FateKind::Shed.0
            }
        });
    }
    let args = fb::FatesArgs {
        ids: Some(b.create_vector_from_iter(fates.iter().map(|(id, _)| id.0))),
        kinds: Some(b.create_vector(&kinds)),
        gens: Some(b.create_vector(&gens)),
        seqs: Some(b.create_vector(&seqs)),
        slots: Some(b.create_vector(&slots)),
        merged_into: Some(b.create_vector(&into)),
        reasons: Some(b.create_vector(&reasons)),
    };
    fb::Fates::create(b, &args)
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<RoomBatch, DecodeError> {
    let batch = record::<fb::RoomBatch<'_>>(bytes)?;
    check_entries(batch.entries().map_or(0, |it| it.len()), "entries")?;
    let rooms = ReadRooms::read(batch.rooms())?;
    let mut items_max = bytes.len() / ITEM_BYTES_MIN;
    let entries = batch.entries().into_iter().flatten().map(|it| {
        let (app, room) = rooms.at(it.room())?;
        let event = read_event(it, items_max)?;
        if let RoomEvent::Flush { items, .. } = &event {
            items_max -= items.len();
        }
        Ok(RoomEntry { app, room, event })
    });
    Ok(RoomBatch { entries: entries.collect::<Result<_, _>>()? })
}

fn read_event(it: fb::RoomEntry<'_>, items_max: usize) -> Result<RoomEvent, DecodeError> {
    if let Some(it) = it.event_as_flush() {
        let items_max = items_max.min(limits::FLUSH_ITEMS_MAX);
        return Ok(RoomEvent::Flush {
            gen_no: Gen(it.gen_no()),
            slot: SlotNo(it.slot()),
            part: it.part(),
            at: Wall(it.at_ms()),
            items: columns::placed(it.items(), items_max, Order::Rising, Ok)?,
        });
    }
    if let Some(it) = it.event_as_sealed() {
        return Ok(RoomEvent::Seal {
            gen_no: Gen(it.gen_no()),
            slot: SlotNo(it.slot()),
            items: it.items(),
            crc: it.crc(),
        });
    }
    if let Some(it) = it.event_as_fates() {
        return Ok(RoomEvent::Fates { fates: read_fates(it)? });
    }
    if let Some(it) = it.event_as_opened() {
        return Ok(RoomEvent::Opened {
            gen_no: Gen(it.gen_no()),
            epoch_ms: Wall(it.epoch_ms()),
            interval_ms: it.interval_ms(),
            layout: it.layout(),
        });
    }
    if let Some(it) = it.event_as_heated() {
        return Ok(RoomEvent::Heat {
            heat: Heat::read(it.heat(), "heat")?,
            gen_no: Gen(it.gen_no()),
            slot: SlotNo(it.slot()),
            online: it.online(),
        });
    }
    refused("event")
}

fn read_fates(it: fb::Fates<'_>) -> Result<Vec<(ItemId, Fate)>, DecodeError> {
    let ids = it.ids().into_iter().flatten();
    let kinds = columns::bytes(it.kinds());
    check_entries(kinds.len(), "fates")?;
    if it.ids().map_or(0, |it| it.len()) != kinds.len() {
        return refused("fates");
    }
    let mut places = it
        .gens()
        .into_iter()
        .flatten()
        .zip(it.seqs().into_iter().flatten())
        .zip(it.slots().into_iter().flatten());
    let mut into = it.merged_into().into_iter().flatten();
    let mut reasons = columns::bytes(it.reasons()).iter();
    let mut fates = Vec::with_capacity(kinds.len());
    for (id, kind) in ids.zip(kinds) {
        let fate = match fb::FateKind(*kind) {
            fb::FateKind::Sealed => places.next().map(|((gen_no, seq), slot)| Fate::Sealed {
                gen_no: Gen(gen_no),
                seq: Seq(seq),
                slot: SlotNo(slot),
            }),
            fb::FateKind::Merged => into.next().map(|it| Fate::Merged { into: ItemId(it) }),
            fb::FateKind::Shed => match reasons.next() {
                Some(code) => Some(Fate::Shed { reason: word::reason(*code)? }),
                None => None,
            },
            _ => None,
        };
        fates.push((ItemId(id), fate.map_or_else(|| refused("fates"), Ok)?));
    }
    if places.next().is_some() || into.next().is_some() || reasons.next().is_some() {
        return refused("fates");
    }
    Ok(fates)
}
