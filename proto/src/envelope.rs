//! What services say to each other on the bus. A record is one batch for one partition.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::close::CloseCode;
use crate::frame::Outcome;
use crate::head::PLAIN;
use crate::heat::Heat;
use crate::id::{
    AppId, Cid, DeviceId, Gen, ItemId, NodeId, RoomId, SessionId, SlotNo, UnitId, ViewerId,
};
use crate::item::{Item, Placed, Role, Style};
use crate::time::Wall;
use crate::verdict::Fate;

/// `uplink.{unit}`: link to chatserver, partition by hash of (room, account).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UplinkBatch {
    /// Answers go there.
    pub node: NodeId,
    /// What happened, in the order it happened per session.
    pub entries: Vec<UplinkEntry>,
}

/// One act of a viewer in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UplinkEntry {
    /// Whose session.
    pub session: SessionId,
    /// App of the room.
    pub app: AppId,
    /// Where.
    pub room: RoomId,
    /// Who.
    pub viewer: ViewerId,
    /// What the viewer is by token.
    pub role: Role,
    /// Whether the token allows sending.
    pub may_send: bool,
    /// When the link took it.
    pub at: Wall,
    /// Where the session comes from, if the link says so; apart, since it is as large as the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
    /// What.
    pub act: Act,
}

/// Where a session comes from.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Its client's address, as the link or a trusted proxy saw it; port 0: not known.
    pub address: SocketAddr,
    /// The device that the client named at its login.
    pub device: Option<DeviceId>,
}

/// What a viewer did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Came in, or says again that it is there.
    Join {
        /// How long ago it came in, by the link's monotonic clock; 0 when it comes in.
        age_ms: u32,
    },
    /// Went out.
    Leave,
    /// Sent a comment.
    Comment {
        /// The sender's number for it.
        cid: Cid,
        /// The text.
        text: String,
        /// How it should look.
        style: Style,
        /// Position in the picture.
        media_ms: Option<u64>,
    },
    /// Applauded.
    Like {
        /// How many.
        count: u32,
    },
}

/// `reply.{unit}`: chatserver to one link, partition by node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyBatch {
    /// For which link.
    pub node: NodeId,
    /// Answers.
    pub entries: Vec<Reply>,
}

/// An answer to one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// What became of a comment.
    Ack {
        /// Whose.
        session: SessionId,
        /// Which.
        cid: Cid,
        /// What.
        outcome: Outcome,
    },
    /// End the session.
    Close {
        /// Whose.
        session: SessionId,
        /// Why.
        code: CloseCode,
    },
}

/// `accepted`: chatserver to broadcaster, partition by room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptedBatch {
    /// Admitted items.
    pub entries: Vec<Accepted>,
}

/// One admitted item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// App of the room.
    pub app: AppId,
    /// Where.
    pub room: RoomId,
    /// What.
    pub item: Item,
}

/// `sealed` (all events) and `downlink.{unit}` (flushes, seals, heat), partition by room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomBatch {
    /// What happened, in order per room.
    pub entries: Vec<RoomEntry>,
}

/// One event of a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoomEntry {
    /// App of the room.
    pub app: AppId,
    /// Where.
    pub room: RoomId,
    /// What.
    pub event: RoomEvent,
}

/// What happened to a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomEvent {
    /// A gen was opened.
    Opened {
        /// Which.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// Start of slot 0.
        epoch_ms: Wall,
        /// Length of a slot.
        interval_ms: u32,
        /// Layout of its segments: [`crate::head::PLAIN`] or [`crate::head::SEALED`].
        #[serde(default = "plain", skip_serializing_if = "is_plain")]
        layout: u32,
    },
    /// Items were given their places.
    Flush {
        /// Gen of the places.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// Slot the flush belongs to.
        slot: SlotNo,
        /// Number of the flush within the slot, from 0.
        part: u32,
        /// When.
        at: Wall,
        /// The items, seq rising; may be empty.
        items: Vec<Placed>,
    },
    /// A slot is complete and stored.
    Seal {
        /// Gen.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// Which slot.
        slot: SlotNo,
        /// Items in it, repeats not counted.
        items: u32,
        /// As in [`crate::frame::Seal`].
        crc: u32,
    },
    /// What became of admitted items; on `sealed` only. `Sealed` stands here only for ids that
    /// came a second time: a first showing is told by its flush.
    Fates {
        /// Which and what.
        fates: Vec<(ItemId, Fate)>,
    },
    /// Push or segments.
    Heat {
        /// The new heat.
        heat: Heat,
        /// Gen of the switch.
        #[serde(rename = "gen")]
        gen_no: Gen,
        /// First slot on the new path.
        slot: SlotNo,
        /// People in the room.
        online: u32,
    },
}

/// `gauges`: once a second from each link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkGauges {
    /// From.
    pub node: NodeId,
    /// Of.
    pub unit: UnitId,
    /// When.
    pub at: Wall,
    /// Every room with a session here.
    pub rooms: Vec<RoomGauge>,
}

/// One room on one link.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RoomGauge {
    /// App of the room.
    pub app: AppId,
    /// Which.
    pub room: RoomId,
    /// Distinct viewers.
    pub people: u32,
    /// Sessions.
    pub sessions: u32,
    /// Comments offered in the last second, sampled ones included.
    pub offered: u32,
}

const fn plain() -> u32 {
    PLAIN
}

const fn is_plain(layout: &u32) -> bool {
    *layout == PLAIN
}
