//! When a room flushes and seals: a gen's slots over the room's time.
//!
//! Flushes stand at fixed points of a slot: every `flush_ms` from its start, and its end. Every
//! slot is sealed exactly once and in order, empty ones too. When a tick comes late, a slot that
//! has been over for a whole interval gets no more items, because its readers have moved on.

use std::collections::BTreeMap;

use proto::head::GenInfo;
use proto::id::{Gen, Seq, SlotNo};
use proto::item::{Item, Placed};
use proto::time::Wall;

use crate::budget::Span;

/// What is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Due {
    /// Place items with what the budget grants at this point.
    Flush(Span),
    /// The slot is over: place the last items, if a span is given, and seal it.
    Seal(Option<Span>),
}

/// Items that were given their places together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Flush {
    /// Gen of the places.
    pub gen_no: Gen,
    /// Slot they belong to.
    pub slot: SlotNo,
    /// Number of the flush within the slot, from 0; flushes without items are not counted.
    pub part: u32,
    /// Room's time.
    pub at: Wall,
    /// The items, seq rising.
    pub items: Vec<Placed>,
}

/// A slot that is over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Slot {
    /// Which.
    pub slot: SlotNo,
    /// Its flushes in order.
    pub flushes: Vec<Vec<Placed>>,
    /// The last slot of the gen, once its end is known.
    pub end: Option<SlotNo>,
    /// The gen that follows, if one is announced.
    pub next: Option<GenInfo>,
}

/// One gen of a room.
#[derive(Debug)]
pub struct Timeline {
    info: GenInfo,
    flush_ms: u64,
    slot: SlotNo,
    next_seq: Seq,
    flushed: Wall,
    flushes: Vec<Vec<Placed>>,
    later: BTreeMap<SlotNo, Vec<Vec<Placed>>>,
    end: Option<SlotNo>,
    next: Option<GenInfo>,
}

impl Timeline {
    /// Opens a gen at its slot 0. The first seq is 1.
    #[must_use]
    pub fn open(info: GenInfo, flush_ms: u32) -> Self {
        Self::resume(info, flush_ms, SlotNo(0), Seq(1), Vec::new())
    }

    /// Goes on with a gen: `slot` is the first that is not sealed, `flushes` are those of it and of
    /// later slots.
    #[must_use]
    pub fn resume(
        info: GenInfo,
        flush_ms: u32,
        slot: SlotNo,
        next_seq: Seq,
        flushes: Vec<Flush>,
    ) -> Self {
        let mut later: BTreeMap<SlotNo, Vec<Vec<Placed>>> = BTreeMap::new();
        for flush in flushes.into_iter().filter(|it| it.slot >= slot) {
            later.entry(flush.slot).or_default().push(flush.items);
        }
        let mut timeline = Self {
            info,
            flush_ms: u64::from(flush_ms.max(1)),
            slot,
            next_seq,
            flushed: Wall(0),
            flushes: Vec::new(),
            later,
            end: None,
            next: None,
        };
        timeline.enter(slot);
        timeline
    }

    /// What the gen fixes.
    #[must_use]
    pub const fn info(&self) -> GenInfo {
        self.info
    }

    /// The slot that is open.
    #[must_use]
    pub const fn slot(&self) -> SlotNo {
        self.slot
    }

    /// When the open slot starts.
    #[must_use]
    pub fn slot_start(&self) -> Wall {
        let passed_ms = self.slot.0.saturating_mul(u64::from(self.info.interval_ms));
        Wall(self.info.epoch_ms.0.saturating_add(passed_ms))
    }

    /// When the open slot is over.
    #[must_use]
    pub fn slot_end(&self) -> Wall {
        Wall(self.slot_start().0.saturating_add(u64::from(self.info.interval_ms)))
    }

    /// Items that the open slot already has.
    #[must_use]
    pub fn items(&self) -> usize {
        self.flushes.iter().map(Vec::len).sum()
    }

    /// The last slot of this gen, once known.
    #[must_use]
    pub const fn end(&self) -> Option<SlotNo> {
        self.end
    }

    /// Ends the gen with `slot`, but not before the open slot and those already flushed into.
    pub fn end_with(&mut self, slot: SlotNo, next: Option<GenInfo>) {
        let flushed = self.later.last_key_value().map_or(self.slot, |(&last, _)| last);
        self.end = Some(slot.max(self.slot).max(flushed));
        self.next = next;
    }

    /// What is due at `time`; flush points pass unused while nothing is `waiting`.
    #[must_use]
    pub fn due(&self, time: Wall, waiting: bool) -> Option<Due> {
        let end = self.slot_end();
        if time >= end {
            let is_fresh = time.0 - end.0 < u64::from(self.info.interval_ms);
            return Some(Due::Seal(is_fresh.then(|| self.span(end))));
        }
        let point = self.point(time);
        (waiting && point > self.flushed).then(|| Due::Flush(self.span(point)))
    }

    /// When something is due next, at `time` or later.
    #[must_use]
    pub fn next_at(&self, time: Wall, waiting: bool) -> Wall {
        if !waiting {
            return self.slot_end();
        }
        let passed = self.point(time).max(self.flushed);
        Wall(passed.0.saturating_add(self.flush_ms)).min(self.slot_end())
    }

