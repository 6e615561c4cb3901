//! What arrives is put into its slot.

use std::ops::Range;

use proto::frame::{Batch, Path, Place, Resumed, Seal};
use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{Gen, ItemId, Seq, SlotNo};
use proto::item::Placed;
use proto::segment::Segment;
use proto::time::Mono;

use super::slot::{Held, Key, Stage};
use super::{Continuity, Merge, Output, Via};

/// Ends of gens remembered.
const ENDS_MAX: usize = 8;
/// Recalled ids remembered; a head lists those of one minute.
const RECALLED_MAX: usize = 1_024;

impl Merge {
    pub(super) fn joined(&mut self, path: Path, resumed: Resumed) {
        let polled = path == Path::Segments && self.last_segment >= self.reached;
        self.path = path;
        self.switch = None;
        self.skipped = 0;
        self.sparse = false;
        self.early.clear();
        match (path, resumed) {
            (Path::Push, Resumed::Recovered { .. }) => self.expect_again(),
            (Path::Push, Resumed::Fresh | Resumed::Gap { .. }) => self.fetch_awaited(),
            (Path::Segments | Path::Auto, _) => {}
        }
        if self.reached.is_none() || polled {
            return;
        }
        self.continuity = match resumed {
            Resumed::Recovered { .. } => Continuity::Sure,
            Resumed::Fresh | Resumed::Gap { .. } => Continuity::Broken,
        };
    }

    /// Everything behind the cursor comes again by push: what waits for its turn must not be shown
    /// before what was awaited from elsewhere.
    fn expect_again(&mut self) {
        let cursor = self.cursor;
        for (key, slot) in &mut self.slots {
            let is_shown = |seq: Seq| Some(Place { gen_no: key.0, seq }) <= cursor;
            let known = slot.ids.len();
            slot.ids.retain(|&seq, _| is_shown(seq));
            if !slot.is_done() || slot.ids.len() < known {
                slot.stage = Stage::Filling;
            }
            slot.held.clear();
            slot.repeats.clear();
            slot.hole = None;
        }
        self.held_items = 0;
    }

    /// What was awaited from the schedule, which ends now, is asked for.
    fn fetch_awaited(&mut self) {
        for (&(gen_no, slot), state) in &self.slots {
            if let Stage::Wanted { missing: None, .. } = state.stage {
                self.outputs.push_back(Output::Fetch { gen_no, slot });
            }
        }
    }

    pub(super) fn batch(&mut self, batch: Batch, now: Mono) {
        let key = (batch.gen_no, batch.slot);
        if self.path_of(key) == Path::Segments {
            self.early.push_back(batch);
            if self.early.len() > self.limits.early_max {
                self.early.pop_front();
            }
            return;
        }
        self.enter(key, now);
        for placed in batch.items {
            self.offer(key, placed, Via::Push, now);
        }
    }

    pub(super) fn seal(&mut self, seal: &Seal, now: Mono) {
        let key = (seal.gen_no, seal.slot);
        if self.path_of(key) == Path::Segments || self.is_finished(key) {
            return;
        }
        self.enter(key, now);
        let passed = self.reached.is_some_and(|it| it > key);
        let slot = self.slots.entry(key).or_default();
        if slot.stage != Stage::Filling {
            return;
        }
        match slot.verify(seal.items, seal.crc) {
            Ok(()) => {
                slot.stage = Stage::Complete;
                self.sparse |= slot.hole.is_some();
                if Some(key) > self.skipped_at {
                    self.skipped = 0;
                }
            }
            Err(missing) if missing <= self.skipped => {
                slot.stage = Stage::Complete;
                self.skipped -= missing;
            }
            Err(missing) if passed && slot.held.is_empty() => {
                slot.stage = Stage::Complete;
                self.tell_passed(key, missing);
            }
            Err(missing) => self.want(key, Some(missing), now),
        }
    }

    pub(super) fn segment(&mut self, segment: Segment, now: Mono) {
        let key = (segment.header.gen_no, segment.header.slot);
        if let Some(end) = segment.header.end {
            self.end_gen((key.0, SlotNo(end.0.saturating_add(1))));
        }
        if !self.is_finished(key) {
            self.want_skipped(key, now);
            self.continuity = Continuity::Sure;
            self.last_segment = self.last_segment.max(Some(key));
            let slot = self.slots.entry(key).or_default();
            slot.stage = Stage::Complete;
            // A lite segment lacks items by design.
            self.sparse |= segment.header.tier == Tier::Lite;
        }
        for repeat in segment.repeats {
            self.notice_tombstone(&repeat.placed, now);
            let place = Place { gen_no: repeat.gen_no, seq: repeat.placed.seq };
            let held = Held { item: repeat.placed.item, via: Via::Segments, received: now };
            match self.slots.get_mut(&key) {
                Some(slot) => drop(slot.repeats.insert(place, held)),
                None => self.show_repeat(place, held, now),
            }
        }
        for placed in segment.items {
            self.offer(key, placed, Via::Segments, now);
        }
    }

