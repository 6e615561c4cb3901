//! Which items go into a flush: four lanes, one budget, bounded waiting.
//!
//! Items of a lane leave in the order they came, so every sender's order holds within a lane.
//! Protected lanes are never shed: an item that finds its lane full is refused instead, stays open
//! in the journal of whoever sent it, and comes again. Where a room wants it, a gift joins an equal
//! one of its sender that waits, and a comment an equal one of anybody.

mod fair;
mod joined;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use proto::id::ItemId;
use proto::item::{Item, Lane};
use proto::time::Mono;
use proto::verdict::{Fate, Reason};

use crate::budget::{Budget, Purse, Span};
use crate::lane::{Shares, index};
use crate::scheduler::fair::Senders;
use crate::scheduler::joined::Joined;

/// Comments that wait, whatever the budget.
pub const COMMENTS_WAITING_MAX: usize = 100_000;

/// What a scheduler keeps to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// What one second may carry.
    pub budget: Budget,
    /// What of it is guaranteed to whom.
    pub shares: Shares,
    /// A comment that waited this long is shed.
    pub wait_ms_max: u32,
    /// Items waiting in one protected lane.
    pub protected_waiting_max: usize,
    /// Equal gifts of one sender that come within so long become one with their sum; low gifts
    /// wait for it. Zero: every gift is shown by itself.
    pub combo: Duration,
    /// Plain comments of the same text that wait at the same time become one with their count.
    pub merges_equal: bool,
}

impl Limits {
    /// Comments that may wait: no more than the budget can show before they are too old, so under
    /// a flood the ones shown are fresh.
    fn comments_waiting_max(&self) -> usize {
        let shown = u64::from(self.budget.items_max) * u64::from(self.wait_ms_max) / 1000;
        usize::try_from(shown).unwrap_or(COMMENTS_WAITING_MAX).clamp(1, COMMENTS_WAITING_MAX)
    }
}

/// An item that is in no flush.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settled {
    /// Which.
    pub id: ItemId,
    /// From which lane.
    pub lane: Lane,
    /// What became of it.
    pub fate: Fate,
}

/// The lane of a protected item is full; the item was not taken and is not shed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the lane is full")]
pub struct Full;

/// Four lanes and what they may spend.
#[derive(Debug)]
pub struct Scheduler {
    limits: Limits,
    purse: Purse,
    lanes: [VecDeque<Waiting>; 4],
    /// Of the comments that wait.
    senders: Senders,
    settled: VecDeque<Settled>,
}

#[derive(Debug)]
struct Waiting {
    item: Item,
    since: Mono,
    /// Those that it stands for beside itself.
    joined: Vec<Joined>,
}

