//! What one second may spend, and how a flush learns its part of it.
//!
//! Seconds are whole seconds of the room's time. A flush may spend what the second has granted so
//! far and nobody has spent: unused parts roll over within the second and end with it. Grants are
//! rounded down from the second's start, so the parts of a second add up to exactly its budget.
//! What rounding takes from a lane that waits, the lane has more of in the next second, so that
//! shares hold over any time.

use proto::item::Lane;

use crate::lane::{Shares, index};

/// Items and bytes of text that one second may carry. Both bounds hold at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    /// Items a second.
    pub items_max: u32,
    /// Bytes of text a second.
    pub bytes_max: u32,
}

impl Budget {
    /// What of a second's budget is granted `elapsed_ms` after the second began.
    fn granted(self, elapsed_ms: u32) -> Self {
        let part = |max: u32| {
            let part = u64::from(max) * u64::from(elapsed_ms.min(1000)) / 1000;
            u32::try_from(part).unwrap_or(max)
        };
        Self { items_max: part(self.items_max), bytes_max: part(self.bytes_max) }
    }

    /// A lane's guaranteed part.
    fn share(self, shares: Shares, lane: Lane) -> Self {
        Self {
            items_max: shares.of(lane, self.items_max),
            bytes_max: shares.of(lane, self.bytes_max),
        }
    }

    pub(crate) fn minus(self, spent: Self) -> Self {
        Self {
            items_max: self.items_max.saturating_sub(spent.items_max),
            bytes_max: self.bytes_max.saturating_sub(spent.bytes_max),
        }
    }

    /// The smaller of each bound.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        Self {
            items_max: self.items_max.min(other.items_max),
            bytes_max: self.bytes_max.min(other.bytes_max),
        }
    }
}

/// Where in its second a flush stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// Which second.
    pub second: u64,
    /// How much of the second has passed, 1 to 1000; 1000 for its last flush.
    pub elapsed_ms: u32,
}

/// The running second: what was granted and what was spent.
#[derive(Debug)]
pub(crate) struct Purse {
    budget: Budget,
    shares: Shares,
    second: u64,
    granted: Budget,
    spent: Budget,
    spent_by_lane: [Budget; 4],
    /// What lanes are owed from the second before, in hundredths of an item.
    carried: [u64; 4],
    /// Which lanes still waited at the end of the last flush.
    waited: [bool; 4],
}

/// Most that a lane is owed: what rounding can take from it for the three others in a second.
const CARRIED_MAX: u64 = 300;

const NOTHING: Budget = Budget { items_max: 0, bytes_max: 0 };

impl Purse {
    pub(crate) const fn new(budget: Budget, shares: Shares) -> Self {
        Self {
            budget,
            shares,
            second: 0,
            granted: NOTHING,
            spent: NOTHING,
            spent_by_lane: [NOTHING; 4],
            carried: [0; 4],
            waited: [false; 4],
        }
    }

    /// Changes the budget from the next grant on.
    pub(crate) const fn set(&mut self, budget: Budget, shares: Shares) {
        self.budget = budget;
        self.shares = shares;
    }

    /// Opens the purse for a flush.
    pub(crate) fn grant(&mut self, span: Span) {
        if span.second != self.second {
            self.carry(span.second);
            self.second = span.second;
            self.spent = NOTHING;
            self.spent_by_lane = [NOTHING; 4];
        }
        self.granted = self.budget.granted(span.elapsed_ms);
    }

    /// A flush is over; these lanes still wait.
    pub(crate) const fn close(&mut self, waiting: [bool; 4]) {
        self.waited = waiting;
    }

    /// Takes over what lanes that wait are owed. Lanes that have nothing to show are owed nothing.
    fn carry(&mut self, second: u64) {
        for lane in Lane::ALL {
            let at = index(lane);
            let spent = u64::from(self.spent_by_lane[at].items_max) * 100;
            let owed = self.due(lane).saturating_sub(spent).min(CARRIED_MAX);
            let is_waiting = self.waited[at] && second == self.second + 1;
            self.carried[at] = if is_waiting { owed } else { 0 };
        }
    }

    /// What a lane has to get of what the second has granted so far, in hundredths of an item.
    fn due(&self, lane: Lane) -> u64 {
        let share = u64::from(self.granted.items_max) * u64::from(self.shares.percent(lane));
        share + self.carried[index(lane)]
    }

    /// What may still be spent in this flush.
    pub(crate) fn left(&self) -> Budget {
        self.granted.minus(self.spent)
    }

    /// What is left of a lane's own part, if others did not use it while the lane was empty.
    pub(crate) fn own(&self, lane: Lane) -> Budget {
        let share = self.granted.share(self.shares, lane);
        let items_max = u32::try_from(self.due(lane) / 100).unwrap_or(u32::MAX);
        let own = Budget { items_max, ..share }.minus(self.spent_by_lane[index(lane)]);
        own.at_most(self.left())
    }

    /// What is left when the lanes that still wait keep their own parts: an item that is too large
    /// for a flush then finds enough by the end of its second.
    pub(crate) fn spare(&self, waiting: impl Iterator<Item = Lane>) -> Budget {
        waiting.fold(self.left(), |left, lane| left.minus(self.own(lane)))
    }

    /// What an item with `bytes` of text costs its lane.
    ///
    /// At most the lane's own second: a text longer than that would otherwise wait for ever.
    pub(crate) fn price(&self, lane: Lane, bytes: u32) -> u32 {
        match self.shares.of(lane, self.budget.bytes_max) {
            0 => bytes.min(self.budget.bytes_max),
            own => bytes.min(own),
        }
    }

    /// Pays for one item.
    pub(crate) const fn spend(&mut self, lane: Lane, price: u32) {
        self.spent.items_max += 1;
        self.spent.bytes_max += price;
        self.spent_by_lane[index(lane)].items_max += 1;
        self.spent_by_lane[index(lane)].bytes_max += price;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_second_add_up_to_its_budget() {
        for items_max in [0, 1, 3, 7, 50, 53, 1000] {
            let budget = Budget { items_max, bytes_max: 16_384 };
            let mut purse = Purse::new(budget, Shares::default());
            let mut items = 0;
            for elapsed_ms in [200, 400, 600, 800, 1000] {
                purse.grant(Span { second: 1, elapsed_ms });
                while purse.left().items_max > 0 {
                    purse.spend(Lane::Comment, 0);
                    items += 1;
                }
                assert!(items <= items_max * elapsed_ms / 1000);
            }

            assert_eq!(items, items_max);
        }
    }

    #[test]
    fn what_a_second_left_ends_with_it() {
        let budget = Budget { items_max: 50, bytes_max: 1000 };
        let mut purse = Purse::new(budget, Shares::default());

        purse.grant(Span { second: 1, elapsed_ms: 1000 });
        assert_eq!(purse.left().items_max, 50);

        purse.grant(Span { second: 2, elapsed_ms: 200 });
        assert_eq!(purse.left().items_max, 10);
    }

    #[test]
    fn a_text_longer_than_a_lanes_second_costs_that_second() {
        let budget = Budget { items_max: 50, bytes_max: 1000 };
        let purse = Purse::new(budget, Shares::default());

        assert_eq!(purse.price(Lane::Comment, 399), 399);
        assert_eq!(purse.price(Lane::Comment, 2000), 400);
    }
}
