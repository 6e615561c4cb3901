//! `POST /v1/enter`: the ticket goes in, addresses and tokens come out. JSON.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::address::{Address, Transport};
use crate::head::Base;
use crate::id::{AppId, RoomId};
use crate::time::Wall;

/// The question.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnterRequest {
    /// The business server's word, a JWT; empty where a room's policy asks for none.
    pub ticket: String,
    /// Without a ticket: whose room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<AppId>,
    /// Without a ticket: which room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomId>,
    /// What the client is; all of it optional.
    pub client: Client,
    /// `host:port` of a running session's address: mint a token for that one only. It takes a
    /// ticket: without one nothing proves whose session it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew: Option<String>,
}

/// What the client is.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Client {
    /// The device's name, bound into the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Transports it can speak, best first; empty: all but the national one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<Transport>,
    /// Its address, when a business server asks on its behalf with an API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
}

/// The answer. With no addresses the system is full: read the segments and ask again later.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct EnterResponse {
    /// Now.
    pub server_ms: Wall,
    /// Where to connect, in this order.
    pub addresses: Vec<Offer>,
    /// Delivery paths in order of preference for this class of client.
    pub delivery: Vec<Delivery>,
    /// Where segments are served.
    pub segments: Vec<Base>,
    /// How to try again.
    pub retry: Retry,
}

/// One address with its token.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Offer {
    /// Where.
    #[serde(flatten)]
    pub address: Address,
    /// Permission to connect there.
    pub token: String,
}

/// A way by which items reach a viewer.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Over the long connection.
    Push,
    /// Segments from the CDN.
    Segments,
}

/// How to try again: wait `base_ms × factor^n`, at most `max_ms`, of it a random share up to `jitter`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Retry {
    /// First wait.
    pub base_ms: u32,
    /// Longest wait.
    pub max_ms: u32,
    /// Growth.
    pub factor: f32,
    /// Random share, 0 to 1; 1 is full jitter.
    pub jitter: f32,
}

impl Default for Retry {
    fn default() -> Self {
        Self { base_ms: 500, max_ms: 30_000, factor: 2.0, jitter: 1.0 }
    }
}

/// Why `enter` said no; the body of every status other than 200 (RFC 9457, with `code` and more).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// Stable word, such as `ticket_expired`.
    pub code: String,
    /// For people.
    pub title: String,
    /// When to try again; 0 if never.
    #[serde(default)]
    pub retry_after_ms: u32,
    /// Now: a client with a wrong clock learns it here.
    #[serde(default)]
    pub server_ms: Wall,
}
