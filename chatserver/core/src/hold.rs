//! Comments that a room holds back, so that its moderators see them before everyone else does.
//!
//! A comment waits for the room's `hold_ms`, behind those that came before it. Its sender has no
//! verdict yet. What is done meanwhile to the room, its sender or the comment itself counts.

use std::collections::{BTreeMap, VecDeque};

use proto::envelope::Accepted;
use proto::id::{AppId, ItemId, RoomId, ViewerId};
use proto::time::Mono;

/// Longest hold, in milliseconds.
pub const HOLD_MS_MAX: u32 = 30_000;
/// Comments of one room that wait at this chatserver: what it shows in the longest hold at 100 a
/// second.
pub const ROOM_HELD_MAX: usize = 3_000;
/// Comments of all rooms that wait, about 400 bytes each.
pub const HELD_MAX: usize = 100_000;

type Key = (AppId, RoomId);

/// All that wait.
#[derive(Debug, Default)]
pub struct Hold {
    rooms: BTreeMap<Key, VecDeque<Waiting>>,
    count: usize,
}

/// A comment that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Since when.
    pub at: Mono,
    /// Whose it is.
    pub viewer: ViewerId,
    /// What would be shown.
    pub accepted: Accepted,
}

impl Hold {
    /// Keeps a comment, unless too many wait: then it is given back.
    #[must_use = "what is given back is not held"]
    pub fn push(&mut self, waiting: Waiting) -> Option<Waiting> {
        let key = (waiting.accepted.app, waiting.accepted.room.clone());
        let there = self.rooms.get(&key).map_or(0, VecDeque::len);
        if self.count >= HELD_MAX || there >= ROOM_HELD_MAX {
            return Some(waiting);
        }
        self.rooms.entry(key).or_default().push_back(waiting);
        self.count += 1;
        None
    }

    /// Gives those whose time is over, each room's in order; `hold_ms` says how long a room holds.
    pub fn release(&mut self, hold_ms: impl Fn(AppId, &RoomId) -> u32, now: Mono) -> Vec<Waiting> {
        let mut over = Vec::new();
        self.rooms.retain(|(app, room), waiting| {
            let hold_ms = u64::from(hold_ms(*app, room));
            while waiting.front().is_some_and(|it| it.at.0 + hold_ms <= now.0) {
                over.extend(waiting.pop_front());
            }
            !waiting.is_empty()
        });
        self.count -= over.len();
        over
    }

    /// Takes one out.
    pub fn take(&mut self, app: AppId, room: &RoomId, id: ItemId) -> Option<Waiting> {
        let key = (app, room.clone());
        let waiting = self.rooms.get_mut(&key)?;
        let place = waiting.iter().position(|it| it.accepted.item.id == id)?;
        let taken = waiting.remove(place);
        if waiting.is_empty() {
            self.rooms.remove(&key);
        }
        self.count -= usize::from(taken.is_some());
        taken
    }

    /// What waits in a room, the oldest first.
    pub fn of(&self, app: AppId, room: &RoomId) -> impl Iterator<Item = &Waiting> {
        self.rooms.get(&(app, room.clone())).into_iter().flatten()
    }

    /// Whether something waits in a room: what comes later waits, too, behind it.
    #[must_use]
    pub fn holds(&self, app: AppId, room: &RoomId) -> bool {
        self.count > 0 && self.rooms.contains_key(&(app, room.clone()))
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether none does.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use proto::id::SenderRef;
    use proto::item::{Body, Item, Lane, Role, Style};
    use proto::time::Wall;

    use super::*;

    const APP: AppId = AppId(1);

    #[test]
    fn comments_go_on_in_order_when_their_time_is_over() {
        let mut hold = Hold::default();
        for (id, at) in [(1, 0), (2, 100), (3, 200)] {
            assert_eq!(hold.push(waiting("r", id, at)), None);
        }

        assert_eq!(ids(hold.release(|_, _| 1000, Mono(999))), [0; 0]);
        assert_eq!(ids(hold.release(|_, _| 1000, Mono(1100))), [1, 2]);
        assert!(hold.holds(APP, &room("r")));
        assert_eq!(ids(hold.release(|_, _| 0, Mono(1100))), [3]);
        assert!(hold.is_empty() && !hold.holds(APP, &room("r")));
    }

    #[test]
    fn one_that_is_taken_out_does_not_go_on() {
        let mut hold = Hold::default();
        for id in 1..=3 {
            assert_eq!(hold.push(waiting("r", id, 0)), None);
        }

        let taken = hold.take(APP, &room("r"), ItemId(2)).unwrap();

        assert_eq!(taken, waiting("r", 2, 0));
        assert_eq!(hold.take(APP, &room("r"), ItemId(2)), None);
        assert_eq!(hold.take(APP, &room("other"), ItemId(1)), None);
        assert_eq!(hold.of(APP, &room("r")).count(), 2);
        assert_eq!(ids(hold.release(|_, _| 0, Mono(0))), [1, 3]);
    }

    #[test]
    fn a_room_holds_so_many() {
        let mut hold = Hold::default();
        for id in 0..u64::try_from(ROOM_HELD_MAX).unwrap() {
            assert_eq!(hold.push(waiting("r", id, 0)), None);
        }

        assert_eq!(hold.push(waiting("r", 9_999, 0)), Some(waiting("r", 9_999, 0)));
        assert_eq!(hold.push(waiting("other", 9_999, 0)), None);
    }

    fn ids(waiting: Vec<Waiting>) -> Vec<u64> {
        waiting.into_iter().map(|it| it.accepted.item.id.0).collect()
    }

    fn waiting(name: &str, id: u64, at: u64) -> Waiting {
        let item = Item {
            id: ItemId(id),
            lane: Lane::Comment,
            sender: SenderRef(1),
            role: Role::Viewer,
            at: Wall(0),
            body: Body::Comment { text: "hi".into(), style: Style::default(), media_ms: None },
        };
        let accepted = Accepted { app: APP, room: room(name), item };
        Waiting { at: Mono(at), viewer: ViewerId::parse("v").unwrap(), accepted }
    }

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }
}
