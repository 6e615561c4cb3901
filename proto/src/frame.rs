//! What a viewer and a link node say to each other.
//!
//! On TCP and QUIC a frame is `u32 length, big-endian | u8 kind | u8 flags | FlatBuffer`; the
//! length counts everything behind itself. A WebSocket message is the same without the length.
//! No flag is known yet: bit 0 is kept for compressed FlatBuffers (server to client only).
//!
//! [`Uplink::encode`] and [`Downlink::encode`] give `kind | flags | FlatBuffer`; [`prefixed`] puts
//! the length before it. Decoding goes through the verifier with the limits of [`crate::limits`].

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::close::CloseCode;
use crate::head::Base;
use crate::heat::Heat;
use crate::id::{Cid, DeviceId, Gen, RoomId, Seq, SessionId, SlotNo};
use crate::item::{Placed, Role, Style};
use crate::quality::BaseReport;
use crate::time::Wall;
use crate::verdict::Verdict;

/// The newest protocol version this code speaks, and so far the only one.
pub const PROTO_VERSION: u16 = 1;
/// The codec that every client understands: frames as they are.
pub const CODEC_IDENTITY: &str = "identity";

/// Client to server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uplink {
    /// First frame: what the client can.
    Hello(Hello),
    /// Who it is and where it wants to be; may follow Hello in the same flight.
    Login(Login),
    /// A comment.
    Comment(Comment),
    /// Applause.
    Like {
        /// Where.
        room: RoomId,
        /// How many since the last one.
        count: u32,
    },
    /// Into another room of the token.
    Join(Join),
    /// Out of a room.
    Leave {
        /// Which.
        room: RoomId,
    },
    /// A new token for the running session.
    Refresh {
        /// The token's text.
        token: String,
    },
    /// How well segments arrive.
    Report(Report),
    /// Still here; the server answers [`Downlink::Pong`] with the same number.
    Ping {
        /// The client's own number.
        nonce: u64,
    },
}

/// What a client can.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The SDK's name, such as `barrage-rust`.
    pub sdk: String,
    /// The SDK's version, such as `0.1.0`.
    pub sdk_version: String,
    /// Oldest protocol version it speaks.
    pub proto_min: u16,
    /// Newest protocol version it speaks.
    pub proto_max: u16,
    /// What may protect the connection, by [`crate::suite::Suite::name`], best first. A link whose
    /// channel is not among them refuses.
    pub suites: Vec<String>,
    /// Frame codecs it can decompress, best first; `identity` is always understood.
    pub codecs: Vec<String>,
    /// Random.
    pub nonce: u64,
}

/// Who it is and where it wants to be.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Login {
    /// Proof of permission.
    pub credential: Credential,
    /// `HMAC-SHA-256(exporter, SHA-256(Hello frame) || credential)`; absent where the listener needs none.
    pub binder: Option<[u8; 32]>,
    /// The device's name.
    pub device: Option<DeviceId>,
    /// Rooms to enter at once, at most [`crate::limits::ROOMS_PER_SESSION_MAX`].
    pub joins: Vec<Join>,
}

/// Proof of permission to connect.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    /// A token from `enter`.
    Token(String),
    /// A resume ticket from an earlier LoginOk.
    ResumeTicket(String),
}

/// A wish to be in a room.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Which.
    pub room: RoomId,
    /// How its items should come.
    pub path: Path,
    /// The last place that was shown; items behind it are wanted.
    pub resume: Option<Place>,
}

/// A place in a room's order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Place {
    /// Gen.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// Position in it.
    pub seq: Seq,
}

/// How a room's items reach a session.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// As the room's heat says.
    #[default]
    Auto = 0,
    /// Over the long connection.
    Push = 1,
    /// By segments; the connection carries acks and control only.
    Segments = 2,
}

/// A comment on its way in.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Comment {
    /// The sender's number for it.
    pub cid: Cid,
    /// Where.
    pub room: RoomId,
    /// The text.
    pub text: String,
    /// How it should look.
    pub style: Style,
    /// Position in the picture the sender sees, at most [`crate::limits::MEDIA_MS_MAX`].
    pub media_ms: Option<u64>,
}

/// How well segments arrived since the last report.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Segments asked for.
    pub fetches: u32,
    /// Fetches that failed.
    pub failures: u32,
    /// Segments given up.
    pub missed: u32,
    /// Mean time of a fetch.
    pub fetch_ms: u32,
    /// The same by base, at most [`crate::limits::BASES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<BaseReport>,
}

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
    /// Answer to [`Uplink::Join`].
    Joined(Joined),
    /// Answer to [`Uplink::Ping`].
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
    Merged(crate::id::ItemId),
    /// Admitted earlier, now given up.
    Shed(crate::verdict::Reason),
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

/// Puts the length before a frame's `kind | flags | FlatBuffer`, as TCP and QUIC carry it.
#[must_use]
pub fn prefixed(frame: &[u8]) -> Bytes {
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(frame.len() + 4);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(frame);
    bytes.into()
}
