//! Fixed bytes and short names, as tokens and resume tickets carry them.

use proto::id::{DeviceId, RoomId, ViewerId};
use proto::limits::{ACCOUNT_BYTES_MAX, DEVICE_BYTES_MAX, ROOM_BYTES_MAX, ROOMS_PER_SESSION_MAX};

use crate::token::Rooms;

/// Bytes of `len u8 account | len u8 device | n u8 × (len u8 room)` at their longest.
pub(crate) const NAMES_BYTES_MAX: usize = (1 + ACCOUNT_BYTES_MAX)
    + (1 + DEVICE_BYTES_MAX)
    + 1
    + ROOMS_PER_SESSION_MAX * (1 + ROOM_BYTES_MAX);

/// Cut off, too long, or a name outside its grammar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Damaged;

/// Appends account, device and rooms.
pub(crate) fn push_names(
    bytes: &mut Vec<u8>,
    account: &ViewerId,
    device: Option<&DeviceId>,
    rooms: &Rooms,
) {
    push_name(bytes, account.as_str());
    push_name(bytes, device.map_or("", DeviceId::as_str));
    bytes.push(u8::try_from(rooms.len()).expect("Rooms holds at most 8"));
    for room in rooms.iter() {
        push_name(bytes, room.as_str());
    }
}

fn push_name(bytes: &mut Vec<u8>, name: &str) {
    bytes.push(u8::try_from(name.len()).expect("the ids' grammars end at 64 bytes"));
    bytes.extend_from_slice(name.as_bytes());
}

/// The bytes not read yet.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*head)
    }

    /// Account, device and rooms, and nothing behind them.
    pub(crate) fn names(mut self) -> Result<(ViewerId, Option<DeviceId>, Rooms), Damaged> {
        let account = ViewerId::parse(self.name()?).map_err(|_| Damaged)?;
        let device = match self.name()? {
            "" => None,
            name => Some(DeviceId::parse(name).map_err(|_| Damaged)?),
        };
        let [count] = self.array()?;
        if usize::from(count) > ROOMS_PER_SESSION_MAX {
            return Err(Damaged);
        }
        let rooms: Vec<RoomId> = (0..count).map(|_| self.room()).collect::<Result<_, _>>()?;
        if !self.0.is_empty() {
            return Err(Damaged);
        }
        Ok((account, device, Rooms::try_from(rooms).map_err(|_| Damaged)?))
    }

    fn room(&mut self) -> Result<RoomId, Damaged> {
        RoomId::parse(self.name()?).map_err(|_| Damaged)
    }

    fn name(&mut self) -> Result<&'a str, Damaged> {
        let [length] = self.array()?;
        let (name, rest) = self.0.split_at_checked(usize::from(length)).ok_or(Damaged)?;
        self.0 = rest;
        std::str::from_utf8(name).map_err(|_| Damaged)
    }
}
