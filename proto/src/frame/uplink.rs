//! What a client says.

use serde::{Deserialize, Serialize};

use super::{Path, Place};
use crate::id::{Cid, DeviceId, RoomId};
use crate::item::Style;
use crate::quality::BaseReport;

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
    /// Still here; the server answers [`Pong`](super::Downlink::Pong) with the same number.
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
