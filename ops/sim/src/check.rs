//! The promises, checked while the world runs.

use std::collections::{BTreeMap, BTreeSet};

use proto::envelope::RoomEvent;
use proto::frame::{Ack, Outcome, Place};
use proto::head::Tier;
use proto::id::{Cid, Gen, ItemId, SlotNo};
use proto::item::Item;
use proto::verdict::{Fate, Verdict};
use sha2::{Digest, Sha256};

use crate::network::ViewerNo;
use crate::store::Store;

/// A promise that did not hold.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Broken {
    /// An item was shown to a viewer twice.
    #[error("viewer {0} was shown item {1} twice")]
    Repeat(usize, ItemId),
    /// An unprotected item came after one with a later place.
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
    /// An acknowledged gift was not sealed.
    #[error("gift {0} was acknowledged and not sealed")]
    Gift(ItemId),
    /// Places did not rise.
    #[error("place {0:?} was given after {1:?}")]
    Places(Place, Place),
    /// A slot was sealed out of turn.
    #[error("slot {0} was sealed after slot {1}")]
    Slots(SlotNo, SlotNo),
    /// A slot holds more than its budget.
    #[error("slot {0} has {1} items")]
    Budget(SlotNo, usize),
    /// What is stored of a slot is not what was flushed into it.
    #[error("the segment of gen {0} slot {1} is not what was flushed")]
    Segment(Gen, SlotNo),
    /// A sender got two verdicts for one comment, or none though the connection held.
    #[error("viewer {0} got {2} verdicts for comment {1}")]
    Verdicts(usize, Cid, usize),
    /// An item that nobody admitted has a fate.
    #[error("item {0} was never admitted")]
    Stranger(ItemId),
    /// In the end something still waits.
    #[error("{0} is not idle in the end")]
    Unfinished(&'static str),
}

#[derive(Default)]
pub(crate) struct Check {
    items_max: usize,
    shown: BTreeMap<ViewerNo, Shown>,
    /// Comments without a verdict, on connections that hold.
    asked: BTreeSet<(ViewerNo, Cid)>,
    verdicts: BTreeMap<(ViewerNo, Cid), Verdict>,
    admitted: BTreeSet<ItemId>,
    gifts: BTreeSet<ItemId>,
    /// Everything that was flushed, and whether it is protected.
    flushed: BTreeMap<ItemId, bool>,
    /// Items that have their fate.
    sealed: BTreeSet<ItemId>,
    shed: BTreeSet<ItemId>,
    /// Items whose fate was lost with `sealed`: they may get another one.
    undecided: BTreeSet<ItemId>,
    slots: BTreeMap<(Gen, SlotNo), Vec<ItemId>>,
    /// Slots that had two owners, each with a second's budget.
    shared: BTreeSet<SlotNo>,
    switches: usize,
    /// Gens that ended because `sealed` was lost.
    cut_gens: BTreeSet<Gen>,
    last: Option<Place>,
    last_seal: Option<(Gen, SlotNo)>,
    broken: Vec<Broken>,
    trace: Sha256,
}

#[derive(Default)]
struct Shown {
    ids: BTreeSet<ItemId>,
    last: Option<Place>,
}

impl Check {
    /// A slot may hold `items_max` items.
    pub(crate) fn new(items_max: u32) -> Self {
        Self { items_max: items_max as usize, ..Self::default() }
    }

    /// The bus took an admitted item.
    pub(crate) fn admitted(&mut self, id: ItemId) {
        self.admitted.insert(id);
    }

    /// The business server was told that its gift will be shown.
    pub(crate) fn acknowledged(&mut self, id: ItemId) {
        self.gifts.insert(id);
    }

    /// An event of the room, in the order in which they are on `sealed`.
    pub(crate) fn published(&mut self, event: &RoomEvent) {
        match event {
            RoomEvent::Flush { gen_no, slot, items, .. } => {
                let ids = items.iter().map(|it| it.item.id);
                self.slots.entry((*gen_no, *slot)).or_default().extend(ids);
                for placed in items {
                    let place = Place { gen_no: *gen_no, seq: placed.seq };
                    self.flush(&placed.item, place);
                }
            }
            RoomEvent::Fates { fates } => {
                for (id, fate) in fates {
                    if let Fate::Shed { .. } = fate {
                        self.shed.insert(*id);
                    }
                }
            }
            RoomEvent::Seal { gen_no, slot, .. } => match self.last_seal {
                Some((last_gen, last)) if last_gen == *gen_no && slot.0 != last.0 + 1 => {
                    self.broken.push(Broken::Slots(*slot, last));
                }
                Some(_) | None => self.last_seal = Some((*gen_no, *slot)),
            },
            RoomEvent::Heat { .. } => self.switches += 1,
            RoomEvent::Opened { .. } => {}
        }
    }

    fn flush(&mut self, item: &Item, place: Place) {
        self.trace(&[item.id.0, u64::from(place.gen_no.0), place.seq.0]);
        if let Some(last) = self.last.replace(place)
            && place <= last
        {
            self.broken.push(Broken::Places(place, last));
        }
        if !self.sealed.insert(item.id) && !self.undecided.contains(&item.id) {
            self.broken.push(Broken::Fates(item.id, 2));
        }
        self.flushed.insert(item.id, item.lane.is_protected());
    }

