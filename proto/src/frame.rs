//! What a viewer and a link node say to each other.
//!
//! On TCP and QUIC a frame is `u32 length, big-endian | u8 kind | u8 flags | FlatBuffer`; the
//! length counts everything behind itself. A WebSocket message is the same without the length.
//! Flag bit 0 says that the FlatBuffer is compressed with the codec that the Welcome named; only a
//! link sends such frames, and no other flag is known yet.
//!
//! [`Uplink::encode`] and [`Downlink::encode`] give `kind | flags | FlatBuffer`; [`prefixed`] puts
//! the length before it. A client [`expand`]s a frame before [`Downlink::decode`]. Decoding goes
//! through the verifier with the limits of [`crate::limits`].

mod codec;
mod downlink;
mod uplink;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::id::{Gen, Seq};

pub use codec::{Codec, deflate, expand};
pub use downlink::{
    Ack, Batch, Close, Control, Downlink, JoinOutcome, Joined, LoginOk, Outcome, Refused, Resumed,
    Seal, Welcome,
};
pub use uplink::{Comment, Credential, Hello, Join, Login, Report, Uplink};

/// The newest protocol version this code speaks, and so far the only one.
pub const PROTO_VERSION: u16 = 1;

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

/// Puts the length before a frame's `kind | flags | FlatBuffer`, as TCP and QUIC carry it.
#[must_use]
pub fn prefixed(frame: &[u8]) -> Bytes {
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(frame.len() + 4);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(frame);
    bytes.into()
}
