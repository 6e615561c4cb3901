//! The segment store and its origin: what was written first stays.

use std::collections::BTreeMap;

use broadcaster_core::head;
use broadcaster_core::room::{Sealed, Told};
use proto::head::{GenInfo, Head, Tier};
use proto::id::{Gen, SlotNo};
use proto::segment::Segment;
use proto::verdict::Fate;
use sdk_core::poll::Miss;

/// What a viewer asks the origin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    Head,
    /// For a viewer's schedule.
    Poll {
        gen_no: Gen,
        slot: SlotNo,
        tier: Tier,
    },
    /// To fill a gap, for the third time and the last if `tries` is 2.
    Fetch {
        gen_no: Gen,
        slot: SlotNo,
        tier: Tier,
        tries: u32,
    },
}

/// What the origin says.
#[derive(Debug)]
pub(crate) enum Answer {
    Head(Head),
    Segment(Segment),
    Not(Miss),
}

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) segments: BTreeMap<(Gen, SlotNo, Tier), Segment>,
    head: Option<Head>,
    newest_gen: Gen,
}

impl Store {
    /// Creates the first free gen after `after`.
    pub(crate) fn create_gen(&mut self, after: Gen) -> Gen {
        self.newest_gen = Gen(self.newest_gen.max(after).0 + 1);
        self.newest_gen
    }

    /// Names the gen that follows in the head.
    pub(crate) fn open(&mut self, info: GenInfo) {
        if let Some(head) = self.head.as_mut().filter(|it| it.gen_no < info.gen_no) {
            head::end(head, Some(info));
        }
    }

    /// Creates a slot's files, then replaces the head if this one is newer.
    pub(crate) fn create(&mut self, sealed: Sealed) {
        let Sealed { full, lite, recalled, .. } = sealed;
        let place = |it: &Head| (it.gen_no, it.slot);
        let head = head::build(&full.header, SlotNo(0), recalled);
        if self.head.as_ref().is_none_or(|it| place(it) < place(&head)) {
            self.head = Some(head);
        }
        for segment in [full, lite] {
            let header = &segment.header;
            let name = (header.gen_no, header.slot, header.tier);
            self.segments.entry(name).or_insert(segment);
        }
    }

    pub(crate) const fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Every item that lies here, as a broadcaster that lost `sealed` learns it.
    pub(crate) fn known(&self) -> Vec<Told> {
        let full = self.segments.iter().filter(|((.., tier), _)| *tier == Tier::Full);
        let told = |(&(gen_no, slot, _), segment): (&(Gen, SlotNo, Tier), &Segment)| {
            let items = segment.items.iter();
            let told = items.map(move |it| Told {
                id: it.item.id,
                lane: it.item.lane,
                fate: Fate::Sealed { gen_no, seq: it.seq, slot },
            });
            told.collect::<Vec<_>>()
        };
        full.flat_map(told).collect()
    }

    pub(crate) fn answer(&self, question: Question) -> Answer {
        let (gen_no, slot, tier) = match question {
            Question::Head => {
                return self.head.clone().map_or(Answer::Not(Miss::NotYet), Answer::Head);
            }
            Question::Poll { gen_no, slot, tier } | Question::Fetch { gen_no, slot, tier, .. } => {
                (gen_no, slot, tier)
            }
        };
        match self.segments.get(&(gen_no, slot, tier)) {
            Some(segment) => Answer::Segment(segment.clone()),
            None if self.head.as_ref().is_some_and(|it| it.gen_no > gen_no) => {
                Answer::Not(Miss::Gone)
            }
            None => Answer::Not(Miss::NotYet),
        }
    }
}
