//! What a link says.

use serde::{Deserialize, Serialize};

use super::{Path, Place};
use crate::attribute::Attribute;
use crate::close::CloseCode;
use crate::head::Base;
use crate::heat::Heat;
use crate::id::{Cid, Gen, ItemId, RoomId, SessionId, SlotNo};
use crate::item::{Placed, Role};
use crate::keys::RoomKeys;
use crate::time::Wall;
use crate::verdict::{Reason, Verdict};

/// Server to client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Downlink {
    /// What was agreed.
    Welcome(Welcome),
    /// In.
    LoginOk(LoginOk),
    /// A credential was not taken. Before the login the connection closes; the answer to a refresh
    /// closes nothing, and the session goes on until its end.
    Refused(Refused),
    /// Items of one flush.
    Batch(Batch),
    /// A slot is complete.
    Seal(Seal),
    /// Items were left out because this session is slow.
    Skipped {
        /// Where.
        room: RoomId,
        /// How many.
        items: u32,
    },
    /// What became of a comment. A later Ack for the same cid tells that it was shed or merged.
    Ack(Ack),
    /// A room changed.
    Control(Control),
    /// Answer to [`Join`](super::Uplink::Join).
    Joined(Joined),
    /// Answer to [`Ping`](super::Uplink::Ping).
    Pong {
        /// The number of the Ping.
        nonce: u64,
        /// Now.
        server_ms: Wall,
    },
    /// The server ends the session.
    Close(Close),
}

/// What was agreed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Protocol version: the highest that both ends speak.
    pub proto: u16,
    /// What protects the connection, as the link sees it, by [`crate::suite::Suite::name`].
    pub suite: String,
    /// Codec of compressed frames.
    pub codec: String,
    /// Send a Ping this often (with jitter).
    pub heartbeat_ms: u32,
    /// The server closes after this much silence.
    pub silence_ms: u32,
    /// Largest frame it takes.
    pub frame_bytes_max: u32,
    /// Whether the client's SDK is old and should be upgraded.
    #[serde(default)]
    pub upgrade: bool,
    /// Now.
    pub server_ms: Wall,
    /// Hello's number.
    pub nonce: u64,
}

/// In.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoginOk {
    /// This session.
    pub session: SessionId,
    /// What the viewer is.
    pub role: Role,
    /// `HMAC-SHA-256(exporter, SHA-256(Hello frame || Welcome frame))`, where a binder was given.
    pub confirm: Option<[u8; 32]>,
    /// One answer per join, in order.
    pub rooms: Vec<Joined>,
    /// The session ends then unless refreshed.
    pub expires: Wall,
    /// Sealed proof for the next login within 10 minutes; empty where the node has no key for it.
    pub resume_ticket: String,
}

/// Answer to one join.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// Which room.
    pub room: RoomId,
    /// In, or why not.
    pub outcome: JoinOutcome,
}

/// In a room, or why not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinOutcome {
    /// In.
    In {
        /// Push or segments.
        heat: Heat,
        /// How the room's items will reach this session: never [`Path::Auto`].
        path: Path,
        /// What resume found.
        resumed: Resumed,
        /// The newest place the link knows; items after it follow.
        latest: Option<Place>,
        /// People in the room, as last counted.
        online: u32,
    },
    /// Out.
    Refused {
        /// Why.
        code: CloseCode,
        /// When to try again; 0 if never.
        retry_after_ms: u32,
    },
}

/// What resume found.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumed {
    /// Nothing was asked.
    Fresh,
    /// All items since then follow.
    Recovered {
        /// How many.
        items: u32,
    },
    /// These places are not on this node any more: fetch their segments.
    Gap {
        /// First missing place: just after the one resumed from.
        from: Place,
        /// First place that follows here.
        to: Place,
    },
}

/// Why a credential was not taken.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// Why.
    pub code: CloseCode,
    /// In words.
    pub reason: String,
    /// When to try again; 0 if never.
    pub retry_after_ms: u32,
    /// Now: a client with a wrong clock learns it here.
    pub server_ms: Wall,
}

/// Items of one flush.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Where.
    pub room: RoomId,
    /// Gen of the places.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// Slot the flush belongs to.
    pub slot: SlotNo,
    /// Number of the flush within the slot, from 0.
    pub part: u32,
    /// The items, seq rising.
    pub items: Vec<Placed>,
}

/// A slot is complete.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Seal {
    /// Where.
    pub room: RoomId,
    /// Gen.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// Which slot.
    pub slot: SlotNo,
    /// Items in it, repeats not counted.
    pub items: u32,
    /// [`crate::segment::ids_crc`] of the items.
    pub crc: u32,
}

/// What became of a comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Ack {
    /// Which.
    pub cid: Cid,
    /// What.
    pub outcome: Outcome,
}

/// What a sender learns about a comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Admission's word.
    Verdict(Verdict),
    /// Admitted earlier, now shown as part of another item.
    Merged(ItemId),
    /// Admitted earlier, now given up.
    Shed(Reason),
}

/// A room changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Push or segments, from this place on.
    Heat {
        /// Where.
        room: RoomId,
        /// The new heat.
        heat: Heat,
        /// Gen of the switch.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// First slot on the new path.
        slot: SlotNo,
    },
    /// Segments are served from these bases now.
    Bases {
        /// All of them.
        bases: Vec<Base>,
    },
    /// The room is closed.
    Closed {
        /// Which.
        room: RoomId,
    },
    /// You are muted.
    Muted {
        /// Where.
        room: RoomId,
        /// Until when; 0: until unmuted.
        until: Wall,
    },
    /// The room's notice, attributes or counters changed; who comes in is told all of them.
    Attributes {
        /// Where.
        room: RoomId,
        /// What stands there now; others stay as they are.
        attributes: Vec<Attribute>,
    },
    /// What opens the segments of a sealed room: the keys of the running gen and of the next one,
    /// at most [`crate::keys::ROOM_KEYS_MAX`]. They are told to who comes in, and when they change.
    Keys(RoomKeys),
}

/// The server ends the session.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Close {
    /// Why.
    pub code: CloseCode,
    /// In words.
    pub reason: String,
    /// Wait this long before coming back.
    pub retry_after_ms: u32,
    /// Come back there, with the resume ticket; empty: ask `enter`.
    pub addresses: Vec<String>,
}
