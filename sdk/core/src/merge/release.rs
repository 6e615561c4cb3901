//! What may be shown is shown, slot by slot.

use std::ops::Bound;

use proto::frame::{Path, Place};
use proto::id::{Seq, SlotNo};
use proto::item::Body;
use proto::time::Mono;

use super::slot::{Held, Key, Slot, Stage};
use super::{Gap, Merge, Output, Shown, after};

impl Merge {
    /// Gives up wanted slots whose time is over.
    pub(super) fn expire(&mut self, now: Mono) {
        for slot in self.slots.values_mut() {
            if let Stage::Wanted { deadline, missing } = slot.stage
                && now >= deadline
            {
                slot.stage = Stage::Lost { missing };
            }
        }
    }

    /// Stops waiting for whatever the first slot waits for.
    pub(super) fn give_up_first(&mut self) {
        if let Some(mut first) = self.slots.first_entry() {
            let slot = first.get_mut();
            slot.stage = match slot.stage {
                Stage::Filling | Stage::Complete => Stage::Complete,
                Stage::Wanted { missing, .. } | Stage::Lost { missing } => Stage::Lost { missing },
            };
        }
    }

    /// Shows all that is not kept back, and forgets finished slots.
    pub(super) fn release(&mut self, now: Mono) {
        let mut last = None;
        while let Some(key) = self.slot_behind(last) {
            // The slot is out of the map while its items are shown, so that both can be changed.
            let Some(mut slot) = self.slots.remove(&key) else { break };
            let open = self.release_slot(key, &mut slot, now);
            let first = self.slots.first_key_value().is_none_or(|(&it, _)| it > key);
            if open && first && slot.is_done() {
                self.floor = Some(key);
            } else {
                self.slots.insert(key, slot);
            }
            if !open {
                break;
            }
            last = Some(key);
        }
    }

    fn slot_behind(&self, last: Option<Key>) -> Option<Key> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.slots.range((from, Bound::Unbounded)).next().map(|(&key, _)| key)
    }

    /// Shows what may be shown of one slot; false if later ones must wait for it.
    fn release_slot(&mut self, key: Key, slot: &mut Slot, now: Mono) -> bool {
        if let Stage::Wanted { .. } = slot.stage {
            return false;
        }
        if std::mem::take(&mut slot.gap_before) {
            self.begin_gap(None);
        }
        if let Stage::Lost { missing } = slot.stage {
            self.begin_gap(missing);
            slot.stage = Stage::Complete;
        }
        while let Some((place, held)) = slot.repeats.pop_first() {
            self.show_repeat(place, held, now);
        }
        while let Some((&seq, _)) = slot.held.first_key_value() {
            if self.is_kept_back(key, slot, seq, now) {
                return false;
            }
            if let Some((seq, held)) = slot.held.pop_first() {
                self.held_items = self.held_items.saturating_sub(1);
                self.show_next(key, Place { gen_no: key.0, seq }, held, now);
            }
        }
        if slot.is_done() {
            self.reached = self.reached.max(Some(key));
        }
        true
    }

    /// Whether the jump in front of `seq` may be a loss that can still be made good.
    fn is_kept_back(&mut self, key: Key, slot: &mut Slot, seq: Seq, now: Mono) -> bool {
        let Some(cursor) = self.cursor.filter(|it| it.gen_no == key.0) else {
            return false;
        };
        let explained = slot.is_done() || self.sparse || self.skipped > 0 || self.gap.is_some();
        if explained || seq <= after(cursor).seq {
            return false;
        }
        if let Some(until) = slot.hole {
            return now < until;
        }
        slot.hole = Some(now + self.limits.hole_wait_max);
        // Slots that nothing was heard of were empty, or lost whole.
        let unheard =
            self.reached.filter(|it| it.0 == key.0).map_or(key.1.0, |it| it.1.0.saturating_add(1));
        for slot_no in self.newest_slots(unheard, key.1.0) {
            let between = (key.0, SlotNo(slot_no));
            if self.path_of(between) == Path::Push && !self.slots.contains_key(&between) {
                self.want(between, None, now);
            }
        }
        true
    }

    /// From here on something may be missing. A viewer who has reached nothing misses nothing.
    fn begin_gap(&mut self, missing: Option<u32>) {
        let start = |it: Key| Place { gen_no: it.0, seq: Seq(0) };
        let Some(from) = self.cursor.map(after).or_else(|| self.reached.map(start)) else {
            return;
        };
        self.gap = Some(match self.gap {
            None => Gap { from, missing, recovered: 0 },
            Some(gap) => {
                let sum = gap.missing.zip(missing).map(|(one, other)| one.saturating_add(other));
                Gap { missing: sum, ..gap }
            }
        });
    }

    /// Tells the loss in front of `to`, if there was one.
    fn end_gap(&mut self, to: Place) {
        let Some(gap) = self.gap.take() else {
            return;
        };
        // Seq 0 stands for "nothing shown yet", from where no jump can be measured.
        let measured = to.gen_no == gap.from.gen_no && gap.from.seq > Seq(0);
        let hole = measured.then(|| {
            let jump = to.seq.0.saturating_sub(gap.from.seq.0);
            u32::try_from(jump).unwrap_or(u32::MAX)
        });
        let most = match (gap.missing, hole) {
            (Some(missing), Some(hole)) => Some(missing.min(hole)),
            (missing, hole) => missing.or(hole),
        };
        let items = most.map(|it| it.saturating_sub(gap.recovered));
        if items != Some(0) {
            self.outputs.push_back(Output::Gap { from: gap.from, to, items });
        }
    }

    /// Shows the item whose turn it is.
    fn show_next(&mut self, key: Key, place: Place, held: Held, now: Mono) {
        if self.cursor.is_some_and(|cursor| place <= cursor) {
            return self.show_late(place, held, now);
        }
        self.end_gap(place);
        self.cursor = Some(place);
        self.reached = self.reached.max(Some(key));
        self.show(place, held, now);
    }

    /// Shows an item of an earlier slot, unless that slot brought it.
    pub(super) fn show_repeat(&mut self, place: Place, held: Held, now: Mono) {
        if self.cursor.is_some_and(|cursor| place <= cursor) {
            return self.show_late(place, held, now);
        }
        if let Some(gap) = &mut self.gap {
            gap.recovered += 1;
        }
        self.cursor = Some(place);
        self.show(place, held, now);
    }

    /// Shows an item whose turn is over, if it is worth it.
    pub(super) fn show_late(&mut self, place: Place, held: Held, now: Mono) {
        if held.item.lane.is_protected() {
            self.show(place, held, now);
        }
    }

    fn show(&mut self, place: Place, held: Held, now: Mono) {
        let Held { item, via, received } = held;
        let (ids_max, age_max) = (self.limits.ids_max, self.limits.ids_age_max);
        if !self.seen.insert(item.id, now, ids_max, age_max) {
            return;
        }
        match item.body {
            Body::Tombstone { .. } | Body::Erasure { .. } => {}
            Body::Comment { .. }
            | Body::Gift { .. }
            | Body::Like { .. }
            | Body::Entry
            | Body::Notice { .. }
            | Body::System { .. }
            | Body::Effect { .. }
            | Body::Custom { .. } => {
                self.outputs.push_back(Output::Show(Shown { place, item, via, received }));
            }
        }
    }
}
