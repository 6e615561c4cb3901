//! What is known of one slot that is not finished.

use std::collections::BTreeMap;

use proto::frame::Place;
use proto::id::{Gen, ItemId, Seq, SlotNo};
use proto::item::Item;
use proto::time::Mono;

use super::Via;

/// A slot's place in a room's time.
pub(super) type Key = (Gen, SlotNo);

/// One slot that is not finished.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// Ids of all that arrived for it, in order.
    pub(super) ids: BTreeMap<Seq, ItemId>,
    /// What arrived and was not shown.
    pub(super) held: BTreeMap<Seq, Held>,
    /// Items of earlier slots that its segment repeats, not shown yet.
    pub(super) repeats: BTreeMap<Place, Held>,
    /// How far it is.
    pub(super) stage: Stage,
    /// Slots before it are missing, it is not known which.
    pub(super) gap_before: bool,
    /// It was entered in its middle, so its seal proves nothing.
    pub(super) partial: bool,
    /// Until when a jump in seq is waited out.
    pub(super) hole: Option<Mono>,
}

/// How far a slot is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Stage {
    /// Flushes arrive, or may.
    #[default]
    Filling,
    /// Its segment is wanted; nothing behind it is shown before, until this deadline.
    Wanted {
        /// Give up then.
        deadline: Mono,
        /// How many items are known to be missing.
        missing: Option<u32>,
    },
    /// All of it has arrived.
    Complete,
    /// What has not arrived will not.
    Lost {
        /// How many items are known to be missing.
        missing: Option<u32>,
    },
}

/// An item that waits for its turn.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) item: Item,
    pub(super) via: Via,
    pub(super) received: Mono,
}

impl Slot {
    /// Whether nothing more is expected for it.
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Complete | Stage::Lost { .. })
    }

    /// Until when it keeps later slots from being shown.
    pub(super) fn deadline(&self) -> Option<Mono> {
        match self.stage {
            Stage::Wanted { deadline, .. } => Some(deadline),
            Stage::Filling => self.hole.filter(|_| !self.held.is_empty()),
            Stage::Complete | Stage::Lost { .. } => None,
        }
    }

    /// Whether its seal agrees with what arrived: `Err` holds how many items are missing.
    pub(super) fn verify(&self, items: u32, crc: u32) -> Result<(), u32> {
        let arrived = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        if self.partial || arrived > items {
            return Ok(());
        }
        let mut hasher = crc32fast::Hasher::new();
        for id in self.ids.values() {
            hasher.update(&id.0.to_le_bytes());
        }
        match items - arrived {
            0 if hasher.finalize() == crc => Ok(()),
            missing => Err(missing.max(1)),
        }
    }
}
