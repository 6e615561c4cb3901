//! The promises, checked while the world runs.

use std::collections::{BTreeMap, BTreeSet};

use proto::envelope::RoomEvent;
use proto::frame::{Ack, Outcome, Place};
use proto::id::{Cid, Gen, ItemId, SlotNo};
use proto::item::Item;
use proto::verdict::{Fate, Verdict};
use sha2::{Digest, Sha256};

use crate::network::ViewerNo;

/// A promise that did not hold.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Broken {
    /// An item was shown to a viewer twice.
    #[error("viewer {0} was shown item {1} twice")]
    Repeat(usize, ItemId),
    /// An item came after one with a later place.
    #[error("viewer {0} was shown {1:?} after {2:?}")]
    Order(usize, Place, Place),
    /// A sealed item never came.
    #[error("viewer {0} was never shown item {1}")]
    Missing(usize, ItemId),
    /// A viewer was told of a gap though nothing was lost for good.
    #[error("viewer {0} was told of a gap from {1:?} to {2:?}")]
    Gap(usize, Place, Place),
    /// An admitted item has no fate, or two.
    #[error("item {0} has {1} fates")]
    Fates(ItemId, usize),
    /// Places did not rise.
    #[error("place {0:?} was given after {1:?}")]
    Places(Place, Place),
    /// A slot was sealed out of turn.
    #[error("slot {0} was sealed after slot {1}")]
    Slots(SlotNo, SlotNo),
    /// A sender got two verdicts for one comment.
    #[error("viewer {0} got two verdicts for comment {1}")]
    Verdicts(usize, Cid),
    /// An item that nobody admitted has a fate.
    #[error("item {0} was never admitted")]
    Stranger(ItemId),
}

#[derive(Default)]
pub(crate) struct Check {
    shown: BTreeMap<ViewerNo, Shown>,
    verdicts: BTreeMap<(ViewerNo, Cid), Verdict>,
    admitted: BTreeSet<ItemId>,
    sealed: BTreeMap<ItemId, usize>,
    shed: BTreeMap<ItemId, usize>,
    last: Option<Place>,
    slot: Option<(Gen, SlotNo)>,
    broken: Vec<Broken>,
    trace: Sha256,
}

#[derive(Default)]
struct Shown {
    ids: BTreeSet<ItemId>,
    last: Option<Place>,
}

impl Check {
    /// The bus took an admitted item.
    pub(crate) fn admitted(&mut self, id: ItemId) {
        self.admitted.insert(id);
    }

    /// An event of the room, in the order it was written; `is_first` unless the bus repeats it.
    pub(crate) fn event(&mut self, event: &RoomEvent) {
        match event {
            RoomEvent::Flush { gen_no, items, .. } => {
                for placed in items {
                    let place = Place { gen_no: *gen_no, seq: placed.seq };
                    self.trace(&[placed.item.id.0, place.seq.0]);
                    match self.last {
                        // The bus delivered the flush a second time.
                        Some(last)
                            if place <= last && self.sealed.contains_key(&placed.item.id) =>
                        {
                            continue;
                        }
                        Some(last) if place <= last => {
                            self.broken.push(Broken::Places(place, last));
                        }
                        Some(_) | None => self.last = Some(place),
                    }
                    *self.sealed.entry(placed.item.id).or_default() += 1;
                }
            }
            RoomEvent::Fates { fates } => {
                for (id, fate) in fates {
                    match fate {
                        Fate::Shed { .. } => *self.shed.entry(*id).or_default() += 1,
                        Fate::Sealed { .. } | Fate::Merged { .. } => {}
                    }
                }
            }
            RoomEvent::Seal { gen_no, slot, .. } => {
                if let Some((last_gen, last)) = self.slot
                    && last_gen == *gen_no
                    && slot.0 != last.0 + 1
                    && *slot != last
                {
                    self.broken.push(Broken::Slots(*slot, last));
                }
                self.slot = Some((*gen_no, *slot));
            }
            RoomEvent::Opened { .. } | RoomEvent::Heat { .. } => {}
        }
    }

    pub(crate) fn shown(&mut self, viewer: ViewerNo, item: &Item, place: Place) {
        self.trace(&[viewer as u64, item.id.0]);
        let shown = self.shown.entry(viewer).or_default();
        if !shown.ids.insert(item.id) {
            self.broken.push(Broken::Repeat(viewer, item.id));
        }
        if let Some(last) = shown.last
            && place <= last
        {
            self.broken.push(Broken::Order(viewer, place, last));
        }
        shown.last = Some(place);
    }

    pub(crate) fn gap(&mut self, viewer: ViewerNo, from: Place, to: Place) {
        self.broken.push(Broken::Gap(viewer, from, to));
    }

    pub(crate) fn acked(&mut self, viewer: ViewerNo, ack: Ack) {
        let Outcome::Verdict(verdict) = ack.outcome else {
            return;
        };
        if self.verdicts.insert((viewer, ack.cid), verdict).is_some_and(|it| it != verdict) {
            self.broken.push(Broken::Verdicts(viewer, ack.cid));
        }
    }

    /// Items sealed so far.
    pub(crate) fn sealed(&self) -> usize {
        self.sealed.len()
    }

    /// Items shed so far.
    pub(crate) fn shed(&self) -> usize {
        self.shed.len()
    }

    /// The end: everything is where it should be. Returns what is not, and the run's hash.
    pub(crate) fn close(mut self, viewers: usize) -> (Vec<Broken>, String) {
        for &id in &self.admitted {
            let shed = self.shed.get(&id).map_or(0, |_| 1);
            let fates = self.sealed.get(&id).copied().unwrap_or(0) + shed;
            if fates != 1 {
                self.broken.push(Broken::Fates(id, fates));
            }
        }
        for &id in self.sealed.keys().chain(self.shed.keys()) {
            if !self.admitted.contains(&id) {
                self.broken.push(Broken::Stranger(id));
            }
        }
        for viewer in 0..viewers {
            let shown = self.shown.remove(&viewer).unwrap_or_default();
            let missing = self.sealed.keys().find(|it| !shown.ids.contains(it));
            if let Some(&id) = missing {
                self.broken.push(Broken::Missing(viewer, id));
            }
        }
        (self.broken, hex::encode(self.trace.finalize()))
    }

    fn trace(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.trace.update(number.to_le_bytes());
        }
    }
}
