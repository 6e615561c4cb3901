//! `control`: facts that everyone must know, the newest per key kept.
//!
//! JSON, not FlatBuffers: a few a second, and people read them with a bus's own tools.

mod catalogue;
mod settings;

use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::attribute::Attribute;
use crate::decode::DecodeError;
use crate::head::Base;
use crate::heat::Heat;
use crate::id::{AppId, DeviceId, Gen, NodeId, RoomId, SessionId, SlotNo, Term, ViewerId};
use crate::item::Role;
use crate::limits::FACT_BYTES_MAX;
use crate::network::Network;
use crate::policy::{PolicyFact, SdkFact};
use crate::time::Wall;

pub use catalogue::{CataloguePart, Gathering, catalogue_path};
pub use settings::{Action, Excess, LaneShares, Review, RoomSettings, Segments, Speakers};

/// How many sessions that move one node takes in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct MoveShare {
    /// Which node.
    pub node: NodeId,
    /// How many, at most.
    pub sessions: u32,
}

/// One fact. [`Fact::key`] names what it is about; a newer fact of the same key replaces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// Public part of a token epoch.
    Epoch(EpochFact),
    /// A room exists with these settings, or is closed.
    Room(RoomFact),
    /// A viewer may not send.
    Mute {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// Who.
        viewer: ViewerId,
        /// Until when; 0 ends the mute.
        until: Wall,
    },
    /// A viewer may not enter.
    Ban {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// Who.
        viewer: ViewerId,
        /// Until when; 0 ends the ban.
        until: Wall,
    },
    /// Sessions of a viewer end; tokens and tickets issued before `not_before` are refused.
    Kick {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// Who.
        viewer: ViewerId,
        /// What was issued earlier does not count.
        not_before: Wall,
    },
    /// One session ends.
    Close {
        /// Where it is.
        node: NodeId,
        /// Which.
        session: SessionId,
        /// Why: [`crate::close::CloseCode::code`].
        code: u16,
    },
    /// Share of a room's comments that links let through.
    Keep {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// Thousandths, 0 to 1000.
        keep_permille: u16,
    },
    /// How a room is delivered, from this slot on.
    Heat {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// The heat.
        heat: Heat,
        /// Gen of the switch.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// First slot on the new path.
        slot: SlotNo,
    },
    /// Where segments are served.
    Bases {
        /// All of them.
        bases: Vec<Base>,
    },
    /// A node's sessions are to move.
    Move {
        /// Which node.
        node: NodeId,
        /// How many of them; all, unless it is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sessions: Option<u32>,
        /// Over how long.
        window_ms: u32,
        /// Where to, with resume tickets; at most [`crate::limits::MOVE_ADDRESSES_MAX`]. Empty:
        /// wherever `enter` sends them.
        #[serde(default)]
        addresses: Vec<Address>,
        /// When it was decided: a fact that is read again moves nobody again.
        #[serde(default)]
        at: Wall,
        /// Because the node drains, in the life that began then: this is the answer that it waits
        /// for, and moves nobody while it does not drain. None: for another reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drain: Option<Wall>,
        /// Who takes them in: what the next plan must leave to them, whoever makes it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shares: Vec<MoveShare>,
    },
    /// A claim on a partition.
    Lease(LeaseFact),
    /// Token epochs that are void.
    Revoked {
        /// Master key.
        kid: u8,
        /// First void epoch.
        from_epoch: u32,
        /// Last void epoch.
        to_epoch: u32,
    },
    /// What an app or a room asks of those who enter.
    Policy(PolicyFact),
    /// Which SDK versions are served.
    Sdk(SdkFact),
    /// An app's list of words, or a room's, was replaced; it lies in the room store.
    Words {
        /// Whose.
        app: AppId,
        /// Where; none: in all rooms of the app.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        room: Option<RoomId>,
        /// Rises by one with each change.
        version: u64,
    },
    /// Sessions of a device, or from a range of addresses, may not be in a room.
    Exclude {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// Which.
        what: Excluded,
        /// Until when; 0 ends it.
        until: Wall,
    },
    /// What a viewer is in a room, whatever the viewer's ticket says.
    Person {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// Who.
        viewer: ViewerId,
        /// What; nothing in particular ends it.
        standing: Standing,
    },
    /// The notice, an attribute or a counter of a room changed.
    Attribute {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// What stands there now.
        attribute: Attribute,
    },
    /// A part of an app's gift catalogue.
    Catalogue(CataloguePart),
    /// The segments of a room are sealed: its viewers get the key of this gen, and the next one's.
    Sealed {
        /// App of the room.
        app: AppId,
        /// Where.
        room: RoomId,
        /// The running gen.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// The gen was the last sealed one: the room is over, or open to all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ended: bool,
        /// Guests may be in the room, and so get its keys. Where it is not said they do not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        guests: bool,
    },
}

