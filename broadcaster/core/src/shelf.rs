//! Which slots of a room are there to be fetched, and what to answer for each of them.

use proto::head::{GenInfo, PAST_MAX, Past};
use proto::id::{Gen, SlotNo};
use proto::time::Wall;

/// Gens of one room that a shelf remembers.
pub const SPANS_MAX: usize = 64;

/// The slots of one gen that are served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// The gen.
    pub info: GenInfo,
    /// The oldest slot still served.
    pub oldest: SlotNo,
    /// One after the newest sealed slot.
    pub until: SlotNo,
    /// The last slot, once the gen ended.
    pub end: Option<SlotNo>,
}

/// What to answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is there.
    Serve,
    /// It is the next one: hold the request until it is sealed.
    Hold,
    /// It is farther ahead.
    NotYet,
    /// It was there and is gone.
    Expired,
    /// The gen ended before it: read the head again.
    Ended,
}

/// A room's gens, oldest first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Shelf {
    spans: Vec<Span>,
}

impl Span {
    /// When the newest sealed slot of the gen ended, and so any that is older.
    fn slot_end(&self, slot: SlotNo) -> Wall {
        let passed_ms = (slot.0.saturating_add(1)).saturating_mul(self.info.interval_ms.into());
        Wall(self.info.epoch_ms.0.saturating_add(passed_ms))
    }
}

impl Shelf {
    /// The shelf that a head describes: one gen with every slot from `oldest` to `newest`.
    #[must_use]
    pub fn found(info: GenInfo, oldest: SlotNo, newest: SlotNo, end: Option<SlotNo>) -> Self {
        let until = SlotNo(newest.0.saturating_add(1));
        Self { spans: vec![Span { info, oldest, until, end }] }
    }

    /// The same behind the gens that ended before, oldest first.
    #[must_use]
    pub fn behind(mut self, past: &[Past]) -> Self {
        let first = self.spans.first().map(|it| it.info.gen_no);
        let is_before = |it: &&Past| first.is_none_or(|first| it.info.gen_no < first);
        let past = past.iter().filter(is_before).take(PAST_MAX).map(|it| Span {
            info: it.info,
            oldest: it.oldest,
            until: SlotNo(it.end.0.saturating_add(1)),
            end: Some(it.end),
        });
        self.spans.splice(0..0, past);
        self
    }

    /// The gens that ended and are still served, oldest first.
    #[must_use]
    pub fn past(&self) -> Vec<Past> {
        let ended = self.spans.split_last().map_or(&[][..], |(_, it)| it);
        let served = ended.iter().filter(|it| it.oldest < it.until);
        let past = served.map(|it| {
            let Span { info, oldest, until, .. } = *it;
            Past { info, oldest, end: SlotNo(until.0 - 1) }
        });
        let mut past: Vec<_> = past.collect();
        past.drain(..past.len().saturating_sub(PAST_MAX));
        past
    }

    /// Begins a gen, whose first slot on the shelf will be `oldest`; the one before it has ended.
    pub fn open(&mut self, info: GenInfo, oldest: SlotNo) {
        if self.spans.len() >= SPANS_MAX {
            self.spans.remove(0);
        }
        self.spans.push(Span { info, oldest, until: oldest, end: None });
    }

    /// Puts a sealed slot on the shelf. Slots that were not written in between are not there.
    pub fn put(&mut self, info: GenInfo, slot: SlotNo, end: Option<SlotNo>) {
        if self.newest().is_none_or(|it| it.info.gen_no < info.gen_no) {
            self.open(info, slot);
        }
        let Some(span) = self.spans.iter_mut().find(|it| it.info.gen_no == info.gen_no) else {
            return;
        };
        if span.oldest == span.until || slot.0 > span.until.0 {
            span.oldest = slot;
        }
        span.until = span.until.max(SlotNo(slot.0 + 1));
        span.end = end.filter(|it| it.0 < span.until.0);
    }