    /// A gen has no slot from `first_missing` on.
    pub(super) fn end_gen(&mut self, (gen_no, first_missing): Key) {
        self.ends.insert(gen_no, first_missing);
        self.slots
            .retain(|&key, slot| key.0 != gen_no || key.1 < first_missing || !slot.held.is_empty());
        if self.ends.len() > ENDS_MAX {
            self.ends.pop_first();
        }
    }

    pub(super) fn lost(&mut self, key: Key, now: Mono) {
        let expected = self.path_of(key) == Path::Segments || self.slots.contains_key(&key);
        if !expected || self.is_finished(key) {
            return;
        }
        // Within what is polled, the schedule names both ends of what it leaves out.
        if self.last_segment < self.reached {
            self.want_skipped(key, now);
        }
        let slot = self.slots.entry(key).or_default();
        slot.stage = match slot.stage {
            Stage::Filling => Stage::Lost { missing: None },
            Stage::Wanted { missing, .. } => Stage::Lost { missing },
            done @ (Stage::Complete | Stage::Lost { .. }) => done,
        };
        self.last_segment = self.last_segment.max(Some(key));
        if self.continuity == Continuity::Broken {
            self.continuity = Continuity::Sure;
        }
    }

    pub(super) fn heat(&mut self, heat: Heat, from: Key, now: Mono) {
        let path = match heat {
            Heat::Cold => Path::Push,
            Heat::Hot => Path::Segments,
        };
        let current = self.switch.map_or(self.path, |(_, path)| path);
        if path == current {
            return;
        }
        self.path = current;
        let turned_hot = self.switch.replace((from, path)).map(|(key, _)| key);
        if path == Path::Push {
            self.await_polled(turned_hot, from, now);
            for batch in std::mem::take(&mut self.early) {
                if (batch.gen_no, batch.slot) >= from {
                    self.batch(batch, now);
                }
            }
        }
    }

    /// The last slots of a hot room are still on their way when the first pushes arrive.
    fn await_polled(&mut self, turned_hot: Option<Key>, end: Key, now: Mono) {
        let next = |(gen_no, slot): Key| (gen_no, SlotNo(slot.0.saturating_add(1)));
        let fetched = self.last_segment.map(next);
        let Some(first) = turned_hot.max(fetched).filter(|&it| it < end) else {
            return;
        };
        let end = (end.0, self.ends.get(&end.0).map_or(end.1, |&it| it.min(end.1)));
        let slots = self.between(first, end).unwrap_or_else(|| {
            // Of gens before, the schedule says what it leaves out.
            let from = if first.0 == end.0 { first.1.0 } else { 0 };
            self.newest_slots(from, end.1.0).map(|it| (end.0, SlotNo(it))).collect()
        });
        let deadline = now + self.limits.slot_wait_max;
        for key in slots {
            let slot = self.slots.entry(key).or_default();
            if slot.stage == Stage::Filling {
                slot.stage = Stage::Wanted { deadline, missing: None };
            }
        }
    }

    /// Takes `of` off the screen, and keeps it from being shown later.
    pub(super) fn recall(&mut self, of: ItemId, now: Mono) {
        let age_max = self.limits.ids_age_max;
        if self.recalled.insert(of, now, RECALLED_MAX, age_max) {
            self.seen.insert(of, now, self.limits.ids_max, age_max);
            self.outputs.push_back(Output::Recall(of));
        }
    }

    /// Asks for the slot's segment, once.
    pub(super) fn want(&mut self, key: Key, missing: Option<u32>, now: Mono) {
        if self.is_finished(key) {
            return;
        }
        let slot = self.slots.entry(key).or_default();
        if slot.stage == Stage::Filling {
            slot.stage = Stage::Wanted { deadline: now + self.limits.slot_wait_max, missing };
            self.outputs.push_back(Output::Fetch { gen_no: key.0, slot: key.1 });
        }
    }

