//! Records on the bus. Rooms stand once in a list; entries name their index.

pub(super) mod accepted;
pub(super) mod bases;
pub(super) mod gauges;
pub(super) mod reply;
pub(super) mod room;
pub(super) mod uplink;

use std::collections::BTreeMap;

use flatbuffers::{ForwardsUOffset, Vector, WIPOffset};

use super::{Builder, build, record, refused, word};
use crate::decode::DecodeError;
use crate::generated as fb;
use crate::id::{AppId, RoomId};
use crate::limits;

type RoomsOffset = WIPOffset<Vector<'static, ForwardsUOffset<fb::Room<'static>>>>;
type RoomList<'a> = Option<Vector<'a, ForwardsUOffset<fb::Room<'a>>>>;

/// The list of rooms on its way out.
#[derive(Default)]
struct Rooms<'v> {
    known: BTreeMap<(AppId, &'v RoomId), u16>,
    list: Vec<(AppId, &'v RoomId)>,
}

impl<'v> Rooms<'v> {
    /// The index of a room. The decoder refuses more rooms than a record may have entries, so an
    /// index that does not fit is only ever seen there.
    fn index(&mut self, app: AppId, room: &'v RoomId) -> u16 {
        let Self { known, list } = self;
        *known.entry((app, room)).or_insert_with(|| {
            list.push((app, room));
            u16::try_from(list.len() - 1).unwrap_or(u16::MAX)
        })
    }

    fn write(&self, b: &mut Builder) -> RoomsOffset {
        let offsets: Vec<_> = self
            .list
            .iter()
            .map(|(app, room)| {
                let name = Some(b.create_string(room.as_str()));
                fb::Room::create(b, &fb::RoomArgs { app: app.0, name })
            })
            .collect();
        b.create_vector(&offsets)
    }
}

/// The list of rooms on its way in.
struct ReadRooms(Vec<(AppId, RoomId)>);

impl ReadRooms {
    fn read(list: RoomList<'_>) -> Result<Self, DecodeError> {
        check_entries(list.map_or(0, |it| it.len()), "rooms")?;
        let rooms = list.into_iter().flatten();
        rooms
            .map(|it| Ok((AppId(it.app()), word::room(it.name())?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn at(&self, index: u16) -> Result<(AppId, RoomId), DecodeError> {
        self.0.get(usize::from(index)).cloned().map_or_else(|| refused("room"), Ok)
    }
}

fn check_entries(entries: usize, field: &'static str) -> Result<(), DecodeError> {
    if entries > limits::ENVELOPE_ENTRIES_MAX { refused(field) } else { Ok(()) }
}
