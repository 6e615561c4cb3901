//! `POST /v1/enter`: the ticket goes in, addresses and tokens come out. JSON.
//!
//! `POST /v1/enter:batch` is the same for many viewers of a business server.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::address::{Address, Transport};
use crate::head::Base;
use crate::id::{AppId, RoomId};
use crate::keys::RoomKeys;
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
    /// What kind it is: the order of delivery paths depends on it.
    #[serde(skip_serializing_if = "Class::is_native")]
    pub class: Class,
    /// Transports it can speak, best first; empty: all, the national one only for
    /// [`Class::National`], which has it first in any case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<Transport>,
    /// Its address, when a business server asks on its behalf with an API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpAddr>,
}

/// What kind of client asks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A program of its own.
    #[default]
    Native,
    /// A web page.
    Browser,
    /// A device or a network that cannot take much.
    Weak,
    /// On a network where the national suites are asked for.
    National,
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Native, Self::Browser, Self::Weak, Self::National];

    fn is_native(&self) -> bool {
        *self == Self::Native
    }
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
    /// What opens the segments of the rooms that may be entered and are sealed: the keys of the
    /// running gen and of the next one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<RoomKeys>,
    /// How to try again.
    pub retry: Retry,
    /// Without addresses, when to ask again: later the more viewers there was no place for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_ms: u32,
}

/// The question of a business server, for many viewers.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// One for each viewer.
    pub requests: Vec<EnterRequest>,
}

/// The answer to a [`BatchRequest`]; what is common to many stands once.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BatchResponse {
    /// Now.
    pub server_ms: Wall,
    /// Where segments are served.
    pub segments: Vec<Base>,
    /// How to try again.
    pub retry: Retry,
    /// In the order of the questions.
    pub answers: Vec<BatchAnswer>,
    /// Where to connect: what the answers choose from, by its place here.
    pub addresses: Vec<Address>,
}

impl BatchResponse {
    /// The answer to the question at this place, as the viewer would have had it alone; nothing if
    /// there is none, or if it names an address that is not there.
    #[must_use]
    pub fn answer(&self, question: usize) -> Option<Result<EnterResponse, Problem>> {
        let (offers, delivery, keys, retry_after_ms) = match self.answers.get(question)? {
            BatchAnswer::Offers { offers, delivery, keys, retry_after_ms } => {
                (offers, delivery, keys, *retry_after_ms)
            }
            BatchAnswer::Problem(problem) => return Some(Err(problem.clone())),
        };
        let offer = |it: &BatchOffer| {
            let address = self.addresses.get(it.address as usize)?.clone();
            Some(Offer { address, token: it.token.clone() })
        };
        Some(Ok(EnterResponse {
            server_ms: self.server_ms,
            addresses: offers.iter().map(offer).collect::<Option<_>>()?,
            delivery: delivery.clone(),
            segments: self.segments.clone(),
            keys: keys.clone(),
            retry: self.retry,
            retry_after_ms,
        }))
    }
}

/// The answer for one viewer of many.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum BatchAnswer {
    /// As in [`EnterResponse`].
    Offers {
        /// Where to connect, in this order.
        offers: Vec<BatchOffer>,
        /// Delivery paths in order of preference for this class of client.
        delivery: Vec<Delivery>,
        /// What opens the segments of sealed rooms.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keys: Vec<RoomKeys>,
        /// Without addresses, when to ask again.
        #[serde(default, skip_serializing_if = "is_zero")]
        retry_after_ms: u32,
    },
    /// No, and why.
    Problem(Problem),
}

/// One address of a batch with a token for it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BatchOffer {
    /// Its place in [`BatchResponse::addresses`].
    pub address: u32,
    /// Permission to connect there.
    pub token: String,
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
    /// Segments from the CDN with a part of what there is.
    LiteSegments,
}

impl Delivery {
    /// The word in JSON and text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Segments => "segments",
            Self::LiteSegments => "lite_segments",
        }
    }
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

const fn is_zero(ms: &u32) -> bool {
    *ms == 0
}
