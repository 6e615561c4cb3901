//! `gauges`: what links carry.

use bytes::Bytes;

use super::{build, check_entries, record};
use crate::codec::{refused, word};
use crate::decode::DecodeError;
use crate::envelope::{LinkGauges, RoomGauge};
use crate::generated as fb;
use crate::id::{AppId, NodeId, UnitId};
use crate::time::Wall;

pub(in crate::codec) fn write(gauges: &LinkGauges) -> Bytes {
    let rooms = &gauges.rooms;
    build(128 + rooms.len() * 48, |b| {
        let names: Vec<&str> = rooms.iter().map(|it| it.room.as_str()).collect();
        let args = fb::LinkGaugesArgs {
            node: gauges.node.0,
            unit: gauges.unit.0,
            at_ms: gauges.at.0,
            apps: Some(b.create_vector_from_iter(rooms.iter().map(|it| it.app.0))),
            rooms: word::write_words(b, &names),
            people: Some(b.create_vector_from_iter(rooms.iter().map(|it| it.people))),
            sessions: Some(b.create_vector_from_iter(rooms.iter().map(|it| it.sessions))),
            offered: Some(b.create_vector_from_iter(rooms.iter().map(|it| it.offered))),
            ..fb::LinkGaugesArgs::default()
        };
        fb::LinkGauges::create(b, &args)
    })
}

pub(in crate::codec) fn read(bytes: &[u8]) -> Result<LinkGauges, DecodeError> {
    let it = record::<fb::LinkGauges<'_>>(bytes)?;
    let count = it.rooms().map_or(0, |it| it.len());
    check_entries(count, "rooms")?;
    let columns = [it.apps(), it.people(), it.sessions(), it.offered()];
    if columns.iter().any(|it| it.map_or(0, |it| it.len()) != count) {
        return refused("columns");
    }
    let [apps, people, sessions, offered] = columns.map(|it| it.into_iter().flatten());
    let names = it.rooms().into_iter().flatten();
    let rooms = names.zip(apps).zip(people.zip(sessions).zip(offered)).map(
        |((name, app), ((people, sessions), offered))| {
            Ok(RoomGauge { app: AppId(app), room: word::room(name)?, people, sessions, offered })
        },
    );
    Ok(LinkGauges {
        node: NodeId(it.node()),
        unit: UnitId(it.unit()),
        at: Wall(it.at_ms()),
        rooms: rooms.collect::<Result<_, _>>()?,
    })
}
