//! What the driver wants done, and what the press needs for it.

use std::sync::Arc;

use broadcaster_core::room::Sealed;
use kit::clock::Clock;
use kit::health::Part;
use proto::control::CataloguePart;
use proto::head::{Base, GenInfo, Head};
use proto::id::{AppId, Gen, ItemId, RoomId, SlotNo, Term};

use super::Printer;
use crate::archive::Archive;
use crate::bases::Storing;
use crate::counts::Counts;
use crate::display::Display;
use crate::live::Live;
use crate::room_keys::RoomKeys;
use crate::store::SegmentStore;

/// What the driver wants done.
#[derive(Debug)]
pub(crate) enum Job {
    /// The room is this process's from now on; `head` is what was shown last.
    Adopt { room: RoomId, app: AppId, term: Term, head: Option<Box<Head>> },
    /// A gen was opened: the one before it ends.
    Opened { room: RoomId, info: GenInfo },
    /// A slot is to be written.
    Seal { ticket: Ticket, sealed: Box<Sealed> },
    /// An item is to be in no file any more; where it stands, if that is known.
    Erase { room: RoomId, id: ItemId, place: Option<(Gen, SlotNo)> },
    /// The room was closed, and its last slot is sealed.
    Ended { room: RoomId },
    /// The room is another's, or is over.
    Release { room: RoomId },
    /// Segments are served from these bases now.
    Bases(Vec<Base>),
    /// A part of an app's gift catalogue.
    Catalogue(CataloguePart),
}

/// Names a slot that is being written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ticket {
    pub(crate) room: RoomId,
    pub(crate) term: Term,
    pub(crate) gen_no: Gen,
    pub(crate) slot: SlotNo,
}

/// What the press needs.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) health: Part,
    pub(crate) display: Arc<Display>,
    pub(crate) live: Arc<Live>,
    pub(crate) keys: Arc<RoomKeys>,
    pub(crate) printer: Printer,
    pub(crate) stores: Vec<Arc<dyn SegmentStore>>,
    pub(crate) storing: Arc<Storing>,
    /// Where rooms are recorded, if they are.
    pub(crate) archive: Option<Archive>,
    /// The same of single stores, by number, where a base of its own serves one.
    pub(crate) mirrors: Vec<Option<Arc<Storing>>>,
}
