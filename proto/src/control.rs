//! `control`: facts that everyone must know, the newest per key kept.
//!
//! JSON, not FlatBuffers: a few a second, and people read them with a bus's own tools.

use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::decode::DecodeError;
use crate::head::Base;
use crate::heat::Heat;
use crate::id::{AppId, Gen, NodeId, RoomId, SessionId, SlotNo, Term, ViewerId};
use crate::limits::FACT_BYTES_MAX;
use crate::policy::{PolicyFact, SdkFact};
use crate::time::Wall;

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

/// What a room allows.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoomSettings {
    /// Longest comment, in graphemes.
    pub graphemes_max: u32,
    /// One comment per sender in this time; 0: off.
    pub slow_mode_ms: u32,
    /// Comments one viewer may send in a burst.
    pub viewer_burst: u32,
    /// Time after which one more comment of a viewer is allowed.
    pub viewer_refill_ms: u32,
    /// A sender says the same, or nearly the same, once in this time; 0: off.
    pub repeat_ms: u32,
    /// How often the room takes one text in ten seconds, from all senders together; 0: off.
    pub echo_max: u32,
    /// What is done about links.
    pub links: Action,
    /// Hosts that may be linked to, with those below them, in lower case.
    pub link_hosts: Vec<String>,
    /// What is done about e-mail addresses, telephone numbers and accounts of messengers.
    pub contacts: Action,
    /// Nobody but moderators and the host may send.
    pub mute_all: bool,
    /// Guests may be in the room.
    pub guests: bool,
    /// When segments are written.
    pub segments: Segments,
    /// Sessions from which the room is hot.
    pub hot_sessions: u32,
    /// Sessions below which a hot room turns cold again.
    pub cold_sessions: u32,
    /// Items the room shows a second.
    pub items_per_s: u32,
    /// Bytes of text the room shows a second.
    pub bytes_per_s: u32,
    /// Length of a slot.
    pub interval_ms: u32,
}

impl Default for RoomSettings {
    fn default() -> Self {
        Self {
            graphemes_max: 100,
            slow_mode_ms: 0,
            viewer_burst: 5,
            viewer_refill_ms: 1000,
            repeat_ms: 0,
            echo_max: 0,
            links: Action::Allow,
            link_hosts: Vec::new(),
            contacts: Action::Allow,
            mute_all: false,
            guests: true,
            segments: Segments::Auto,
            hot_sessions: 10_000,
            cold_sessions: 8_000,
            items_per_s: 50,
            bytes_per_s: 16 * 1024,
            interval_ms: 1000,
        }
    }
}

/// What is done about a text that holds something; of several the latest one counts.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing.
    #[default]
    Allow,
    /// It is shown with stars for what was found.
    Mask,
    /// Only the sender sees it.
    Shadow,
    /// It is shown if the review hook says so; without a hook it is refused.
    Review,
    /// It is refused.
    Refuse,
}

/// When a room writes segments.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segments {
    /// From warming until 60 s after cooling.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
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
