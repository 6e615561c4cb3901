//! What a room is told and what it says.

use proto::head::GenInfo;
use proto::heat::Heat;
use proto::id::{Gen, ItemId, Seq, SlotNo};
use proto::item::{Item, Lane, Repeat};
use proto::segment::Segment;
use proto::time::Wall;
use proto::verdict::Fate;

use crate::settings::Settings;
use crate::timeline::Flush;

/// What a room is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// An admitted item.
    Item(Item),
    /// It is open, with these settings.
    Open(Box<Settings>),
    /// It closes: no new comments, what is waiting in protected lanes is still shown.
    Close,
    /// A gen was created for it.
    Gen(GenInfo),
    /// Goes on where another left off.
    Resume(Box<Resume>),
    /// Items that were here before, from older segments.
    Known(Vec<Told>),
    /// What the newest segment of an earlier gen shows and repeats, of protected lanes.
    Carry(Vec<Repeat>),
    /// Links counted.
    Gauge {
        /// People in the room.
        people: u32,
        /// Sessions in the room.
        sessions: u32,
    },
}

/// What must happen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// Create the first free gen after `after` and say so.
    WantGen {
        /// The newest gen the machine knows; 0: none.
        after: Gen,
        /// Start of its slot 0.
        epoch_ms: Wall,
        /// Length of its slots.
        interval_ms: u32,
        /// Layout of its segments.
        layout: u32,
    },
    /// A gen begins.
    Opened(GenInfo),
    /// Items were given their places.
    Flush(Flush),
    /// What became of items that are in no flush, or came again.
    Fates(Vec<Told>),
    /// The item's protected lane is full. It has no fate, and its journal sends it again.
    Deferred(ItemId, Lane),
    /// An item is to be in no file any more.
    Erase {
        /// Which.
        of: ItemId,
        /// Where it stands, if it was shown lately.
        place: Option<(Gen, SlotNo)>,
    },
    /// A slot is complete.
    Seal(Box<Sealed>),
    /// The room's heat changes.
    Heat {
        /// The new heat.
        heat: Heat,
        /// Gen of the switch.
        gen_no: Gen,
        /// First slot on the new path.
        slot: SlotNo,
        /// People in the room.
        online: u32,
    },
    /// The room is closed, and everything was shown.
    Ended,
}

/// An item and what became of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Told {
    /// Which.
    pub id: ItemId,
    /// Its lane.
    pub lane: Lane,
    /// What.
    pub fate: Fate,
}

/// A complete slot.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sealed {
    /// Everything.
    pub full: Segment,
    /// A subset.
    pub lite: Segment,
    /// [`crc`](crate::pack::crc) of the full segment's items.
    pub crc: u32,
    /// Whether the room writes files for this slot.
    pub is_written: bool,
    /// Whether the room is recorded.
    pub is_archived: bool,
    /// Layout of its gen.
    pub layout: u32,
    /// Ids recalled lately.
    pub recalled: Vec<ItemId>,
}

/// What another broadcaster left.
#[derive(Clone, Debug)]
pub struct Resume {
    /// The gen.
    pub info: GenInfo,
    /// First slot that is not sealed.
    pub slot: SlotNo,
    /// The next free seq.
    pub next_seq: Seq,
    /// Flushes of slots that are not sealed.
    pub flushes: Vec<Flush>,
    /// Flushes of the last minutes, sealed or not: what must be repeated is among them.
    pub shown: Vec<Flush>,
    /// What became of items that were not shown.
    pub told: Vec<Told>,
}
