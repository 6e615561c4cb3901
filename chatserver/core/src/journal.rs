//! Which gifts and notices are published again, and which are done.
//!
//! An entry is written before its request is acknowledged, and stays open until its item was
//! flushed and the slot of that flush is sealed: from then on a store keeps it. Entries that are
//! open for too long go to the broadcaster once more, which drops ids it knows and says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proto::envelope::{Accepted, RoomEvent};
use proto::id::{Gen, ItemId, RoomId, SlotNo};
use proto::time::{Mono, Wall};
use proto::verdict::{Fate, Reason};

use crate::gift;
use crate::judge::Now;

/// How long an item may take from the bus to a flush before it is published again, and again.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// How long after its flush an item counts as kept although no seal was seen: three of the longest
/// slots. A room that writes no segments has no seals.
pub const KEPT_AFTER: Duration = Duration::from_secs(30);
/// Items published again in one turn: 4 KiB each at most, below one record's bytes.
pub const REPUBLISH_MAX: usize = 200;
/// Flushed items that wait for their seal, about 150 bytes each; the oldest count as kept.
pub const SHOWN_MAX: usize = 100_000;

/// An entry that is open in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The item and its room.
    pub accepted: Accepted,
    /// When it was written.
    pub written_at: Wall,
}

/// What the journal is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Everything that is open, or the oldest part of it, in the partitions this node owns.
    Scan(Vec<Open>),
    /// From `sealed`, of a room in a partition this node owns.
    Event {
        /// Where.
        room: RoomId,
        /// What.
        event: RoomEvent,
    },
}

/// What the journal wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Put this on `accepted` again.
    Republish(Accepted),
    /// Close the entry of this id in the store, if there is one.
    Forget {
        /// The item's room.
        room: RoomId,
        /// Which.
        id: ItemId,
    },
}

/// The machine.
#[derive(Debug, Default)]
pub struct Journal {
    /// Entries of the last scan: since when each has been waiting; `None`: it waited long enough.
    tried: BTreeMap<ItemId, Option<Mono>>,
    /// Flushed, not yet sealed.
    shown: BTreeMap<ItemId, Shown>,
    /// The same per room, by place.
    places: BTreeMap<RoomId, BTreeSet<(Gen, SlotNo, ItemId)>>,
    /// In the order of the flushes; ids that are done leave when their time is over.
    order: VecDeque<(Mono, ItemId)>,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Debug)]
struct Shown {
    room: RoomId,
    gen_no: Gen,
    slot: SlotNo,
}

impl Journal {
    /// Takes in what happened.
    pub fn handle(&mut self, input: Input, now: Now) {
        match input {
            Input::Scan(open) => self.scan(open, now),
            Input::Event { room, event } => self.see(&room, &event, now.mono),
        }
    }

    /// Lets go of items that were flushed long ago.
    pub fn tick(&mut self, now: Now) {
        while let Some(&(at, id)) = self.order.front() {
            if now.mono.since(at) < KEPT_AFTER && self.order.len() <= SHOWN_MAX {
                return;
            }
            self.order.pop_front();
            self.keep(id);
        }
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Journal::tick`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        self.order.front().map(|&(at, _)| at + KEPT_AFTER)
    }

    fn scan(&mut self, open: Vec<Open>, now: Now) {
        let before = std::mem::take(&mut self.tried);
        let mut republished = 0;
        for Open { accepted, written_at } in open {
            let id = accepted.item.id;
            if self.shown.contains_key(&id) {
                continue;
            }
            let tried = match before.get(&id) {
                Some(&tried) => tried,
                // Of an earlier life of this process, or of another node.
                None if now.wall.since(written_at) >= PATIENCE => None,
                // Just written; a clock that stepped back makes an old one look so, too.
                None => Some(now.mono),
            };
            let due = tried.is_none_or(|it| now.mono.since(it) >= PATIENCE);
            if due && republished < REPUBLISH_MAX {
                republished += 1;
                self.tried.insert(id, Some(now.mono));
                self.outputs.push_back(Output::Republish(accepted));
            } else {
                self.tried.insert(id, tried);
            }
        }
    }

    fn see(&mut self, room: &RoomId, event: &RoomEvent, now: Mono) {
        match event {
            RoomEvent::Flush { gen_no, slot, items, .. } => {
                for id in items.iter().map(|it| it.item.id).filter(|&it| gift::is_journaled(it)) {
                    self.show(id, room, *gen_no, *slot, now);
                }
            }
            RoomEvent::Seal { gen_no, slot, .. } => self.seal(room, *gen_no, *slot),
            RoomEvent::Fates { fates } => {
                for &(id, fate) in fates.iter().filter(|it| gift::is_journaled(it.0)) {
                    self.meet(id, fate, room, now);
                }
            }
            RoomEvent::Opened { .. } | RoomEvent::Heat { .. } => {}
        }
    }

    fn meet(&mut self, id: ItemId, fate: Fate, room: &RoomId, now: Mono) {
        match fate {
            Fate::Sealed { gen_no, slot, .. } => self.show(id, room, gen_no, slot, now),
            Fate::Merged { .. } => self.forget(room.clone(), id),
            Fate::Shed { reason: Reason::Recalled | Reason::RoomClosed | Reason::NoRoom } => {
                self.forget(room.clone(), id);
            }
            // Acknowledged is shown: it stays open and is published again.
            Fate::Shed { .. } => {}
        }
    }

    fn show(&mut self, id: ItemId, room: &RoomId, gen_no: Gen, slot: SlotNo, now: Mono) {
        if self.shown.contains_key(&id) {
            return;
        }
        self.order.push_back((now, id));
        self.places.entry(room.clone()).or_default().insert((gen_no, slot, id));
        self.shown.insert(id, Shown { room: room.clone(), gen_no, slot });
    }

    /// Everything of the room up to this slot is kept.
    fn seal(&mut self, room: &RoomId, gen_no: Gen, slot: SlotNo) {
        let Some(places) = self.places.get_mut(room) else { return };
        let behind = places.split_off(&(gen_no, SlotNo(slot.0.saturating_add(1)), ItemId(0)));
        for (_, _, id) in std::mem::replace(places, behind) {
            self.shown.remove(&id);
            self.outputs.push_back(Output::Forget { room: room.clone(), id });
        }
        if self.places.get(room).is_some_and(BTreeSet::is_empty) {
            self.places.remove(room);
        }
    }

    fn keep(&mut self, id: ItemId) {
        let Some(Shown { room, gen_no, slot }) = self.shown.remove(&id) else { return };
        if let Some(places) = self.places.get_mut(&room) {
            places.remove(&(gen_no, slot, id));
            if places.is_empty() {
                self.places.remove(&room);
            }
        }
        self.forget(room, id);
    }

    fn forget(&mut self, room: RoomId, id: ItemId) {
        self.outputs.push_back(Output::Forget { room, id });
    }
}

#[cfg(test)]
mod tests;