    /// The newest gen.
    #[must_use]
    pub fn newest(&self) -> Option<&Span> {
        self.spans.last()
    }

    /// Takes down slots that ended `retention_ms` ago, at most `slots_max` of them.
    pub fn expire(&mut self, retention_ms: u64, now: Wall, slots_max: usize) -> Vec<(Gen, SlotNo)> {
        let mut expired = Vec::new();
        for span in &mut self.spans {
            while span.oldest < span.until
                && expired.len() < slots_max
                && span.slot_end(span.oldest).0.saturating_add(retention_ms) <= now.0
            {
                expired.push((span.info.gen_no, span.oldest));
                span.oldest.0 += 1;
            }
        }
        expired
    }

    /// Every slot that is served, the oldest first.
    pub fn slots(&self) -> impl Iterator<Item = (Gen, SlotNo)> {
        self.spans.iter().flat_map(|span| {
            (span.oldest.0..span.until.0).map(|slot| (span.info.gen_no, SlotNo(slot)))
        })
    }

    /// What to answer when `slot` of `gen_no` is asked for.
    #[must_use]
    pub fn find(&self, gen_no: Gen, slot: SlotNo) -> Answer {
        let Some(newest) = self.newest() else {
            return Answer::NotYet;
        };
        if gen_no > newest.info.gen_no {
            return Answer::NotYet;
        }
        let Some(span) = self.spans.iter().find(|it| it.info.gen_no == gen_no) else {
            return Answer::Ended;
        };
        let is_over = gen_no < newest.info.gen_no && slot >= span.until;
        if is_over || span.end.is_some_and(|end| slot > end) {
            Answer::Ended
        } else if slot < span.oldest {
            Answer::Expired
        } else if slot < span.until {
            Answer::Serve
        } else if slot == span.until {
            Answer::Hold
        } else {
            Answer::NotYet
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gen_info(gen_no: u32, epoch_ms: u64) -> GenInfo {
        GenInfo { gen_no: Gen(gen_no), epoch_ms: Wall(epoch_ms), interval_ms: 1000, layout: 1 }
    }

    #[test]
    fn a_found_gen_is_still_served_when_the_next_one_begins() {
        let mut shelf = Shelf::found(gen_info(1, 0), SlotNo(3), SlotNo(9), None);

        shelf.open(gen_info(2, 20_000), SlotNo(0));

        assert_eq!(shelf.find(Gen(1), SlotNo(2)), Answer::Expired);
        for slot in 3..10 {
            assert_eq!(shelf.find(Gen(1), SlotNo(slot)), Answer::Serve, "{slot}");
        }
        assert_eq!(shelf.find(Gen(1), SlotNo(10)), Answer::Ended);
        assert_eq!(shelf.find(Gen(2), SlotNo(0)), Answer::Hold);
    }

    #[test]
    fn gens_that_ended_are_found_again_by_whoever_starts_later() {
        let mut shelf = Shelf::found(gen_info(1, 0), SlotNo(3), SlotNo(9), None);
        shelf.open(gen_info(2, 20_000), SlotNo(0));
        assert_eq!(
            shelf.expire(10_000, Wall(16_000), 100),
            [3, 4, 5].map(|it| (Gen(1), SlotNo(it)))
        );

        let found = Shelf::found(gen_info(3, 40_000), SlotNo(0), SlotNo(0), None);
        let mut found = found.behind(&shelf.past());

        assert_eq!(found.find(Gen(1), SlotNo(5)), Answer::Expired);
        assert_eq!(found.find(Gen(1), SlotNo(6)), Answer::Serve);
        assert_eq!(found.find(Gen(1), SlotNo(10)), Answer::Ended);
        assert_eq!(found.find(Gen(2), SlotNo(0)), Answer::Ended, "nothing was sealed in it");
        assert_eq!(found.expire(10_000, Wall(21_000), 100).len(), 4, "and removed in its time");
        assert_eq!(found.past(), []);
    }

    #[test]
    fn of_many_gens_that_ended_the_newest_are_remembered() {
        let mut shelf = Shelf::default();
        for gen_no in 1..=40 {
            shelf.put(gen_info(gen_no, 0), SlotNo(0), None);
        }

        let past = shelf.past();

        let gens: Vec<u32> = past.iter().map(|it| it.info.gen_no.0).collect();
        assert_eq!(gens, (24..40).collect::<Vec<_>>());
    }

    fn shelf() -> Shelf {
        let mut shelf = Shelf::default();
        for slot in 0..10 {
            shelf.put(gen_info(2, 0), SlotNo(slot), None);
        }
        shelf
    }

    #[test]
    fn each_slot_has_its_answer() {
        let mut shelf = shelf();
        assert_eq!(shelf.expire(5000, Wall(10_000), 100).len(), 5);

        assert_eq!(shelf.find(Gen(2), SlotNo(4)), Answer::Expired);
        assert_eq!(shelf.find(Gen(2), SlotNo(5)), Answer::Serve);
        assert_eq!(shelf.find(Gen(2), SlotNo(9)), Answer::Serve);
        assert_eq!(shelf.find(Gen(2), SlotNo(10)), Answer::Hold);
        assert_eq!(shelf.find(Gen(2), SlotNo(11)), Answer::NotYet);
        assert_eq!(shelf.find(Gen(1), SlotNo(0)), Answer::Ended);
        assert_eq!(shelf.find(Gen(3), SlotNo(0)), Answer::NotYet);
        assert_eq!(shelf.find(Gen(2), SlotNo(u64::MAX)), Answer::NotYet);
    }

    #[test]
    fn a_gen_ends_when_the_next_begins() {
        let mut shelf = shelf();
        shelf.open(gen_info(3, 20_000), SlotNo(0));

        assert_eq!(shelf.find(Gen(2), SlotNo(9)), Answer::Serve);
        assert_eq!(shelf.find(Gen(2), SlotNo(10)), Answer::Ended);
        assert_eq!(shelf.find(Gen(3), SlotNo(0)), Answer::Hold);
        assert_eq!(shelf.find(Gen(3), SlotNo(1)), Answer::NotYet);
    }

    #[test]
    fn an_announced_end_does_not_hide_the_slots_before_it() {
        let mut shelf = shelf();
        shelf.put(gen_info(2, 0), SlotNo(10), Some(SlotNo(11)));
        assert_eq!(shelf.find(Gen(2), SlotNo(11)), Answer::Hold);

        shelf.put(gen_info(2, 0), SlotNo(11), Some(SlotNo(11)));
        assert_eq!(shelf.find(Gen(2), SlotNo(11)), Answer::Serve);
        assert_eq!(shelf.find(Gen(2), SlotNo(12)), Answer::Ended);
    }

    #[test]
    fn expiry_is_bounded_and_goes_on_later() {
        let mut shelf = shelf();

        assert_eq!(shelf.expire(1000, Wall(1_000_000), 4).len(), 4);
        assert_eq!(
            shelf.slots().collect::<Vec<_>>(),
            [4, 5, 6, 7, 8, 9].map(|it| (Gen(2), SlotNo(it)))
        );
        assert_eq!(shelf.expire(1000, Wall(1_000_000), 100).len(), 6);
        assert_eq!(shelf.expire(1000, Wall(1_000_000), 100), []);
    }

    #[test]
    fn slots_after_a_pause_in_writing_start_anew() {
        let mut shelf = shelf();
        shelf.put(gen_info(2, 0), SlotNo(100), None);

        assert_eq!(shelf.find(Gen(2), SlotNo(50)), Answer::Expired);
        assert_eq!(shelf.find(Gen(2), SlotNo(100)), Answer::Serve);
    }
}