impl Scheduler {
    /// An empty scheduler.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            purse: Purse::new(limits.budget, limits.shares),
            lanes: Default::default(),
            senders: Senders::default(),
            settled: VecDeque::new(),
        }
    }

    /// Keeps to other limits from the next flush on.
    pub const fn set(&mut self, limits: Limits) {
        self.limits = limits;
        self.purse.set(limits.budget, limits.shares);
    }

    /// Puts an item at the end of its lane. A full comment lane sheds the oldest of whoever has most
    /// in it.
    pub fn push(&mut self, item: Item, now: Mono) -> Result<(), Full> {
        let lane = item.lane;
        let queue = &mut self.lanes[index(lane)];
        if joined::join(queue, &item, &self.limits, now) {
            return Ok(());
        }
        if lane.is_protected() {
            if queue.len() >= self.limits.protected_waiting_max {
                return Err(Full);
            }
        } else {
            if queue.len() >= self.limits.comments_waiting_max()
                && let Some((at, reason)) = self.senders.victim(queue, item.sender)
                && let Some(victim) = queue.remove(at)
            {
                self.senders.go(victim.item.sender);
                self.settled.extend(victim.shed(reason));
            }
            self.senders.come(item.sender);
        }
        queue.push_back(Waiting { item, since: now, joined: Vec::new() });
        Ok(())
    }

    /// Takes the items of one flush, first lane first, and sheds what waited too long.
    ///
    /// Each lane first gets its guaranteed share, then the rest goes round in lane order. `caps`
    /// bounds the flush besides the budget.
    pub fn take(&mut self, span: Span, caps: Budget, now: Mono) -> Vec<Item> {
        self.purse.grant(span);
        let mut room = caps;
        let mut taken: [Vec<Item>; 4] = Default::default();
        for guaranteed in [true, false] {
            for lane in Lane::ALL {
                self.take_lane(lane, guaranteed, now, &mut room, &mut taken[index(lane)]);
            }
        }
        self.expire(Reason::OverBudget, now);
        self.purse.close(Lane::ALL.map(|lane| self.waiting(lane) > 0));
        let [mut items, rest @ ..] = taken;
        for mut lane in rest {
            // Mostly one lane has all of them.
            if items.is_empty() { items = lane } else { items.append(&mut lane) }
        }
        items
    }

    /// Sheds comments that waited too long, and says why they had to.
    pub fn expire(&mut self, reason: Reason, now: Mono) {
        let wait = Duration::from_millis(self.limits.wait_ms_max.into());
        let comments = &mut self.lanes[index(Lane::Comment)];
        while let Some(oldest) = comments.pop_front_if(|it| now.since(it.since) >= wait) {
            self.senders.go(oldest.item.sender);
            self.settled.extend(oldest.shed(reason));
        }
    }

    /// Sheds every waiting comment: the room closes.
    pub fn shed_comments(&mut self, reason: Reason) {
        self.senders.clear();
        for waiting in self.lanes[index(Lane::Comment)].drain(..) {
            self.settled.extend(waiting.shed(reason));
        }
    }

    /// Gives up a waiting item, of whichever lane; whether there was one. Of items that became one,
    /// only this one goes.
    pub fn recall(&mut self, id: ItemId) -> bool {
        let fate = Fate::Shed { reason: Reason::Recalled };
        for queue in &mut self.lanes {
            let found = queue.iter_mut().enumerate().find(|it| it.1.holds(id));
            let Some((at, waiting)) = found else { continue };
            let lane = waiting.item.lane;
            self.settled.push_back(Settled { id, lane, fate });
            if waiting.item.id != id {
                joined::leave(waiting, id);
                return true;
            }
            if !lane.is_protected() {
                self.senders.go(waiting.item.sender);
            }
            if !joined::go_on(waiting) {
                queue.remove(at);
            } else if !lane.is_protected() {
                self.senders.come(waiting.item.sender);
            }
            return true;
        }
        false
    }

    /// The next item in no flush that nobody was told of.
    pub fn poll(&mut self) -> Option<Settled> {
        self.settled.pop_front()
    }

    /// When the oldest comment will be shed, unless it is taken before.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let oldest = self.lanes[index(Lane::Comment)].front()?;
        Some(oldest.since + Duration::from_millis(self.limits.wait_ms_max.into()))
    }

    /// Items waiting in a lane.
    #[must_use]
    pub fn waiting(&self, lane: Lane) -> usize {
        self.lanes[index(lane)].len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(VecDeque::is_empty)
    }

    fn take_lane(
        &mut self,
        lane: Lane,
        guaranteed: bool,
        now: Mono,
        room: &mut Budget,
        taken: &mut Vec<Item>,
    ) {
        let others = Lane::ALL.into_iter().filter(|&it| it != lane && self.waiting(it) > 0);
        // The others' parts do not change while only this lane spends.
        let mut left = if guaranteed { self.purse.own(lane) } else { self.purse.spare(others) };
        let queue = &mut self.lanes[index(lane)];
        let held = if lane == Lane::LowGift { self.limits.combo } else { Duration::ZERO };
        while let Some(first) = queue.front().filter(|it| now.since(it.since) >= held) {
            let bytes = text_bytes(&first.item);
            let price = self.purse.price(lane, bytes);
            let fits = left.items_max > 0 && price <= left.bytes_max;
            if !fits || room.items_max == 0 || bytes > room.bytes_max {
                return;
            }
            self.purse.spend(lane, price);
            left.items_max -= 1;
            left.bytes_max -= price;
            room.items_max -= 1;
            room.bytes_max -= bytes;
            let Some(Waiting { item, joined, .. }) = queue.pop_front() else {
                return;
            };
            if !lane.is_protected() {
                self.senders.go(item.sender);
            }
            let fate = Fate::Merged { into: item.id };
            self.settled.extend(joined.iter().map(|it| Settled { id: it.id, lane, fate }));
            taken.push(item);
        }
    }
}

impl Waiting {
    /// Whether it stands for this item.
    fn holds(&self, id: ItemId) -> bool {
        self.item.id == id || self.joined.iter().any(|it| it.id == id)
    }

    /// What is told of all that it stands for when it is shed.
    fn shed(&self, reason: Reason) -> impl Iterator<Item = Settled> {
        let (lane, fate) = (self.item.lane, Fate::Shed { reason });
        let ids = std::iter::once(self.item.id).chain(self.joined.iter().map(|it| it.id));
        ids.map(move |id| Settled { id, lane, fate })
    }
}

/// What an item costs in bytes: its text.
pub(crate) fn text_bytes(item: &Item) -> u32 {
    item.body.text().map_or(0, |it| u32::try_from(it.len()).unwrap_or(u32::MAX))
}
