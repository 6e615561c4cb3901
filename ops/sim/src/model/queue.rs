//! Leaves that wait to be told, pictured simply.

use std::collections::{BTreeSet, VecDeque};

use proto::id::SessionId;

use super::subject::LEAVES_MAX;

type Seat = (SessionId, u8);

/// The picture of the departure queue.
#[derive(Default)]
pub(super) struct Queue {
    /// Oldest first, and whether the leave still counts.
    leaves: VecDeque<(Seat, bool)>,
    /// Leaves that nobody will hear of.
    pub(super) untold: BTreeSet<Seat>,
}

impl Queue {
    /// A session left a room.
    pub(super) fn push(&mut self, seat: Seat) {
        if self.leaves.len() < LEAVES_MAX {
            self.leaves.push_back((seat, true));
        } else {
            self.untold.insert(seat);
        }
    }

    /// The session is in the room again.
    pub(super) fn cancel(&mut self, seat: Seat) {
        self.untold.remove(&seat);
        self.leaves.iter_mut().filter(|it| it.0 == seat).for_each(|it| it.1 = false);
    }

    /// The leave that must be told next.
    pub(super) fn pop(&mut self) -> Option<Seat> {
        self.pass_cancelled();
        self.leaves.pop_front().map(|it| it.0)
    }

    /// Lets go of cancelled leaves that were passed.
    pub(super) fn pass_cancelled(&mut self) {
        while self.leaves.front().is_some_and(|it| !it.1) {
            self.leaves.pop_front();
        }
    }

    /// Whether a leave waits and counts.
    pub(super) fn will_tell(&self, seat: &Seat) -> bool {
        self.leaves.iter().any(|it| it.0 == *seat && it.1)
    }

    pub(super) fn len(&self) -> usize {
        self.leaves.len()
    }
}
