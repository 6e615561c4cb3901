//! `accepted`: admitted items.

use bytes::Bytes;

use super::{ReadRooms, Rooms, build, record};
use crate::codec::{columns, refused};
use crate::decode::DecodeError;
use crate::envelope::{Accepted, AcceptedBatch};
use crate::generated as fb;
use crate::limits;

pub(in crate::codec) fn write(batch: &AcceptedBatch) -> Bytes {
    build(256 + batch.entries.len() * 96, |b| {
        let mut rooms = Rooms::default();
        let room_nos: Vec<u16> =
            batch.entries.iter().map(|it| rooms.index(it.app, &it.room)).collect();
        let args = fb::AcceptedBatchArgs {
            rooms: Some(rooms.write(b)),
            room_nos: Some(b.create_vector(&room_nos)),
            items: Some(columns::write_items(b, batch.entries.iter().map(|it| &it.item))),
        };
        fb::AcceptedBatch::create(b, &args)
    })
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<AcceptedBatch, DecodeError> {
    let batch = record::<fb::AcceptedBatch<'_>>(bytes)?;
    let rooms = ReadRooms::read(batch.rooms())?;
    let mut room_nos = batch.room_nos().into_iter().flatten();
    let entries = columns::items(batch.items(), limits::ENVELOPE_ENTRIES_MAX, |item| {
        let room_no = room_nos.next().map_or_else(|| refused("room_nos"), Ok)?;
        let (app, room) = rooms.at(room_no)?;
        Ok(Accepted { app, room, item })
    })?;
    if room_nos.next().is_some() { refused("room_nos") } else { Ok(AcceptedBatch { entries }) }
}
