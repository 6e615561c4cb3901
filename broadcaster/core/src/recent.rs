//! Which items were here before: the bus delivers at least once, a viewer sees each item once.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::FixedState;
use proto::id::ItemId;
use proto::item::Lane;
use proto::time::Mono;
use proto::verdict::Fate;

/// A protected item's id is known for at least this long, unless [`PROTECTED_IDS_MAX`] newer ones
/// came. A journal gives up sooner.
pub const PROTECTED_KEEP: Duration = Duration::from_secs(600);
/// A comment's id is known for this long: longer than any replay of the bus.
pub const COMMENT_KEEP: Duration = Duration::from_secs(120);
/// Ids of protected items: 10 minutes of 100 a second, about 5 MB.
pub const PROTECTED_IDS_MAX: usize = 60_000;
/// Ids of comments: 40 s of 500 a second, about 2 MB. The bus replays a few seconds.
pub const COMMENT_IDS_MAX: usize = 20_000;

/// What is known of an item that was here before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Known {
    /// It waits in its lane.
    Waiting,
    /// It has its fate.
    Fated(Fate),
}

/// Recent ids and what became of them.
///
/// What is known stands in the order in which it came, and the table by id is small: it is looked
/// into three times for each item.
#[derive(Debug, Default)]
pub struct Recent {
    places: HashMap<ItemId, Place, FixedState>,
    protected: Order,
    comments: Order,
}

/// Where an id's entry is: its number in its order.
#[derive(Clone, Copy, Debug)]
enum Place {
    Protected(u32),
    Comment(u32),
}

/// Entries in the order in which they came.
#[derive(Debug, Default)]
struct Order {
    /// Number of the first one; numbers start again after 2³².
    first: u32,
    entries: VecDeque<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    id: ItemId,
    since: Mono,
    known: Known,
}

impl Recent {
    /// What is known of an id.
    #[must_use]
    pub fn find(&self, id: ItemId) -> Option<Known> {
        let (order, number) = match *self.places.get(&id)? {
            Place::Protected(number) => (&self.protected, number),
            Place::Comment(number) => (&self.comments, number),
        };
        order.entries.get(order.index(number)).map(|it| it.known)
    }

    /// Remembers a new item; what is known already stays, and is given.
    pub fn insert(&mut self, id: ItemId, lane: Lane, known: Known, now: Mono) -> Option<Known> {
        let Entry::Vacant(vacant) = self.places.entry(id) else {
            return self.find(id);
        };
        let entry = Seen { id, since: now, known };
        vacant.insert(if lane.is_protected() {
            Place::Protected(self.protected.push(entry))
        } else {
            Place::Comment(self.comments.push(entry))
        });
        self.forget(now);
        None
    }

    /// Writes down what became of a remembered item.
    pub fn settle(&mut self, id: ItemId, fate: Fate) {
        let (order, number) = match self.places.get(&id) {
            Some(&Place::Protected(number)) => (&mut self.protected, number),
            Some(&Place::Comment(number)) => (&mut self.comments, number),
            None => return,
        };
        let index = order.index(number);
        if let Some(entry) = order.entries.get_mut(index) {
            entry.known = Known::Fated(fate);
        }
    }

    /// Forgets the protected item that was remembered last: it was not taken after all.
    pub fn take_back(&mut self, id: ItemId) {
        if self.protected.entries.pop_back_if(|it| it.id == id).is_some() {
            self.places.remove(&id);
        }
    }

    /// Forgets what is old, and the oldest of what is too much. Items that still wait stay: their
    /// lanes bound them.
    fn forget(&mut self, now: Mono) {
        let Self { places, protected, comments } = self;
        let orders = [
            (protected, PROTECTED_KEEP, PROTECTED_IDS_MAX),
            (comments, COMMENT_KEEP, COMMENT_IDS_MAX),
        ];
        for (order, keep, ids_max) in orders {
            while let Some(first) = order.entries.front() {
                let is_old = now.since(first.since) >= keep || order.entries.len() > ids_max;
                if !is_old || first.known == Known::Waiting {
                    break;
                }
                places.remove(&first.id);
                order.entries.pop_front();
                order.first = order.first.wrapping_add(1);
            }
        }
    }
}

impl Order {
    /// Adds an entry; gives its number.
    fn push(&mut self, entry: Seen) -> u32 {
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push_back(entry);
        self.first.wrapping_add(count)
    }

    const fn index(&self, number: u32) -> usize {
        number.wrapping_sub(self.first) as usize
    }
}

#[cfg(test)]
mod tests {
    use proto::verdict::Reason;

    use super::*;

    const SHED: Fate = Fate::Shed { reason: Reason::OverBudget };

    #[test]
    fn a_gift_is_known_for_ten_minutes_and_a_comment_for_two() {
        let mut recent = Recent::default();
        recent.insert(ItemId(1), Lane::HighGift, Known::Fated(SHED), Mono(0));
        recent.insert(ItemId(2), Lane::Comment, Known::Fated(SHED), Mono(0));

        recent.insert(ItemId(3), Lane::Comment, Known::Fated(SHED), Mono(120_000));
        assert_eq!(recent.find(ItemId(1)), Some(Known::Fated(SHED)));
        assert_eq!(recent.find(ItemId(2)), None);

        recent.insert(ItemId(4), Lane::Comment, Known::Fated(SHED), Mono(600_000));
        assert_eq!(recent.find(ItemId(1)), None);
    }

    #[test]
    fn what_became_of_an_item_is_found_again_until_it_is_taken_back() {
        let mut recent = Recent::default();

        assert_eq!(recent.insert(ItemId(1), Lane::HighGift, Known::Waiting, Mono(0)), None);
        recent.settle(ItemId(1), SHED);
        recent.settle(ItemId(2), SHED);
        let again = recent.insert(ItemId(1), Lane::HighGift, Known::Waiting, Mono(0));
        assert_eq!(again, Some(Known::Fated(SHED)));

        recent.insert(ItemId(2), Lane::HighGift, Known::Waiting, Mono(0));
        recent.take_back(ItemId(2));
        recent.insert(ItemId(3), Lane::HighGift, Known::Waiting, Mono(0));
        recent.settle(ItemId(3), SHED);
        assert_eq!(recent.find(ItemId(1)), Some(Known::Fated(SHED)));
        assert_eq!(recent.find(ItemId(2)), None);
        assert_eq!(recent.find(ItemId(3)), Some(Known::Fated(SHED)));
    }

    #[test]
    fn ids_are_bounded() {
        let mut recent = Recent::default();

        for id in 0..=COMMENT_IDS_MAX as u64 {
            recent.insert(ItemId(id), Lane::Comment, Known::Fated(SHED), Mono(0));
        }

        assert_eq!(recent.find(ItemId(0)), None);
        assert_eq!(recent.find(ItemId(1)), Some(Known::Fated(SHED)));
    }
}
