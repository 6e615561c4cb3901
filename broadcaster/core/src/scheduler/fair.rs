//! Which comment gives way when too many wait: the oldest of whoever holds more places than are
//! due to each sender, so that one loud viewer does not push out a hundred quiet ones.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use proto::id::SenderRef;
use proto::item::{Item, Role};
use proto::verdict::Reason;

use super::Waiting;

/// Waiting comments that are looked at for each that gives way, the oldest first: more than usually
/// wait. Behind them the oldest of all goes.
const LOOKED_AT_MAX: usize = 512;

/// How many comments of each sender wait.
#[derive(Debug, Default)]
pub(super) struct Senders {
    waiting: HashMap<SenderRef, usize, FixedState>,
    /// How many senders have so many waiting, by that number; the last one is not 0.
    levels: Vec<usize>,
}

impl Senders {
    /// A comment of this sender waits.
    pub(super) fn come(&mut self, sender: SenderRef) {
        let waiting = self.waiting.entry(sender).or_default();
        *waiting += 1;
        let now = *waiting;
        if self.levels.len() <= now {
            self.levels.resize(now + 1, 0);
        }
        self.levels[now] += 1;
        self.levels[now - 1] = self.levels[now - 1].saturating_sub(1);
    }

    /// One less does.
    pub(super) fn go(&mut self, sender: SenderRef) {
        let Some(waiting) = self.waiting.get_mut(&sender) else {
            return;
        };
        let before = *waiting;
        *waiting -= 1;
        if *waiting == 0 {
            self.waiting.remove(&sender);
        } else {
            self.levels[before - 1] += 1;
        }
        self.levels[before] -= 1;
        while self.levels.pop_if(|it| *it == 0).is_some() {}
    }

    /// None does.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.levels.clear();
    }

    /// The comment that gives way to a new one of `sender`, by its place in the queue, and why.
    pub(super) fn victim(
        &self,
        queue: &VecDeque<Waiting>,
        sender: SenderRef,
    ) -> Option<(usize, Reason)> {
        let own = self.of(sender);
        let senders = self.waiting.len() + usize::from(own == 0);
        let due = (queue.len() / senders.max(1)).max(1);
        let first = |gives_way: &dyn Fn(&Item) -> bool| {
            let mut looked_at = queue.iter().take(LOOKED_AT_MAX);
            looked_at.position(|it| gives_way(&it.item) && !is_spared(it))
        };
        let found = if own >= due {
            first(&|it| it.sender == sender)
        } else if self.levels.len() > due + 1 {
            first(&|it| self.of(it.sender) > due)
        } else {
            None
        };
        if let Some(at) = found {
            let is_loud = self.of(queue[at].item.sender) > due;
            return Some((at, if is_loud { Reason::Unfair } else { Reason::OverBudget }));
        }
        let oldest = first(&|_| true).unwrap_or(0);
        (!queue.is_empty()).then_some((oldest, Reason::OverBudget))
    }

    /// How many of this sender's comments wait.
    pub(super) fn of(&self, sender: SenderRef) -> usize {
        self.waiting.get(&sender).copied().unwrap_or_default()
    }
}

/// What gives way last: the words of those who keep order or paid for being seen, and what several
/// said.
const fn is_spared(waiting: &Waiting) -> bool {
    match waiting.item.role {
        Role::Guest | Role::Viewer => !waiting.joined.is_empty(),
        Role::Vip | Role::Moderator | Role::Host => true,
    }
}