    /// Gives items their places in the open slot; `None` if there are none.
    pub fn place(&mut self, items: Vec<Item>, time: Wall) -> Option<Flush> {
        self.flushed = self.point(time.min(self.slot_end())).max(self.flushed);
        if items.is_empty() {
            return None;
        }
        let items: Vec<Placed> = items.into_iter().map(|item| self.number(item)).collect();
        let part = u32::try_from(self.flushes.len()).unwrap_or(u32::MAX);
        self.flushes.push(items.clone());
        Some(Flush { gen_no: self.info.gen_no, slot: self.slot, part, at: time, items })
    }

    /// Seals the open slot and opens the next one.
    pub fn seal(&mut self) -> Slot {
        let sealed = Slot {
            slot: self.slot,
            flushes: std::mem::take(&mut self.flushes),
            end: self.end,
            next: self.next,
        };
        self.enter(SlotNo(self.slot.0 + 1));
        sealed
    }

    fn enter(&mut self, slot: SlotNo) {
        self.slot = slot;
        self.flushed = self.slot_start();
        self.flushes = self.later.remove(&slot).unwrap_or_default();
    }

    fn number(&mut self, item: Item) -> Placed {
        let seq = self.next_seq;
        self.next_seq = Seq(seq.0 + 1);
        Placed { seq, item }
    }

    /// The newest flush point of the open slot at `time`.
    fn point(&self, time: Wall) -> Wall {
        let start = self.slot_start();
        if time >= self.slot_end() {
            return self.slot_end();
        }
        let passed_ms = time.0.saturating_sub(start.0);
        Wall(start.0 + passed_ms - passed_ms % self.flush_ms)
    }

    /// A flush point within its second: the instant belongs to the second that it ends.
    fn span(&self, point: Wall) -> Span {
        let second = point.0.saturating_sub(1) / 1000;
        let elapsed_ms = point.0 - second * 1000;
        let end = self.slot_end();
        let following = if point >= end {
            point.0 + self.flush_ms
        } else {
            (point.0 + self.flush_ms).min(end.0)
        };
        let is_last = following > (second + 1) * 1000;
        let elapsed_ms = if is_last { 1000 } else { elapsed_ms };
        Span { second, elapsed_ms: u32::try_from(elapsed_ms).unwrap_or(1000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(epoch_ms: u64, interval_ms: u32, flush_ms: u32) -> Timeline {
        let info = GenInfo { gen_no: Gen(1), epoch_ms: Wall(epoch_ms), interval_ms, layout: 1 };
        Timeline::open(info, flush_ms)
    }

    /// Every span of `ms` milliseconds, ticked each millisecond.
    fn spans(mut timeline: Timeline, ms: u64) -> Vec<Span> {
        let start = timeline.slot_start().0;
        let mut spans = Vec::new();
        for at in start..=start + ms {
            while let Some(due) = timeline.due(Wall(at), true) {
                match due {
                    Due::Flush(span) => spans.push(span),
                    Due::Seal(span) => {
                        spans.extend(span);
                        timeline.seal();
                        continue;
                    }
                }
                assert_eq!(timeline.place(Vec::new(), Wall(at)), None);
            }
        }
        spans
    }

    #[test]
    fn every_second_ends_with_a_full_grant_whatever_the_lengths() {
        for (epoch_ms, interval_ms, flush_ms) in
            [(0, 1000, 200), (0, 1000, 300), (1_400, 700, 200), (0, 2000, 300), (500, 5000, 1000)]
        {
            let spans = spans(timeline(epoch_ms, interval_ms, flush_ms), 20_000);

            for pair in spans.windows(2) {
                if pair[0].second == pair[1].second {
                    assert!(pair[0].elapsed_ms < pair[1].elapsed_ms, "{pair:?}");
                } else {
                    assert_eq!(pair[0].elapsed_ms, 1000, "{pair:?} of {interval_ms}/{flush_ms}");
                    assert_eq!(pair[0].second + 1, pair[1].second, "{pair:?}");
                }
            }
        }
    }

    #[test]
    fn the_usual_second_has_five_equal_flushes() {
        let spans = spans(timeline(0, 1000, 200), 1000);

        let elapsed: Vec<u32> = spans.iter().map(|it| it.elapsed_ms).collect();
        assert_eq!(elapsed, [200, 400, 600, 800, 1000]);
    }

    #[test]
    fn a_slot_that_is_long_over_gets_no_items() {
        let timeline = timeline(0, 1000, 200);

        assert!(matches!(timeline.due(Wall(1999), true), Some(Due::Seal(Some(_)))));
        assert_eq!(timeline.due(Wall(2000), true), Some(Due::Seal(None)));
    }

    #[test]
    fn without_items_nothing_is_due_before_the_slot_ends() {
        let timeline = timeline(0, 1000, 200);

        assert_eq!(timeline.due(Wall(999), false), None);
        assert_eq!(timeline.next_at(Wall(250), false), Wall(1000));
        assert_eq!(timeline.next_at(Wall(250), true), Wall(400));
    }
}
