//! Which records of a partition are done, so that `accepted` is committed after the seal.

use std::collections::BTreeMap;

use bus::Offset;
use proto::id::ItemId;

/// The records taken of one partition that have open items.
#[derive(Debug)]
pub(crate) struct Ledger {
    open: BTreeMap<Offset, usize>,
    record_of: BTreeMap<ItemId, Offset>,
    next: Offset,
    committed: Offset,
}

impl Ledger {
    /// Nothing is open; `next` is the first record that will come.
    pub(crate) const fn new(next: Offset) -> Self {
        Self { open: BTreeMap::new(), record_of: BTreeMap::new(), next, committed: next }
    }

    /// Takes a record with these items. An item that is open from an earlier record is done there.
    pub(crate) fn take(&mut self, offset: Offset, ids: impl Iterator<Item = ItemId>) {
        let mut items = 0;
        for id in ids {
            if let std::collections::btree_map::Entry::Vacant(entry) = self.record_of.entry(id) {
                entry.insert(offset);
                items += 1;
            }
        }
        if items > 0 {
            self.open.insert(offset, items);
        }
        self.next = Offset(offset.0 + 1);
    }

    /// An item has its fate, and it is published.
    pub(crate) fn done(&mut self, id: ItemId) {
        let Some(offset) = self.record_of.remove(&id) else {
            return;
        };
        if let Some(items) = self.open.get_mut(&offset) {
            *items -= 1;
            if *items == 0 {
                self.open.remove(&offset);
            }
        }
    }

    /// The offset to commit, if it moved since it was last committed.
    pub(crate) fn due(&self) -> Option<Offset> {
        let next = self.open.first_key_value().map_or(self.next, |(&first, _)| first);
        (next > self.committed).then_some(next)
    }

    /// The offset was committed.
    pub(crate) const fn commit(&mut self, next: Offset) {
        self.committed = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_committed_when_it_and_all_before_it_are_done() {
        let mut ledger = Ledger::new(Offset(10));
        ledger.take(Offset(10), [ItemId(1), ItemId(2)].into_iter());
        ledger.take(Offset(11), [ItemId(3)].into_iter());
        ledger.take(Offset(12), std::iter::empty());
        assert_eq!(ledger.due(), None);

        ledger.done(ItemId(3));
        ledger.done(ItemId(1));
        assert_eq!(ledger.due(), None);

        ledger.done(ItemId(2));
        assert_eq!(ledger.due(), Some(Offset(13)));
        ledger.commit(Offset(13));
        assert_eq!(ledger.due(), None);
    }

    #[test]
    fn an_item_that_comes_twice_holds_back_its_first_record() {
        let mut ledger = Ledger::new(Offset(0));
        ledger.take(Offset(0), [ItemId(1)].into_iter());
        ledger.take(Offset(1), [ItemId(1), ItemId(2)].into_iter());

        ledger.done(ItemId(2));
        assert_eq!(ledger.due(), None);

        ledger.done(ItemId(1));
        assert_eq!(ledger.due(), Some(Offset(2)));
    }
}
