//! What the auth service hands to nodes over authenticated HTTPS. JSON, keys in hex.

use serde::{Deserialize, Serialize};

use crate::id::{AppId, Gen, NodeId, RoomId, UnitId};

/// `POST /v1/keys/link`: a link asks for its own keys.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LinkKeysRequest {
    /// Who asks; the bearer secret must be this node's.
    pub node: NodeId,
    /// Its slice.
    pub unit: UnitId,
    /// Its own `host:port`s, each of which gets keys.
    pub addresses: Vec<String>,
}

/// The keys of one link, for the running epoch, the one before, and six ahead.
#[derive(Clone, Deserialize, Serialize)]
pub struct LinkKeys {
    /// Length of an epoch.
    pub interval_s: u32,
    /// Token keys.
    pub tokens: Vec<TokenKey>,
    /// Resume keys of the unit.
    pub resumes: Vec<ResumeKey>,
}

/// `K_(e,link)` for one app, epoch, master and address.
#[derive(Clone, Deserialize, Serialize)]
pub struct TokenKey {
    /// App.
    pub app: AppId,
    /// Epoch.
    pub epoch: u32,
    /// Master.
    pub kid: u8,
    /// Algorithm of the epoch.
    pub alg: u8,
    /// `host:port`.
    pub address: String,
    /// 32 bytes in hex.
    pub key: String,
}

/// `HKDF-Expand(K_e, "dm-resume/v1" || unit)`.
#[derive(Clone, Deserialize, Serialize)]
pub struct ResumeKey {
    /// Epoch.
    pub epoch: u32,
    /// Master.
    pub kid: u8,
    /// 32 bytes in hex.
    pub key: String,
}

/// `POST /v1/keys/masters`: gslb's answer.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct Masters {
    /// Length of an epoch.
    pub interval_s: u32,
    /// Newest first; the first one mints.
    pub masters: Vec<Master>,
}

/// One master key.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct Master {
    /// Its number.
    pub kid: u8,
    /// 32 bytes in hex.
    pub key: String,
}

/// Gens of one room in one question: the running one, the one that follows, and older ones whose
/// segments are read again.
pub const ROOM_GENS_MAX: usize = 64;
/// Rooms in one question.
pub const ROOMS_MAX: usize = 256;
/// Keys that one room's viewers are told at a time: two gens, with each of up to eight masters.
pub const ROOM_KEYS_MAX: usize = 16;
/// Hexadecimal digits of a room's key: 16 bytes, for AES-128.
pub const ROOM_KEY_DIGITS: usize = 32;

/// `POST /v1/keys/rooms`: a broadcaster or a link asks for what seals rooms' segments.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RoomKeysRequest {
    /// At most [`ROOMS_MAX`].
    pub rooms: Vec<RoomGens>,
}

/// A room and some of its gens.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RoomGens {
    /// App of the room.
    pub app: AppId,
    /// Which room.
    pub room: RoomId,
    /// Which gens; at most [`ROOM_GENS_MAX`].
    pub gens: Vec<Gen>,
}

/// The answer: as the rooms were asked for, in order.
#[derive(Clone, Deserialize, Serialize)]
pub struct RoomKeysAnswer {
    /// One for each room.
    pub rooms: Vec<RoomKeys>,
}

/// What opens the segments of a sealed room.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct RoomKeys {
    /// Which room.
    pub room: RoomId,
    /// Of each gen the key that seals comes first, and behind it those under other masters, which
    /// sealed before.
    pub keys: Vec<RoomKey>,
}

/// `HKDF(master, "dm-room/v1" || app || room || gen)`.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct RoomKey {
    /// Gen.
    #[serde(rename = "gen")]
    pub gen_no: Gen,
    /// Master.
    pub kid: u8,
    /// 16 bytes in hex.
    pub key: String,
}

macro_rules! silent_debug {
    ($($name:ident)+) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        })+
    };
}

silent_debug!(LinkKeys TokenKey ResumeKey Masters Master RoomKeysAnswer RoomKeys RoomKey);