    /// A push for `key`: does it follow what was shown?
    fn enter(&mut self, key: Key, now: Mono) {
        match std::mem::replace(&mut self.continuity, Continuity::Sure) {
            Continuity::Sure => {}
            Continuity::Fresh if self.is_finished(key) => {}
            Continuity::Fresh => self.slots.entry(key).or_default().partial = true,
            Continuity::Broken => self.want_before(key, now),
        }
    }

    /// Asks for the slots from the last one reached up to `key`, as many as are allowed.
    fn want_before(&mut self, key: Key, now: Mono) {
        let Some(reached) = self.reached.filter(|&it| it < key) else {
            return;
        };
        if let Some(slots) = self.between(reached, key) {
            return slots.into_iter().for_each(|it| self.want(it, None, now));
        }
        let mut first = reached.1.0;
        if reached.0 != key.0 {
            self.want(reached, None, now);
            first = 0;
        }
        let wanted = self.newest_slots(first, key.1.0);
        self.slots.entry((key.0, SlotNo(wanted.start))).or_default().gap_before = true;
        for slot in wanted {
            self.want((key.0, SlotNo(slot)), None, now);
        }
    }

    /// Polling has come to `key`: asks for what lies between it and what is known, such as the
    /// last slots of a push whose connection broke before the switch. Too much of it is a gap.
    fn want_skipped(&mut self, key: Key, now: Mono) {
        let Some(known) = self.reached.max(self.last_segment).filter(|&it| it < key) else {
            return;
        };
        let is_polled = self.last_segment == Some(known);
        let is_next_gen = known.0 != key.0;
        if is_polled && is_next_gen && key.1 == SlotNo(0) {
            return;
        }
        let first = (known.0, SlotNo(known.1.0.saturating_add(is_polled.into())));
        if let Some(slots) = self.between(first, key) {
            slots.into_iter().for_each(|it| self.want(it, None, now));
        } else if is_next_gen {
            self.want_before(key, now);
        } else {
            self.slots.entry(key).or_default().gap_before = true;
        }
    }

    /// The slots from `first` up to `end`; none if they are too many to fetch, or if nobody said
    /// where a gen between them ended.
    fn between(&self, first: Key, end: Key) -> Option<Vec<Key>> {
        let slots_max = u64::try_from(self.limits.fetch_slots_max).unwrap_or(u64::MAX);
        let mut slots = Vec::new();
        let mut from = first;
        loop {
            let until = if from.0 == end.0 { end.1 } else { *self.ends.get(&from.0)? };
            if until.0.saturating_sub(from.1.0) > slots_max {
                return None;
            }
            slots.extend((from.1.0..until.0).map(|it| (from.0, SlotNo(it))));
            if from.0 >= end.0 {
                return Some(slots).filter(|it| it.len() <= self.limits.fetch_slots_max);
            }
            from = (Gen(from.0.0.saturating_add(1)), SlotNo(0));
        }
    }

    fn offer(&mut self, key: Key, placed: Placed, via: Via, now: Mono) {
        self.notice_tombstone(&placed, now);
        let Placed { seq, item } = placed;
        let place = Place { gen_no: key.0, seq };
        let finished = self.is_finished(key);
        let passed = self.cursor.is_some_and(|cursor| place <= cursor);
        if !finished {
            self.slots.entry(key).or_default().ids.insert(seq, item.id);
        }
        let held = Held { item, via, received: now };
        if finished || passed {
            self.show_late(place, held, now);
        } else if let Some(slot) = self.slots.get_mut(&key) {
            self.held_items += usize::from(slot.held.insert(seq, held).is_none());
        }
    }

    /// A recall acts when it arrives, not when its turn comes.
    fn notice_tombstone(&mut self, placed: &Placed, now: Mono) {
        if let Some(of) = placed.item.body.recalls() {
            self.recall(of, now);
        }
    }

    /// The slots from `first` up to `end`, without the oldest ones if they are too many to fetch.
    pub(super) fn newest_slots(&self, first: u64, end: u64) -> Range<u64> {
        let slots_max = u64::try_from(self.limits.fetch_slots_max).unwrap_or(u64::MAX);
        first.max(end.saturating_sub(slots_max))..end
    }

    /// A slot that later ones have overtaken turns out to lack items.
    fn tell_passed(&mut self, key: Key, missing: u32) {
        let first = self.slots.get(&key).and_then(|it| it.ids.first_key_value());
        let Some((to, &seq)) = self.cursor.zip(first.map(|(seq, _)| seq)) else {
            return;
        };
        let from = Place { gen_no: key.0, seq };
        self.outputs.push_back(Output::Gap { from: from.min(to), to, items: Some(missing) });
    }
}
