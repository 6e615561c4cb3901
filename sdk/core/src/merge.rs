//! One room's items from all paths, each given once and in order.
//!
//! A [`Merge`] is fed what arrives over the long connection and what was fetched, and drained of
//! [`Output`]s. What it promises: an item id is shown at most once while it is remembered; places
//! `(gen, seq)` rise, except for protected items that arrive after their turn, because a gift shown
//! late is better than a gift lost; what is missing is told.
//!
//! How it tells what is missing: a seal says how many items a slot has, a segment has them all.
//! Seq alone proves only that nothing is missing, when it goes on by one; a jump may be a loss or
//! an item this viewer does not get, so it is waited out until the seal comes, and a room that
//! turns out to have such jumps is not waited for again.
//!
//! Nothing behind a slot that is wanted from the segments is shown before that slot has come or is
//! given up. All of it is bounded by [`Limits`].

mod arrive;
mod release;
mod seen;
mod slot;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proto::frame::{Batch, Path, Place, Resumed, Seal};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, Seq, SlotNo};
use proto::item::Item;
use proto::segment::Segment;
use proto::time::Mono;

use seen::Seen;
use slot::{Key, Slot};

/// How much a [`Merge`] remembers and how long it waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Ids remembered; about 60 bytes each. 50 items/s for 10 minutes are 30,000.
    pub ids_max: usize,
    /// How long an id is remembered.
    pub ids_age_max: Duration,
    /// Items that wait for their turn; when more do, the oldest missing slot is given up.
    pub held_items_max: usize,
    /// Slots that are not finished.
    pub slots_max: usize,
    /// Slots asked for after one gap; what is older is given up.
    pub fetch_slots_max: usize,
    /// Flushes kept that came before the news of a switch to push.
    pub early_max: usize,
    /// How long a jump in seq waits for the seal that explains it.
    pub hole_wait_max: Duration,
    /// How long a wanted slot is waited for.
    pub slot_wait_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            ids_max: 32_768,
            ids_age_max: Duration::from_secs(600),
            held_items_max: 8_192,
            slots_max: 128,
            fetch_slots_max: 60,
            early_max: 64,
            hole_wait_max: Duration::from_secs(2),
            slot_wait_max: Duration::from_secs(15),
        }
    }
}

/// Which way an item came.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Via {
    /// The long connection.
    Push,
    /// A segment.
    Segments,
}

/// An item to be shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shown {
    /// Its place in the room's order.
    pub place: Place,
    /// The item.
    pub item: Item,
    /// Which way it came.
    pub via: Via,
    /// When it arrived here; it may have waited for its turn since.
    pub received: Mono,
}

/// What a merge is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// A connection's answer to the room's join: how items will come now, and what resume found.
    Joined {
        /// Push or segments.
        path: Path,
        /// What resume found.
        resumed: Resumed,
    },
    /// Items of one flush.
    Batch(Batch),
    /// A slot is complete.
    Seal(Seal),
    /// The link left items out because this session is slow.
    Skipped {
        /// How many.
        items: u32,
    },
    /// A segment was fetched.
    Segment(Segment),
    /// A segment will not come: it is gone, or fetching it failed too often.
    Lost {
        /// Gen.
        gen_no: Gen,
        /// Slot.
        slot: SlotNo,
    },
    /// A gen is over.
    Ended {
        /// Gen.
        gen_no: Gen,
        /// Its first slot that does not exist.
        slot: SlotNo,
    },
    /// The room changes its path from this slot on.
    Heat {
        /// Hot: segments; cold: push.
        heat: Heat,
        /// Gen of the switch.
        gen_no: Gen,
        /// First slot on the new path.
        slot: SlotNo,
    },
    /// Items that the head calls recalled.
    Recalled(Vec<ItemId>),
}

