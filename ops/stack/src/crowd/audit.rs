//! Who got what: every sealed item once, in order, at every viewer.

use std::collections::{BTreeMap, HashMap};

use proto::frame::Place;
use proto::id::ItemId;

/// What the viewers got, compared with what was sealed.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// Dense numbers for ids, so that a viewer's set is a bit each.
    numbers: HashMap<ItemId, usize>,
    sealed: BTreeMap<usize, Place>,
    viewers: Vec<Receipts>,
    /// Of pages that were turned.
    missing: u64,
    unexpected: u64,
}

#[derive(Clone, Debug, Default)]
struct Receipts {
    got: Vec<u64>,
    items: u64,
    /// On pages that were turned.
    items_before: u64,
    last: Option<Place>,
    repeats: u64,
    out_of_order: u64,
}

/// What is wrong, over all viewers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Findings {
    /// Items that a viewer got again.
    pub(super) repeats: u64,
    /// Items that a viewer got after one with a later place.
    pub(super) out_of_order: u64,
    /// Sealed items that a viewer never got, one count per item and viewer.
    pub(super) missing: u64,
    /// Items that a viewer got and nobody sealed.
    pub(super) unexpected: u64,
}

impl Audit {
    /// An audit of so many viewers.
    pub(super) fn new(viewers: usize) -> Self {
        Self { viewers: vec![Receipts::default(); viewers], ..Self::default() }
    }

    /// An item was given its place.
    pub(super) fn sealed(&mut self, id: ItemId, place: Place) {
        let number = self.number(id);
        self.sealed.entry(number).or_insert(place);
    }

    /// A viewer was shown an item.
    pub(super) fn shown(&mut self, viewer: usize, id: ItemId, place: Place) {
        let number = self.number(id);
        let receipts = &mut self.viewers[viewer];
        let (word, bit) = (number / 64, 1_u64 << (number % 64));
        if receipts.got.len() <= word {
            receipts.got.resize(word + 1, 0);
        }
        if receipts.got[word] & bit != 0 {
            receipts.repeats += 1;
            return;
        }
        receipts.got[word] |= bit;
        receipts.items += 1;
        if receipts.last.is_some_and(|last| place <= last) {
            receipts.out_of_order += 1;
        }
        receipts.last = receipts.last.max(Some(place));
    }

    /// Items that a viewer got, repeats not counted.
    pub(super) fn received(&self, viewer: usize) -> u64 {
        self.viewers[viewer].items_before + self.viewers[viewer].items
    }

    /// How many items were sealed.
    pub(super) fn sealed_items(&self) -> usize {
        self.sealed.len()
    }

    /// Compares the two sides.
    pub(super) fn findings(&self) -> Findings {
        let Self { missing, unexpected, .. } = *self;
        let mut findings = Findings { missing, unexpected, ..Findings::default() };
        for receipts in &self.viewers {
            findings.repeats += receipts.repeats;
            findings.out_of_order += receipts.out_of_order;
            let has = |number: &usize| {
                receipts.got.get(number / 64).is_some_and(|it| it & (1 << (number % 64)) != 0)
            };
            let expected = self.sealed.keys().filter(|&it| has(it)).count() as u64;
            findings.missing += self.sealed.len() as u64 - expected;
            findings.unexpected += receipts.items - expected;
        }
        findings
    }

    /// Keeps the findings and forgets the items. One of them that comes again is then one that
    /// nobody sealed, or out of order.
    pub(super) fn turn_page(&mut self) {
        Findings { missing: self.missing, unexpected: self.unexpected, .. } = self.findings();
        self.numbers.clear();
        self.sealed.clear();
        for receipts in &mut self.viewers {
            receipts.got.clear();
            receipts.items_before += std::mem::take(&mut receipts.items);
        }
    }

    fn number(&mut self, id: ItemId) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(id).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use proto::id::{Gen, Seq};

    use super::*;

    fn place(seq: u64) -> Place {
        Place { gen_no: Gen(1), seq: Seq(seq) }
    }

    fn run(shown: &[u64]) -> Findings {
        let mut audit = Audit::new(1);
        play(&mut audit, 1..=3, shown);
        audit.findings()
    }

    fn play(audit: &mut Audit, sealed: RangeInclusive<u64>, shown: &[u64]) {
        for seq in sealed {
            audit.sealed(ItemId(100 + seq), place(seq));
        }
        for &seq in shown {
            audit.shown(0, ItemId(100 + seq), place(seq));
        }
    }

    #[test]
    fn a_clean_run_has_no_findings() {
        assert_eq!(run(&[1, 2, 3]), Findings::default());
    }

    #[test]
    fn each_kind_of_spoil_is_found() {
        assert_eq!(run(&[1, 3]), Findings { missing: 1, ..Findings::default() });
        assert_eq!(run(&[1, 2, 2, 3]), Findings { repeats: 1, ..Findings::default() });
        assert_eq!(run(&[1, 3, 2]), Findings { out_of_order: 1, ..Findings::default() });
        assert_eq!(run(&[1, 2, 3, 4]), Findings { unexpected: 1, ..Findings::default() });
    }

    #[test]
    fn turned_pages_count_and_hold_nothing() {
        let mut audit = Audit::new(1);

        play(&mut audit, 1..=3, &[1, 3]);
        audit.turn_page();
        play(&mut audit, 4..=5, &[4, 5]);

        assert_eq!(audit.findings(), Findings { missing: 1, ..Findings::default() });
        assert_eq!((audit.received(0), audit.sealed_items()), (4, 2));
    }

    #[test]
    fn an_item_of_a_turned_page_that_comes_again_is_found() {
        let mut audit = Audit::new(1);

        play(&mut audit, 1..=3, &[1, 2, 3]);
        audit.turn_page();
        play(&mut audit, 4..=4, &[4, 3]);

        let found = Findings { unexpected: 1, out_of_order: 1, ..Findings::default() };
        assert_eq!(audit.findings(), found);
    }
}
