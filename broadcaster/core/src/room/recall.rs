//! What is taken back: recalled from screens, or erased from files too.

use proto::id::{Gen, ItemId, SlotNo};
use proto::item::{Body, Item, Lane};
use proto::verdict::{Fate, Reason};

use super::{Output, Room};
use crate::Now;
use crate::recent::Known;

impl Room {
    /// Has what an erasure names taken out of files; viewers see a tombstone. Also when it comes
    /// again: whoever had it before may have died over it.
    pub(super) fn erase(&mut self, item: &mut Item) {
        if let Body::Erasure { of } = item.body {
            self.outputs.push_back(Output::Erase { of, place: self.place_of(of) });
            item.body = Body::Tombstone { of };
        }
    }

    /// What waits is not shown, what is still to come neither; what was shown is not repeated.
    pub(super) fn recall(&mut self, of: ItemId, now: Now) {
        if !self.scheduler.recall(of) {
            let fate = Fate::Shed { reason: Reason::Recalled };
            // Of which lane it will be is not known: it is remembered as long as the longest.
            self.recent.insert(of, Lane::Notice, Known::Fated(fate), now.mono);
        }
        self.repeats.recall(of);
    }

    /// Where an item stands, if it was shown lately.
    fn place_of(&self, id: ItemId) -> Option<(Gen, SlotNo)> {
        match self.recent.find(id)? {
            Known::Fated(Fate::Sealed { gen_no, slot, .. }) => Some((gen_no, slot)),
            Known::Waiting | Known::Fated(Fate::Merged { .. } | Fate::Shed { .. }) => None,
        }
    }
}
