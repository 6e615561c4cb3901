//! Comments that a room holds back, so that its moderators see them before everyone else does.
//!
//! A comment waits for the room's `hold_ms`, behind those that came before it. Its sender has no
//! verdict yet. What is done meanwhile to the room, its sender or the comment itself counts.
//!
//! A room that holds shorter from now on catches up at twice the pace at which comments came, so
//! that those of half a minute are not shown at once.

use std::collections::{BTreeMap, VecDeque};

use proto::envelope::Accepted;
use proto::id::{AppId, ItemId, RoomId, ViewerId};
use proto::time::{Mono, millis};

/// Comments of one room that wait at this chatserver: what it shows in the longest hold at 100 a
/// second.
pub const ROOM_HELD_MAX: usize = 3_000;
/// Comments of all rooms that wait, about 400 bytes each. No app has more of the places than it
/// leaves free: alone it has half of them, and as many as another one that has as much to hold.
pub const HELD_MAX: usize = 100_000;

type Key = (AppId, RoomId);

/// All that wait.
#[derive(Debug, Default)]
pub struct Hold {
    rooms: BTreeMap<Key, Line>,
    /// How many wait of each app that has any.
    apps: BTreeMap<AppId, usize>,
    count: usize,
    /// Comments that were held so far.
    held: u64,
}

/// What waits in one room.
#[derive(Debug, Default)]
struct Line {
    /// Numbered in the order in which they came, over all rooms.
    waiting: VecDeque<(u64, Waiting)>,
    /// How long they wait: not less than the room says, and perhaps still more.
    hold_ms: u32,
    /// When that was looked at.
    looked: Mono,
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
        let there = self.rooms.get(&key).map_or(0, |it| it.waiting.len());
        let of_app = self.apps.entry(key.0).or_default();
        if there >= ROOM_HELD_MAX || *of_app >= HELD_MAX - self.count {
            return Some(waiting);
        }
        *of_app += 1;
        self.count += 1;
        self.held += 1;
        self.rooms.entry(key).or_default().waiting.push_back((self.held, waiting));
        None
    }

    /// Gives those whose time is over, each room's in order; `hold_ms` says how long a room holds.
    pub fn release(&mut self, hold_ms: impl Fn(AppId, &RoomId) -> u32, now: Mono) -> Vec<Waiting> {
        let mut over = Vec::new();
        self.rooms.retain(|(app, room), line| {
            line.look(hold_ms(*app, room), now);
            while let Some((_, first)) = line.waiting.front()
                && first.at.0 + u64::from(line.hold_ms) <= now.0
            {
                over.extend(line.waiting.pop_front().map(|it| it.1));
            }
            !line.waiting.is_empty()
        });
        for waiting in &over {
            self.leave(waiting.accepted.app);
        }
        over
    }

    /// Takes one out.
    pub fn take(&mut self, app: AppId, room: &RoomId, id: ItemId) -> Option<Waiting> {
        let key = (app, room.clone());
        let waiting = &mut self.rooms.get_mut(&key)?.waiting;
        let place = waiting.iter().position(|it| it.1.accepted.item.id == id)?;
        let (_, taken) = waiting.remove(place)?;
        if waiting.is_empty() {
            self.rooms.remove(&key);
        }
        self.leave(app);
        Some(taken)
    }

    /// What waits in a room, the oldest first, each with its number; from the first one on whose
    /// number is above `after`.
    pub fn of(
        &self,
        app: AppId,
        room: &RoomId,
        after: u64,
    ) -> impl Iterator<Item = (u64, &Waiting)> {
        let line = self.rooms.get(&(app, room.clone())).into_iter();
        line.flat_map(move |it| it.waiting.range(it.waiting.partition_point(|it| it.0 <= after)..))
            .map(|(no, waiting)| (*no, waiting))
    }

    /// How long what waits in a room waits at least, whatever the room says now.
    #[must_use]
    pub fn hold_ms(&self, app: AppId, room: &RoomId) -> u32 {
        self.rooms.get(&(app, room.clone())).map_or(0, |it| it.hold_ms)
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

    fn leave(&mut self, app: AppId) {
        self.count -= 1;
        if let Some(of_app) = self.apps.get_mut(&app) {
            *of_app -= 1;
            if *of_app == 0 {
                self.apps.remove(&app);
            }
        }
    }
}

