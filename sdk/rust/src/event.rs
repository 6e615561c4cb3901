//! What a client tells its application.

use std::time::Duration;

use bytes::Bytes;
use proto::address::Address;
use proto::close::CloseCode;
use proto::enter::Problem;
use proto::frame::{Ack, Control, Joined, Place};
use proto::heat::Heat;
use proto::id::{Cid, Gen, ItemId, RoomId, SessionId, SlotNo};
use proto::item::{Item, Role};
use proto::time::Mono;
pub use sdk_core::merge::Via;

/// What a client tells its application.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Logged in.
    Connected {
        /// This session.
        session: SessionId,
        /// Where.
        address: Address,
        /// What the viewer is.
        role: Role,
        /// Answers to the joins.
        rooms: Vec<Joined>,
    },
    /// There is no link with room: rooms are read by segments, nothing can be sent.
    ReadOnly {
        /// When the client enters again.
        retry_in: Duration,
    },
    /// Show this item. Each id comes once; places rise in each room, except for protected items
    /// that came after their turn.
    Show {
        /// Where.
        room: RoomId,
        /// Its place in the room's order.
        place: Place,
        /// The item.
        item: Item,
        /// Which way it came.
        via: Via,
        /// When it arrived, by the client's clock.
        received: Mono,
    },
    /// Take this item off the screen.
    Recall {
        /// Where.
        room: RoomId,
        /// Which.
        id: ItemId,
    },
    /// What became of a comment. One that was admitted may be told about again, if it was merged
    /// or shed later.
    Ack(Ack),
    /// The server said nothing about a comment in time.
    Unanswered {
        /// Which.
        cid: Cid,
    },
    /// Items are missing for good.
    Gap {
        /// Where.
        room: RoomId,
        /// First place that may be missing.
        from: Place,
        /// First place behind it that was shown.
        to: Place,
        /// How many at most, if that can be told.
        items: Option<u32>,
    },
    /// The link left items out, because this session was slow.
    Skipped {
        /// Where.
        room: RoomId,
        /// How many.
        items: u32,
    },
    /// A room changes its path.
    Heat {
        /// Where.
        room: RoomId,
        /// The new heat.
        heat: Heat,
        /// Gen of the switch.
        gen_no: Gen,
        /// First slot on the new path.
        slot: SlotNo,
    },
    /// A room's gift catalogue: when the client reads segments and finds a new one, or was asked for
    /// it by [`Client::catalogue`](crate::Client::catalogue).
    ///
    /// A gift whose number stands in no catalogue is newer than it: show it by its number's fallback
    /// (a name such as "gift", a picture that the application brings), and ask for the catalogue.
    Catalogue {
        /// Where.
        room: RoomId,
        /// Rises by one with each change.
        version: u32,
        /// The app's own JSON, as its business server set it; none where it set none.
        catalogue: Option<Bytes>,
    },
    /// The room's segments are sealed, and no key for this gen was told, which comes with a ticket
    /// for the room. Told once for each gen; what the viewer cannot open counts as missing.
    Locked {
        /// Where.
        room: RoomId,
        /// Whose key is missing.
        gen_no: Gen,
    },
    /// Another answer to a join.
    Joined(Joined),
    /// Another change of a room.
    Control(Control),
    /// The connection, or an attempt to make one, ended; the client comes back.
    Disconnected {
        /// What the server said, if it said something.
        code: Option<CloseCode>,
        /// When the client tries again.
        retry_in: Duration,
    },
    /// Over. The last event.
    Ended(End),
}

/// Why a client ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// The application closed it.
    Closed,
    /// The server said so, and not to come back.
    Code(CloseCode),
    /// `enter` refused the ticket.
    Enter(Problem),
}
