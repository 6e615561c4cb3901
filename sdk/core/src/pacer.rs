//! Spreads what arrived together over the time until the next arrival.
//!
//! A segment brings a second's items at once; shown at once they would come in thuds. What could
//! not be shown in its time, because a tab was hidden or a device slept, is dropped and counted:
//! coming back must not show minutes of comments in one frame. The viewer's own comments do not
//! wait.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use proto::id::ItemId;
use proto::time::Mono;

use crate::merge::Shown;

/// Items that wait at once; four full segments.
pub const WAITING_MAX: usize = 4_096;
/// Own comments remembered until they arrive.
pub const OWN_MAX: usize = 64;
/// An item this late is not shown any more.
pub const LATE_MAX: Duration = Duration::from_secs(2);

/// What the pacer is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Items in their order, to be spread over `over` from now.
    Items {
        /// Which.
        items: Vec<Shown>,
        /// Interval of the segments; zero for pushed items, which are shown as they come.
        over: Duration,
    },
    /// The viewer's own comment was admitted under this id.
    Own(ItemId),
    /// An item was recalled.
    Recall(ItemId),
}

/// What the pacer wants.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// Put it on the screen now.
    Display(Shown),
    /// That many were not shown, because their time was over or too many waited.
    Dropped {
        /// How many.
        items: usize,
    },
}

/// Decides when each item goes on the screen.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    waiting: VecDeque<(Mono, Shown)>,
    own: BTreeSet<ItemId>,
    outputs: VecDeque<Output>,
}

impl Pacer {
    /// Takes in what happened at `now`.
    pub fn handle(&mut self, input: Input, now: Mono) {
        match input {
            Input::Items { items, over } => self.spread(items, over, now),
            Input::Own(id) => self.own(id),
            Input::Recall(id) => self.waiting.retain(|(_, it)| it.item.id != id),
        }
        self.tick(now);
    }

    /// Displays or drops what is due.
    pub fn tick(&mut self, now: Mono) {
        let mut dropped = self.waiting.len().saturating_sub(WAITING_MAX);
        self.waiting.drain(..dropped);
        while let Some((due, item)) = self.waiting.pop_front_if(|(due, _)| *due <= now) {
            if now.since(due) > LATE_MAX {
                dropped += 1;
            } else {
                self.outputs.push_back(Output::Display(item));
            }
        }
        if dropped > 0 {
            self.outputs.push_back(Output::Dropped { items: dropped });
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the next item is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        self.waiting.front().map(|&(due, _)| due)
    }

    fn spread(&mut self, items: Vec<Shown>, over: Duration, now: Mono) {
        let count = u32::try_from(items.len()).unwrap_or(u32::MAX).max(1);
        let last_due = self.waiting.back().map_or(now, |&(due, _)| due);
        let mut due = last_due.max(now);
        let mut offset = Duration::ZERO;
        for item in items {
            if self.own.remove(&item.item.id) {
                self.outputs.push_back(Output::Display(item));
            } else {
                due = due.max(now + offset);
                self.waiting.push_back((due, item));
            }
            offset += over / count;
        }
    }

    /// The item may be waiting already: the verdict and the segment race.
    fn own(&mut self, id: ItemId) {
        if let Some(at) = self.waiting.iter().position(|(_, it)| it.item.id == id) {
            self.outputs.extend(self.waiting.remove(at).map(|(_, it)| Output::Display(it)));
        } else {
            self.own.insert(id);
            if self.own.len() > OWN_MAX {
                self.own.pop_first();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::frame::Place;
    use proto::id::{Gen, SenderRef, Seq};
    use proto::item::{Body, Item, Lane, Role};
    use proto::time::Wall;

    use super::*;
    use crate::merge::Via;

    #[test]
    fn a_segment_is_spread_over_its_interval() {
        let mut pacer = Pacer::default();

        pacer.handle(items(1..=4, 1_000), Mono(0));

        assert_eq!(displayed(&mut pacer), [1]);
        assert_eq!(pacer.deadline(), Some(Mono(250)));
        pacer.tick(Mono(500));
        assert_eq!(displayed(&mut pacer), [2, 3]);
        pacer.tick(Mono(749));
        assert!(displayed(&mut pacer).is_empty());
        pacer.tick(Mono(750));
        assert_eq!(displayed(&mut pacer), [4]);
        assert_eq!(pacer.deadline(), None);
    }

    #[test]
    fn an_early_segment_does_not_overtake_the_last_one() {
        let mut pacer = Pacer::default();

        pacer.handle(items(1..=2, 1_000), Mono(0));
        pacer.handle(items(3..=4, 1_000), Mono(100));
        pacer.tick(Mono(2_000));

        assert_eq!(displayed(&mut pacer), [1, 2, 3, 4]);
    }

    #[test]
    fn what_waited_through_a_hidden_tab_is_dropped() {
        let mut pacer = Pacer::default();
        pacer.handle(items(1..=4, 1_000), Mono(0));

        pacer.tick(Mono(2_600));

        let outputs: Vec<_> = std::iter::from_fn(|| pacer.poll()).collect();
        let shown = outputs.iter().filter(|it| matches!(it, Output::Display(_))).count();
        assert_eq!(shown, 2, "the first in time, the last less than two seconds late");
        assert_eq!(outputs.last(), Some(&Output::Dropped { items: 2 }));
    }

    #[test]
    fn the_own_comment_does_not_wait_however_the_race_ends() {
        let mut pacer = Pacer::default();

        pacer.handle(Input::Own(ItemId(3)), Mono(0));
        pacer.handle(items(1..=4, 1_000), Mono(0));
        let known_before = displayed(&mut pacer);
        pacer.handle(Input::Own(ItemId(4)), Mono(1));
        let known_after = displayed(&mut pacer);

        assert_eq!(known_before, [3, 1]);
        assert_eq!(known_after, [4]);
    }

    #[test]
    fn a_flood_is_bounded_and_a_recalled_item_is_not_shown() {
        let mut pacer = Pacer::default();

        pacer.handle(items(1..=10_000, 1_000_000), Mono(0));
        pacer.handle(Input::Recall(ItemId(10_000)), Mono(0));

        assert!(pacer.waiting.len() < WAITING_MAX);
        assert!(pacer.waiting.iter().all(|(_, it)| it.item.id != ItemId(10_000)));
    }

    fn items(ids: std::ops::RangeInclusive<u64>, over_ms: u64) -> Input {
        let shown = |id| Shown {
            place: Place { gen_no: Gen(1), seq: Seq(id) },
            item: Item {
                id: ItemId(id),
                lane: Lane::Comment,
                sender: SenderRef(0),
                role: Role::Viewer,
                at: Wall(0),
                body: Body::Entry,
            },
            via: Via::Segments,
            received: Mono(0),
        };
        Input::Items { items: ids.map(shown).collect(), over: Duration::from_millis(over_ms) }
    }

    fn displayed(pacer: &mut Pacer) -> Vec<u64> {
        let mut ids = Vec::new();
        while let Some(output) = pacer.poll() {
            match output {
                Output::Display(shown) => ids.push(shown.item.id.0),
                Output::Dropped { .. } => {}
            }
        }
        ids
    }
}