/// What a merge wants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// Show this item.
    Show(Shown),
    /// Fetch this slot's segment, and answer with [`Input::Segment`] or [`Input::Lost`].
    Fetch {
        /// Gen.
        gen_no: Gen,
        /// Slot.
        slot: SlotNo,
    },
    /// Items are missing for good.
    Gap {
        /// First place that may be missing.
        from: Place,
        /// First place behind it that was shown.
        to: Place,
        /// How many at most; `None` if that cannot be told, because the gen changed in between
        /// or nothing was shown before.
        items: Option<u32>,
    },
    /// Take this item off the screen.
    Recall(ItemId),
}

/// Merges one room's paths.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    limits: Limits,
    /// Path of slots before `switch`.
    path: Path,
    switch: Option<(Key, Path)>,
    seen: Seen,
    recalled: Seen,
    /// Last place that was shown.
    cursor: Option<Place>,
    /// Newest slot of which something was shown, or that is finished.
    reached: Option<Key>,
    /// Slots up to here are finished and forgotten.
    floor: Option<Key>,
    /// Newest slot that came as a segment.
    last_segment: Option<Key>,
    slots: BTreeMap<Key, Slot>,
    /// The first slot that does not exist, of gens that are known to be over.
    ends: BTreeMap<Gen, SlotNo>,
    held_items: usize,
    /// Items that the link said it left out and no seal has accounted for, and where that was.
    skipped: u32,
    skipped_at: Option<Key>,
    /// Pushes of slots that are still polled by what is known: the news of a switch to push comes
    /// behind the first of them.
    early: VecDeque<Batch>,
    /// Jumps in seq are by design here.
    sparse: bool,
    continuity: Continuity,
    gap: Option<Gap>,
    outputs: VecDeque<Output>,
}

/// Whether what comes next is known to follow what was shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Continuity {
    /// Nothing was ever shown: the next slot is entered in its middle.
    #[default]
    Fresh,
    /// It follows.
    Sure,
    /// Slots between may be missing.
    Broken,
}

/// A loss that is told as soon as it is known what follows.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: Place,
    missing: Option<u32>,
    recovered: u32,
}

impl Merge {
    /// A merge that has shown nothing yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes in what happened at `now`.
    pub fn handle(&mut self, input: Input, now: Mono) {
        match input {
            Input::Joined { path, resumed } => self.joined(path, resumed),
            Input::Batch(batch) => self.batch(batch, now),
            Input::Seal(seal) => self.seal(&seal, now),
            Input::Skipped { items } => {
                self.skipped = self.skipped.saturating_add(items);
                self.skipped_at = self.reached;
            }
            Input::Segment(segment) => self.segment(segment, now),
            Input::Lost { gen_no, slot } => self.lost((gen_no, slot), now),
            Input::Ended { gen_no, slot } => self.end_gen((gen_no, slot)),
            Input::Heat { heat, gen_no, slot } => self.heat(heat, (gen_no, slot), now),
            Input::Recalled(ids) => ids.into_iter().for_each(|it| self.recall(it, now)),
        }
        self.tick(now);
    }

    /// Gives up what was waited for too long, and shows what may be shown.
    pub fn tick(&mut self, now: Mono) {
        self.expire(now);
        self.release(now);
        while self.slots.len() > self.limits.slots_max
            || self.held_items > self.limits.held_items_max
        {
            self.give_up_first();
            self.release(now);
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Merge::tick`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        // The first slot that blocks; later deadlines mean nothing before it is out of the way.
        self.slots.values().find_map(Slot::deadline)
    }

    /// The last place that was shown: what a resume asks to continue from.
    #[must_use]
    pub const fn cursor(&self) -> Option<Place> {
        self.cursor
    }

    /// The newest slot of which something was shown: where polling goes on.
    #[must_use]
    pub const fn reached(&self) -> Option<(Gen, SlotNo)> {
        self.reached
    }

    fn path_of(&self, key: Key) -> Path {
        match self.switch {
            Some((from, path)) if key >= from => path,
            Some(_) | None => self.path,
        }
    }

    fn is_finished(&self, key: Key) -> bool {
        self.floor.is_some_and(|floor| key <= floor)
    }
}

/// The place just behind `place`.
const fn after(place: Place) -> Place {
    Place { gen_no: place.gen_no, seq: Seq(place.seq.0.saturating_add(1)) }
}