impl Line {
    /// The hold becomes what the room says; shorter by a millisecond in each.
    fn look(&mut self, hold_ms: u32, now: Mono) {
        let passed = u32::try_from(millis(now.since(self.looked))).unwrap_or(u32::MAX);
        self.hold_ms = hold_ms.max(self.hold_ms.saturating_sub(passed));
        self.looked = now;
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
        assert_eq!(ids(hold.release(|_, _| 1000, Mono(1200))), [3]);
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
        assert_eq!(hold.of(APP, &room("r"), 0).count(), 2);
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

    #[test]
    fn a_room_that_holds_shorter_catches_up_at_twice_the_pace() {
        let mut hold = Hold::default();
        for id in 0..300 {
            assert_eq!(hold.push(waiting("r", id, id * 100)), None);
        }
        assert_eq!(ids(hold.release(|_, _| 30_000, Mono(29_900))), [0; 0]);

        let released = |at: u64, hold: &mut Hold| hold.release(|_, _| 0, Mono(at)).len();
        let counts: Vec<_> = (1..=15).map(|it| released(29_900 + it * 1000, &mut hold)).collect();

        assert_eq!(counts, [20; 15]);
        assert!(hold.is_empty());
    }

    #[test]
    fn a_room_that_holds_longer_holds_those_longer_that_wait() {
        let mut hold = Hold::default();
        assert_eq!(hold.push(waiting("r", 1, 0)), None);
        assert_eq!(ids(hold.release(|_, _| 1000, Mono(900))), [0; 0]);

        assert_eq!(ids(hold.release(|_, _| 2000, Mono(1900))), [0; 0]);
        assert_eq!(hold.hold_ms(APP, &room("r")), 2000);
        assert_eq!(ids(hold.release(|_, _| 2000, Mono(2000))), [1]);
    }

    #[test]
    fn no_app_holds_more_than_it_leaves_free() {
        let mut hold = Hold::default();
        let mut fill = |app, rooms: u64| {
            let mut held = 0;
            for no in 0..rooms * ROOM_HELD_MAX as u64 {
                let mut waiting = waiting(&format!("r{}", no % rooms), no, 0);
                waiting.accepted.app = app;
                held += usize::from(hold.push(waiting).is_none());
            }
            held
        };

        assert_eq!(fill(APP, 40), HELD_MAX / 2);
        assert_eq!(fill(AppId(2), 40), HELD_MAX / 4);
        assert_eq!(fill(AppId(3), 1), ROOM_HELD_MAX);
        assert_eq!(ids(hold.release(|_, _| 0, Mono(0))).len(), HELD_MAX * 3 / 4 + ROOM_HELD_MAX);
        assert!(hold.is_empty() && hold.apps.is_empty());
    }

    #[test]
    fn what_waits_is_told_from_a_number_on() {
        let mut hold = Hold::default();
        for id in [7, 5, 6] {
            assert_eq!(hold.push(waiting("r", id, 0)), None);
        }
        hold.take(APP, &room("r"), ItemId(7)).unwrap();

        let told: Vec<_> = hold.of(APP, &room("r"), 2).map(|it| it.1.accepted.item.id).collect();

        assert_eq!(told, [ItemId(6)]);
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
            body: Body::Comment {
                text: "hi".into(),
                style: Style::default(),
                media_ms: None,
                count: 1,
            },
        };
        let accepted = Accepted { app: APP, room: room(name), item };
        Waiting { at: Mono(at), viewer: ViewerId::parse("v").unwrap(), accepted }
    }

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }
}
