//! The ids that were shown lately: bounded in number and in age.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use proto::id::ItemId;
use proto::time::Mono;

/// The ids that were shown lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    ids: BTreeSet<ItemId>,
    order: VecDeque<(Mono, ItemId)>,
}

impl Seen {
    /// Remembers `id`; false if it is known already.
    pub(super) fn insert(
        &mut self,
        id: ItemId,
        now: Mono,
        ids_max: usize,
        age_max: Duration,
    ) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back((now, id));
        while self.order.len() > ids_max
            || self.order.front().is_some_and(|&(at, _)| now.since(at) > age_max)
        {
            if let Some((_, oldest)) = self.order.pop_front() {
                self.ids.remove(&oldest);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_number_and_age() {
        let mut seen = Seen::default();

        for id in 0..10 {
            assert!(seen.insert(ItemId(id), Mono(id), 3, Duration::from_millis(100)));
        }
        assert!(!seen.insert(ItemId(9), Mono(10), 3, Duration::from_millis(100)));
        assert_eq!(seen.order.len(), 3);
        assert_eq!(seen.ids.first(), Some(&ItemId(7)));

        assert!(seen.insert(ItemId(10), Mono(200), 3, Duration::from_millis(100)));

        assert_eq!(seen.order.len(), 1);
    }
}
