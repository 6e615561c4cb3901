//! What waits to be written to one session: a small queue of its own and a cursor in each room.
//!
//! A room's frames are not copied here; they wait in the room's [`Ring`], shared by everyone.
//! Together at most `bytes_max` wait: a room that runs ahead is skipped forward, and a session
//! whose own queue fills is closed.

use std::sync::Arc;

use bytes::Bytes;
use proto::frame::Codec;
use proto::id::RoomId;

use crate::framing::{Form, Framing};
use crate::ring::{Allowance, Cursor, Reading, Ring, Slow, Taken};

/// Bytes of one room that one write carries.
///
/// A flush of 50 items is about 4 KiB; the rest waits in the ring, where it costs nothing.
pub const WRITE_BYTES_MAX: usize = 64 * 1024;

/// One session's outbox.
///
/// `R` is what it knows a room by: the name, or something that the name can be asked of, so that
/// whoever holds rooms keeps no second list of those that a session follows.
#[derive(Debug)]
pub struct Outbox<R = RoomId> {
    form: Form,
    bytes_max: u32,
    /// None while nothing waits.
    own: Option<Box<Own>>,
    seats: Box<[(R, Cursor)]>,
}

/// Frames for this session alone.
#[derive(Debug, Default)]
struct Own {
    blocks: Vec<Bytes>,
    bytes: usize,
}

/// What has the name of a room.
pub trait OfRoom {
    /// The name.
    fn room(&self) -> &RoomId;
}

impl OfRoom for RoomId {
    fn room(&self) -> &RoomId {
        self
    }
}

impl<R: OfRoom> OfRoom for Arc<R> {
    fn room(&self) -> &RoomId {
        R::room(self)
    }
}

/// A session's place in the ring of one room, for one reading.
#[derive(Debug)]
pub struct Seat<'a> {
    cursor: &'a mut Cursor,
    allowance: Allowance,
}

impl Seat<'_> {
    /// Moves what the room has for the session to `out`.
    ///
    /// # Errors
    /// When the session would miss what must not be missed.
    pub fn take(self, ring: &Ring, out: &mut Vec<Bytes>) -> Result<Taken, Slow> {
        ring.take(self.cursor, self.allowance, out)
    }
}

impl<R: OfRoom> Outbox<R> {
    /// An empty outbox; frames of rooms go out as they are.
    #[must_use]
    pub fn new(framing: Framing, bytes_max: usize) -> Self {
        let bytes_max = u32::try_from(bytes_max).unwrap_or(u32::MAX);
        let form = Form { framing, codec: Codec::Identity };
        Self { form, bytes_max, own: None, seats: Box::default() }
    }

    /// From now on frames of rooms are packed so.
    pub const fn pack(&mut self, codec: Codec) {
        self.form.codec = codec;
    }

    /// Queues a frame for this session alone.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), Slow> {
        let own = self.own.get_or_insert_default();
        if own.bytes.saturating_add(frame.len()) > self.bytes_max as usize {
            return Err(Slow);
        }
        let bytes = self.form.framing.wrap(frame);
        own.bytes += bytes.len();
        own.blocks.push(bytes);
        Ok(())
    }

    /// Follows a room from `cursor` on.
    pub fn follow(&mut self, room: R, cursor: Cursor) {
        let mut seats = std::mem::take(&mut self.seats).into_vec();
        seats.retain(|(it, _)| it.room() != room.room());
        seats.reserve_exact(1);
        seats.push((room, cursor));
        self.seats = seats.into_boxed_slice();
    }

    /// How the session reads a room that it follows.
    #[must_use]
    pub fn reading(&self, room: &RoomId) -> Option<Reading> {
        self.seats.iter().find(|(it, _)| it.room() == room).map(|(_, cursor)| cursor.reading())
    }

    /// Stops following a room.
    pub fn unfollow(&mut self, room: &RoomId) {
        let mut seats = std::mem::take(&mut self.seats).into_vec();
        seats.retain(|(it, _)| it.room() != room);
        self.seats = seats.into_boxed_slice();
    }

    /// Stops following any.
    pub fn unfollow_all(&mut self) {
        self.seats = Box::default();
    }

    /// The rooms that are followed.
    pub fn rooms(&self) -> impl Iterator<Item = &R> {
        self.seats.iter().map(|(room, _)| room)
    }

    /// Moves the frames of this session alone to `out`; they go before those of rooms.
    pub fn take_own(&mut self, out: &mut Vec<Bytes>) -> usize {
        let Some(own) = self.own.take() else {
            return 0;
        };
        out.extend(own.blocks);
        own.bytes
    }

    /// Moves what a room has for this session to `out`.
    ///
    /// # Errors
    /// As [`Seat::take`].
    pub fn take(&mut self, ring: &Ring, out: &mut Vec<Bytes>) -> Result<Taken, Slow> {
        let mut seats = self.seats();
        let seat = seats.find_map(|(it, seat)| (it.room() == ring.room()).then_some(seat));
        seat.map_or_else(|| Ok(Taken::default()), |it| it.take(ring, out))
    }

    /// The session's places in all rooms that it follows.
    pub fn seats(&mut self) -> impl Iterator<Item = (&R, Seat<'_>)> {
        let allowance = Allowance {
            form: self.form,
            backlog_bytes_max: self.bytes_max as usize / self.seats.len().max(1),
            write_bytes_max: WRITE_BYTES_MAX,
        };
        self.seats.iter_mut().map(move |(room, cursor)| (&*room, Seat { cursor, allowance }))
    }
}
