//! Who waits to hear what became of an item, for a minute after it was admitted.

use std::collections::VecDeque;
use std::time::Duration;

use foldhash::HashMap;
use proto::id::{AppId, Cid, ItemId, NodeId, RoomId, SessionId, ViewerId};
use proto::time::Mono;

use crate::review::Found;

/// How long an answer may take: a comment is shown, merged or shed within a few seconds, and a
/// takeover of its room adds five.
pub const LIFE: Duration = Duration::from_secs(60);

/// Items looked at for one that is sent again: half a second's at 8,000 a second, some 50 µs.
const REDIRECT_TRIES_MAX: usize = 4096;

/// The sender's side of a comment: the same three again are the same comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Asker {
    /// Link that has the session.
    pub node: NodeId,
    /// The sender's session.
    pub session: SessionId,
    /// The sender's number for the comment.
    pub cid: Cid,
}

/// A comment that was admitted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asked {
    /// Who wants to know.
    pub asker: Asker,
    /// App of the room.
    pub app: AppId,
    /// Where it was sent.
    pub room: RoomId,
    /// Who sent it.
    pub viewer: ViewerId,
    /// What it counts for the next ones.
    pub mark: Mark,
    /// What was found in it.
    pub found: Found,
    /// Whether its room has held it back for as long as it does.
    pub was_held: bool,
    /// Whether the sender has the verdict.
    pub is_settled: bool,
}

/// What an admitted comment leaves behind, which slow mode and repeats count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mark {
    /// When it was admitted.
    pub at: Mono,
    /// The [`crate::repeats::Sketch::key`] of its text, where repeats matter.
    pub text: Option<u64>,
}

/// Admitted items whose fate is not known, at most `asked_max`; the oldest give way.
#[derive(Debug)]
pub struct Askers {
    asked: HashMap<ItemId, Asked>,
    /// In the order of admission; holds ids that were answered, too, until their time is over.
    order: VecDeque<(Mono, ItemId)>,
    asked_max: usize,
}

impl Askers {
    /// None yet.
    #[must_use]
    pub fn new(asked_max: usize) -> Self {
        Self { asked: HashMap::default(), order: VecDeque::new(), asked_max }
    }

    /// Remembers one.
    pub fn push(&mut self, id: ItemId, asked: Asked, now: Mono) {
        while self.order.len() >= self.asked_max.max(1) {
            self.pop_oldest();
        }
        self.order.push_back((now, id));
        self.asked.insert(id, asked);
    }

    /// Who asked for `id`.
    pub fn find(&mut self, id: ItemId) -> Option<&mut Asked> {
        self.asked.get_mut(&id)
    }

    /// What was asked for by one session of a viewer, and has no verdict yet, is told to the next
    /// one. Looks at the newest first: what is sent again was sent moments ago.
    pub fn redirect(&mut self, from: Asker, to: Asker) {
        let asked = |id: &ItemId| self.asked.get(id).is_some_and(|it| it.asker == from);
        let newest = self.order.iter().rev().take(REDIRECT_TRIES_MAX);
        let found = newest.map(|(_, id)| *id).find(asked);
        if let Some(asked) = found.and_then(|id| self.asked.get_mut(&id)) {
            asked.asker = to;
        }
    }

    /// Who asked for `id`, and forgets it.
    pub fn take(&mut self, id: ItemId) -> Option<Asked> {
        self.asked.remove(&id)
    }

    /// Forgets those whose time is over, up to the first one that has no verdict yet.
    pub fn expire(&mut self, now: Mono) {
        while let Some((at, id)) = self.order.front() {
            let is_settled = self.asked.get(id).is_none_or(|it| it.is_settled);
            if now.since(*at) < LIFE || !is_settled {
                return;
            }
            self.pop_oldest();
        }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.asked.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    fn pop_oldest(&mut self) {
        if let Some((_, id)) = self.order.pop_front() {
            self.asked.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(cid: u64) -> Asked {
        Asked {
            found: Found::Nothing,
            was_held: false,
            is_settled: true,
            asker: Asker { node: NodeId(1), session: SessionId(2), cid: Cid(cid) },
            app: AppId(1),
            room: RoomId::parse("r").unwrap(),
            viewer: ViewerId::parse("v").unwrap(),
            mark: Mark { at: Mono(0), text: None },
        }
    }

    #[test]
    fn the_oldest_gives_way_when_it_is_full() {
        let mut askers = Askers::new(2);
        for n in 1..=3 {
            askers.push(ItemId(n), asked(n), Mono(n));
        }

        assert_eq!(askers.find(ItemId(1)), None);
        assert_eq!(askers.take(ItemId(3)), Some(asked(3)));
        assert_eq!(askers.len(), 1);
    }

    #[test]
    fn nobody_waits_longer_than_a_minute() {
        let mut askers = Askers::new(10);
        askers.push(ItemId(1), asked(1), Mono(0));

        askers.expire(Mono(59_999));
        assert_eq!(askers.len(), 1);
        askers.expire(Mono(60_000));

        assert!(askers.is_empty());
    }

    #[test]
    fn those_without_a_verdict_are_not_forgotten() {
        let mut askers = Askers::new(10);
        askers.push(ItemId(1), Asked { is_settled: false, ..asked(1) }, Mono(0));

        askers.expire(Mono(90_000));

        assert!(askers.find(ItemId(1)).is_some());
    }
}