    /// A second broadcaster goes on in this slot, and in those after it until now.
    pub(crate) fn taken_over(&mut self, slot: SlotNo) {
        self.shared.extend((slot.0..slot.0 + 8).map(SlotNo));
    }

    /// `sealed` is lost: items that come again may be decided anew, and slots that no seal
    /// confirms may never be written.
    pub(crate) fn ledger_lost(&mut self, again: impl Iterator<Item = ItemId>) {
        for id in again {
            self.undecided.insert(id);
            self.flushed.remove(&id);
        }
        self.cut_gens.extend(self.last.map(|it| it.gen_no));
        let confirmed = self.last_seal;
        self.slots.retain(|&place, _| Some(place) <= confirmed);
    }

    pub(crate) fn shown(&mut self, viewer: ViewerNo, item: &Item, place: Place) {
        self.trace(&[viewer as u64, item.id.0]);
        let shown = self.shown.entry(viewer).or_default();
        if !shown.ids.insert(item.id) {
            self.broken.push(Broken::Repeat(viewer, item.id));
        }
        if let Some(last) = shown.last
            && place <= last
            && !item.lane.is_protected()
        {
            self.broken.push(Broken::Order(viewer, place, last));
        }
        shown.last = shown.last.max(Some(place));
    }

    /// A viewer is told of a gap. The end of a gen whose `sealed` was lost may be one: nobody knows
    /// what it was.
    pub(crate) fn gap(&mut self, viewer: ViewerNo, from: Place, to: Place) {
        if self.cut_gens.contains(&from.gen_no) && to.gen_no > from.gen_no {
            return;
        }
        self.broken.push(Broken::Gap(viewer, from, to));
    }

    /// A viewer sent a comment.
    pub(crate) fn said(&mut self, viewer: ViewerNo, cid: Cid) {
        self.asked.insert((viewer, cid));
    }

    /// A viewer's connection broke: verdicts may be lost with it.
    pub(crate) fn left(&mut self, viewer: ViewerNo) {
        self.asked.retain(|it| it.0 != viewer);
    }

    pub(crate) fn acked(&mut self, viewer: ViewerNo, ack: Ack) {
        let Outcome::Verdict(verdict) = ack.outcome else {
            return;
        };
        self.asked.remove(&(viewer, ack.cid));
        if self.verdicts.insert((viewer, ack.cid), verdict).is_some_and(|it| it != verdict) {
            self.broken.push(Broken::Verdicts(viewer, ack.cid, 2));
        }
    }

    /// Something still waits in the end.
    pub(crate) fn unfinished(&mut self, what: &'static str) {
        self.broken.push(Broken::Unfinished(what));
    }

    /// Items sealed so far.
    pub(crate) fn sealed(&self) -> usize {
        self.sealed.len()
    }

    /// Items shed so far.
    pub(crate) fn shed(&self) -> usize {
        self.shed.len()
    }

    /// Gifts acknowledged so far.
    pub(crate) fn gifts(&self) -> usize {
        self.gifts.len()
    }

    /// Switches of the heat so far.
    pub(crate) const fn switches(&self) -> usize {
        self.switches
    }

    /// The end: everything is where it should be. Returns what is not, and the run's hash.
    pub(crate) fn close(mut self, tiers: &[Tier], store: &Store) -> (Vec<Broken>, String) {
        self.close_items();
        self.close_slots(store);
        for (viewer, tier) in tiers.iter().enumerate() {
            let shown = self.shown.remove(&viewer).unwrap_or_default();
            let expected = self.flushed.iter().filter(|(_, is_protected)| match tier {
                Tier::Full => true,
                Tier::Lite => **is_protected,
            });
            let mut missing = expected.filter(|(id, _)| !shown.ids.contains(id));
            if let Some((&id, _)) = missing.next() {
                self.broken.push(Broken::Missing(viewer, id));
            }
        }
        (self.broken, hex::encode(self.trace.finalize()))
    }

    fn close_items(&mut self) {
        for &(viewer, cid) in &self.asked {
            self.broken.push(Broken::Verdicts(viewer, cid, 0));
        }
        for &id in &self.gifts {
            if !self.sealed.contains(&id) {
                self.broken.push(Broken::Gift(id));
            }
        }
        for &id in &self.admitted {
            let fates = [&self.sealed, &self.shed].iter().filter(|it| it.contains(&id)).count();
            if fates == 0 || (fates > 1 && !self.undecided.contains(&id)) {
                self.broken.push(Broken::Fates(id, fates));
            }
        }
        for &id in self.sealed.iter().chain(&self.shed) {
            if !self.admitted.contains(&id) {
                self.broken.push(Broken::Stranger(id));
            }
        }
    }

    fn close_slots(&mut self, store: &Store) {
        for (&(gen_no, slot), ids) in &self.slots {
            if ids.len() > self.items_max && !self.shared.contains(&slot) {
                self.broken.push(Broken::Budget(slot, ids.len()));
            }
            let stored = store.segments.get(&(gen_no, slot, Tier::Full));
            if !stored
                .is_some_and(|it| it.items.iter().map(|it| it.item.id).eq(ids.iter().copied()))
            {
                self.broken.push(Broken::Segment(gen_no, slot));
            }
        }
    }

    fn trace(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.trace.update(number.to_le_bytes());
        }
    }
}
