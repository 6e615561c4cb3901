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
#[derive(Debug, Default)]
pub struct Recent {
    ids: HashMap<ItemId, Known, FixedState>,
    protected: VecDeque<(ItemId, Mono)>,
    comments: VecDeque<(ItemId, Mono)>,
}

impl Recent {
    /// What is known of an id.
    #[must_use]
    pub fn find(&self, id: ItemId) -> Option<Known> {
        self.ids.get(&id).copied()
    }

    /// Remembers a new item; what is known already stays.
    pub fn insert(&mut self, id: ItemId, lane: Lane, known: Known, now: Mono) {
        let Entry::Vacant(entry) = self.ids.entry(id) else {
            return;
        };
        entry.insert(known);
        if lane.is_protected() {
            self.protected.push_back((id, now));
        } else {
            self.comments.push_back((id, now));
        }
        self.forget(now);
    }

    /// Writes down what became of a remembered item.
    pub fn settle(&mut self, id: ItemId, fate: Fate) {
        if let Some(known) = self.ids.get_mut(&id) {
            *known = Known::Fated(fate);
        }
    }

    /// Forgets what is old, and the oldest of what is too much. Items that still wait stay: their
    /// lanes bound them.
    fn forget(&mut self, now: Mono) {
        let kinds = [
            (&mut self.protected, PROTECTED_KEEP, PROTECTED_IDS_MAX),
            (&mut self.comments, COMMENT_KEEP, COMMENT_IDS_MAX),
        ];
        for (queue, keep, ids_max) in kinds {
            while let Some(&(id, since)) = queue.front() {
                let is_old = now.since(since) >= keep || queue.len() > ids_max;
                if !is_old {
                    break;
                }
                if let Entry::Occupied(entry) = self.ids.entry(id) {
                    if *entry.get() == Known::Waiting {
                        break;
                    }
                    entry.remove();
                }
                queue.pop_front();
            }
        }
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
    fn ids_are_bounded() {
        let mut recent = Recent::default();

        for id in 0..=COMMENT_IDS_MAX as u64 {
            recent.insert(ItemId(id), Lane::Comment, Known::Fated(SHED), Mono(0));
        }

        assert_eq!(recent.find(ItemId(0)), None);
        assert_eq!(recent.find(ItemId(1)), Some(Known::Fated(SHED)));
    }
}