/// What may not be in a room.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excluded {
    /// Every session that names this device.
    Device(DeviceId),
    /// Every session from these addresses.
    Range(Network),
}

/// What a viewer is in a room by the room's own word.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Standing {
    /// The role; absent: the one that the viewer's ticket says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// On the allow-list: may speak where only those may, is kept when a share of comments is, and
    /// is not kicked or banned.
    pub listed: bool,
    /// Follows the room: may speak where only followers may.
    pub follows: bool,
}

impl Standing {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Public part of a token epoch.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct EpochFact {
    /// `floor(unix_s / interval_s)`.
    pub epoch: u32,
    /// Length of an epoch.
    pub interval_s: u32,
    /// Which token algorithm it selects: 1 HMAC-SHA-256, 2 HMAC-SM3, 3 HMAC-SHA-512/256.
    pub alg: u8,
    /// R_e: 32 random bytes, in hex.
    pub random: String,
    /// Master keys in use, newest first.
    pub kids: Vec<u8>,
}

/// A room and its settings.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RoomFact {
    /// Whose.
    pub app: AppId,
    /// Which.
    pub room: RoomId,
    /// Rises with every change.
    pub version: u64,
    /// Whether it takes and shows items.
    pub open: bool,
    /// What it allows.
    pub settings: RoomSettings,
}

/// A claim on a partition of a topic that is read by a group.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct LeaseFact {
    /// Topic.
    pub topic: String,
    /// Its partition.
    pub partition: u32,
    /// Who claims it.
    pub node: NodeId,
    /// Highest wins; within it the lowest offset on `control`.
    pub term: Term,
    /// The claim holds until then.
    pub expires: Wall,
}

impl Fact {
    /// What the fact is about; the compaction key on the bus.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Epoch(it) => format!("epoch:{}", it.epoch),
            Self::Room(it) => format!("room:{}:{}", it.app, it.room),
            Self::Mute { app, room, viewer, .. } => format!("mute:{app}:{room}:{viewer}"),
            Self::Ban { app, room, viewer, .. } => format!("ban:{app}:{room}:{viewer}"),
            Self::Kick { app, room, viewer, .. } => format!("kick:{app}:{room}:{viewer}"),
            Self::Close { node, session, .. } => format!("close:{node}:{session}"),
            Self::Keep { app, room, .. } => format!("keep:{app}:{room}"),
            Self::Heat { app, room, .. } => format!("heat:{app}:{room}"),
            Self::Bases { .. } => "bases".to_owned(),
            Self::Move { node, .. } => format!("move:{node}"),
            Self::Lease(it) => format!("lease:{}:{}:{}", it.topic, it.partition, it.node),
            Self::Revoked { kid, from_epoch, .. } => format!("revoked:{kid}:{from_epoch}"),
            Self::Policy(PolicyFact { app, room: None, .. }) => format!("policy:{app}"),
            Self::Policy(PolicyFact { app, room: Some(room), .. }) => {
                format!("policy:{app}:{room}")
            }
            Self::Sdk(_) => "sdk".to_owned(),
            Self::Words { app, room: None, .. } => format!("words:{app}"),
            Self::Words { app, room: Some(room), .. } => format!("words:{app}:{room}"),
            Self::Exclude { app, room, what: Excluded::Device(device), .. } => {
                format!("exclude:{app}:{room}:device:{device}")
            }
            Self::Exclude { app, room, what: Excluded::Range(range), .. } => {
                format!("exclude:{app}:{room}:range:{range}")
            }
            Self::Person { app, room, viewer, .. } => format!("person:{app}:{room}:{viewer}"),
            Self::Attribute { app, room, attribute } => {
                format!("attribute:{app}:{room}:{}", attribute.name)
            }
            Self::Catalogue(it) => format!("catalogue:{}:{}", it.app, it.part),
            Self::Sealed { app, room, .. } => format!("sealed:{app}:{room}"),
        }
    }

    /// The fact as a record's value.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a fact has string keys only and no failing serializer")
    }

    /// Reads a record's value.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > FACT_BYTES_MAX {
            return Err(DecodeError::TooLarge { bytes: bytes.len(), max: FACT_BYTES_MAX });
        }
        serde_json::from_slice(bytes).map_err(|_| DecodeError::Malformed)
    }
}
