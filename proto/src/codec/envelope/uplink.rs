//! `uplink.{unit}`: what viewers did.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use flatbuffers::WIPOffset;

use super::{ReadRooms, Rooms, build, check_entries, record};
use crate::codec::word::{self, Code};
use crate::codec::{Builder, refused};
use crate::decode::DecodeError;
use crate::envelope::{Act, Origin, UplinkBatch, UplinkEntry};
use crate::generated as fb;
use crate::id::{Cid, DeviceId, NodeId, SessionId, ViewerId};
use crate::item::Role;
use crate::limits;
use crate::time::Wall;

pub(in crate::codec) fn write(batch: &UplinkBatch) -> Bytes {
    build(128 + batch.entries.len() * 160, |b| {
        let mut rooms = Rooms::default();
        let entries: Vec<_> = batch
            .entries
            .iter()
            .map(|it| {
                let room = rooms.index(it.app, &it.room);
                write_entry(b, it, room)
            })
            .collect();
        let args = fb::UplinkBatchArgs {
            node: batch.node.0,
            rooms: Some(rooms.write(b)),
            entries: Some(b.create_vector(&entries)),
        };
        fb::UplinkBatch::create(b, &args)
    })
}

fn write_entry(
    b: &mut Builder,
    entry: &UplinkEntry,
    room: u16,
) -> WIPOffset<fb::UplinkEntry<'static>> {
    let mut style = None;
    let mut args = fb::UplinkEntryArgs {
        session: entry.session.0,
        at_ms: entry.at.0,
        viewer: Some(b.create_string(entry.viewer.as_str())),
        room,
        role: entry.role.wire(),
        may_send: entry.may_send,
        ..Default::default()
    };
    if let Some(Origin { address, device }) = entry.origin.as_deref() {
        args.address = Some(match address.ip() {
            IpAddr::V4(it) => b.create_vector(&it.octets()),
            IpAddr::V6(it) => b.create_vector(&it.octets()),
        });
        args.port = address.port();
        args.device = device.as_ref().map(|it| b.create_string(it.as_str()));
    }
    match &entry.act {
        Act::Join { age_ms } => {
            args.act = fb::Act::Join;
            args.age_ms = *age_ms;
        }
        Act::Leave => args.act = fb::Act::Leave,
        Act::Comment { cid, text, style: given, media_ms } => {
            style = word::write_optional_style(*given);
            args.act = fb::Act::Comment;
            args.cid = cid.0;
            args.text = Some(b.create_string(text));
            args.media_ms = *media_ms;
        }
        Act::Like { count } => {
            args.act = fb::Act::Like;
            args.count = *count;
        }
    }
    fb::UplinkEntry::create(b, &fb::UplinkEntryArgs { style: style.as_ref(), ..args })
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<UplinkBatch, DecodeError> {
    let batch = record::<fb::UplinkBatch<'_>>(bytes)?;
    check_entries(batch.entries().map_or(0, |it| it.len()), "entries")?;
    let rooms = ReadRooms::read(batch.rooms())?;
    let entries = batch.entries().into_iter().flatten();
    Ok(UplinkBatch {
        node: NodeId(batch.node()),
        entries: entries.map(|it| read_entry(it, &rooms)).collect::<Result<_, _>>()?,
    })
}

fn read_entry(it: fb::UplinkEntry<'_>, rooms: &ReadRooms) -> Result<UplinkEntry, DecodeError> {
    let (app, room) = rooms.at(it.room())?;
    Ok(UplinkEntry {
        session: SessionId(it.session()),
        app,
        room,
        viewer: ViewerId::parse(it.viewer()).or_else(|_| refused("viewer"))?,
        role: Role::read(it.role(), "role")?,
        may_send: it.may_send(),
        at: Wall(it.at_ms()),
        origin: read_origin(it)?.map(Box::new),
        act: read_act(it)?,
    })
}

fn read_origin(it: fb::UplinkEntry<'_>) -> Result<Option<Origin>, DecodeError> {
    let Some(address) = it.address() else { return Ok(None) };
    let address: IpAddr = match address.bytes() {
        bytes if bytes.len() == 4 => <[u8; 4]>::try_from(bytes).map(IpAddr::from),
        bytes => <[u8; 16]>::try_from(bytes).map(IpAddr::from),
    }
    .or_else(|_| refused("address"))?;
    let device = it.device().map(DeviceId::parse).transpose().or_else(|_| refused("device"))?;
    Ok(Some(Origin { address: SocketAddr::new(address, it.port()), device }))
}

fn read_act(it: fb::UplinkEntry<'_>) -> Result<Act, DecodeError> {
    Ok(match it.act() {
        fb::Act::Join => Act::Join { age_ms: it.age_ms() },
        fb::Act::Leave => Act::Leave,
        fb::Act::Comment => Act::Comment {
            cid: Cid(it.cid()),
            text: word::text(it.text().unwrap_or_default(), limits::TEXT_BYTES_MAX, "text")?,
            style: word::optional_style(it.style())?,
            media_ms: word::media_ms(it.media_ms())?,
        },
        fb::Act::Like => Act::Like { count: it.count() },
        _ => return refused("act"),
    })
}
