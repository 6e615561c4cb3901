//! What rooms showed last, for those who come late.
//!
//! Filled from `sealed`, so a room has the same few items at every chatserver. What is recalled,
//! and what a banned sender said, is taken out; what such a sender said before comes in no more,
//! though it may be read after the ban.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proto::id::{AppId, Gen, ItemId, RoomId, SenderRef};
use proto::item::{Body, Placed, Repeat};
use proto::time::{Mono, Wall};

/// Rooms of which something is kept; the one that was silent longest makes way for another. With
/// a hundred items of 200 bytes each they are 40 MB.
pub const ROOMS_MAX: usize = 2_000;
/// How long a ban is remembered at least: what comes later was said later, too.
const BAN_LIFE: Duration = Duration::from_mins(2);
/// Bans that are remembered for that time, about 100 bytes each; those beyond it take out what is
/// there.
const BANS_MAX: usize = 100_000;

/// Recalled items that are remembered for that time, about 100 bytes each; those beyond it are
/// taken out where they are.
const RECALLED_MAX: usize = 100_000;

/// The last items of rooms.
#[derive(Debug)]
pub struct Lately {
    items_max: usize,
    rooms: BTreeMap<(AppId, RoomId), Shown>,
    /// Items that were recalled lately; each for a turn and the rest of the one in which it was.
    recalled: [BTreeSet<(AppId, RoomId, ItemId)>; 2],
    /// Until when, of senders who were banned lately.
    bans: BTreeMap<Sender, Wall>,
    /// Those that were banned before; they are forgotten next.
    older: BTreeMap<Sender, Wall>,
    turned: Mono,
}

type Sender = (AppId, RoomId, SenderRef);

#[derive(Debug)]
struct Shown {
    items: VecDeque<Repeat>,
    at: Mono,
}

impl Lately {
    /// Keeps up to `items_max` items of each room; of none, if that is 0.
    #[must_use]
    pub fn new(items_max: usize) -> Self {
        let (rooms, bans, older) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let recalled = [BTreeSet::new(), BTreeSet::new()];
        Self { items_max, rooms, recalled, bans, older, turned: Mono(0) }
    }

    /// Items were shown, in order. Of them those that have something to read later are kept; a
    /// recall takes out what it recalls.
    pub fn show(&mut self, app: AppId, room: &RoomId, gen_no: Gen, items: &[Placed], now: Mono) {
        self.turn(now);
        for placed in items {
            if self.is_recalled(app, room, placed) || self.is_banned(app, room, placed) {
                continue;
            }
            match placed.item.body {
                Body::Tombstone { of } | Body::Erasure { of } => self.recall(app, room, of),
                Body::Comment { .. }
                | Body::Gift { .. }
                | Body::Notice { .. }
                | Body::System { .. }
                | Body::Custom { .. } => {
                    self.keep(app, room, Repeat { gen_no, placed: placed.clone() }, now);
                }
                Body::Like { .. } | Body::Entry | Body::Effect { .. } => {}
            }
        }
    }

    /// Takes out what a sender said in a room, who is banned there until then; 0 ends it.
    pub fn ban(&mut self, app: AppId, room: &RoomId, sender: SenderRef, until: Wall, now: Mono) {
        self.turn(now);
        let key = (app, room.clone(), sender);
        self.older.remove(&key);
        if until == Wall(0) {
            self.bans.remove(&key);
            return;
        }
        if self.bans.len() < BANS_MAX {
            self.bans.insert(key, until);
        }
        if let Some(shown) = self.rooms.get_mut(&(app, room.clone())) {
            shown.items.retain(|it| it.placed.item.sender != sender);
        }
    }

    /// Forgets a room: it was closed.
    pub fn forget(&mut self, app: AppId, room: &RoomId) {
        self.rooms.remove(&(app, room.clone()));
    }

    /// What a room showed last, the oldest first.
    #[must_use]
    pub fn of(&self, app: AppId, room: &RoomId) -> Vec<Repeat> {
        let shown = self.rooms.get(&(app, room.clone()));
        shown.map_or_else(Vec::new, |it| it.items.iter().cloned().collect())
    }

    fn turn(&mut self, now: Mono) {
        if now.since(self.turned) >= BAN_LIFE {
            self.older = std::mem::take(&mut self.bans);
            let [new, old] = &mut self.recalled;
            *old = std::mem::take(new);
            self.turned = now;
        }
    }

    fn is_recalled(&self, app: AppId, room: &RoomId, placed: &Placed) -> bool {
        if self.recalled.iter().all(BTreeSet::is_empty) {
            return false;
        }
        let key = (app, room.clone(), placed.item.id);
        self.recalled.iter().any(|it| it.contains(&key))
    }

    fn is_banned(&self, app: AppId, room: &RoomId, placed: &Placed) -> bool {
        if self.bans.is_empty() && self.older.is_empty() {
            return false;
        }
        let key = (app, room.clone(), placed.item.sender);
        let until = self.bans.get(&key).or_else(|| self.older.get(&key));
        until.is_some_and(|it| placed.item.at < *it)
    }

    /// A takeover sends the last flush again, also of what was recalled meanwhile.
    fn recall(&mut self, app: AppId, room: &RoomId, of: ItemId) {
        if self.recalled[0].len() < RECALLED_MAX {
            self.recalled[0].insert((app, room.clone(), of));
        }
        if let Some(shown) = self.rooms.get_mut(&(app, room.clone())) {
            shown.items.retain(|it| it.placed.item.id != of);
        }
    }

    fn keep(&mut self, app: AppId, room: &RoomId, repeat: Repeat, now: Mono) {
        if self.items_max == 0 {
            return;
        }
        let key = (app, room.clone());
        if self.rooms.len() >= ROOMS_MAX && !self.rooms.contains_key(&key) {
            let silent = self.rooms.iter().min_by_key(|(_, it)| it.at).map(|(key, _)| key.clone());
            silent.map(|it| self.rooms.remove(&it));
        }
        let shown = self.rooms.entry(key).or_insert(Shown { items: VecDeque::new(), at: now });
        shown.at = now;
        // A takeover sends the last flush again.
        let id = repeat.placed.item.id;
        if shown.items.iter().rev().any(|it| it.placed.item.id == id) {
            return;
        }
        if shown.items.len() >= self.items_max {
            shown.items.pop_front();
        }
        shown.items.push_back(repeat);
    }
}

#[cfg(test)]
mod tests {
    use proto::id::Seq;
    use proto::item::{Item, Lane, Role, Style};

    use super::*;

    const APP: AppId = AppId(1);

    #[test]
    fn the_last_items_are_kept_once_and_in_order() {
        let mut lately = Lately::new(3);

        for id in [1, 2, 2, 3, 4] {
            show(&mut lately, "r", id, 1, 0);
        }

        assert_eq!(ids(&lately, "r"), [2, 3, 4]);
        assert_eq!(ids(&lately, "other"), [0; 0]);
    }

    #[test]
    fn recalled_items_and_those_of_a_banned_sender_are_taken_out() {
        let mut lately = Lately::new(10);
        for (id, sender) in [(1, 1), (2, 2), (3, 1), (4, 3)] {
            show(&mut lately, "r", id, sender, 0);
        }

        let recall = placed(5, 0, Body::Tombstone { of: ItemId(4) });
        lately.show(APP, &room("r"), Gen(1), &[recall], Mono(0));
        lately.ban(APP, &room("r"), SenderRef(1), Wall(100), Mono(0));

        assert_eq!(ids(&lately, "r"), [2]);
    }

    #[test]
    fn what_was_recalled_does_not_come_back_with_a_flush_that_is_sent_again() {
        let mut lately = Lately::new(10);
        show(&mut lately, "r", 4, 3, 0);
        let recall = placed(5, 0, Body::Tombstone { of: ItemId(4) });
        lately.show(APP, &room("r"), Gen(1), &[recall], Mono(0));

        for now in [0, 120_000] {
            show(&mut lately, "r", 4, 3, now);
        }

        assert_eq!(ids(&lately, "r"), [0; 0]);
        show(&mut lately, "r", 4, 3, 240_000);
        assert_eq!(ids(&lately, "r"), [4], "it is remembered for some minutes");
    }

    #[test]
    fn a_recall_counts_in_its_own_room_only() {
        let mut lately = Lately::new(10);
        let recall = placed(5, 0, Body::Tombstone { of: ItemId(4) });
        lately.show(AppId(2), &room("r"), Gen(1), std::slice::from_ref(&recall), Mono(0));
        lately.show(APP, &room("other"), Gen(1), &[recall], Mono(0));

        show(&mut lately, "r", 4, 3, 0);

        assert_eq!(ids(&lately, "r"), [4]);
    }

    #[test]
    fn what_was_said_before_a_ban_ended_does_not_come_in_after_it() {
        let mut lately = Lately::new(10);
        lately.ban(APP, &room("r"), SenderRef(1), Wall(100), Mono(0));
        lately.ban(APP, &room("r"), SenderRef(2), Wall(100), Mono(0));
        lately.ban(APP, &room("r"), SenderRef(2), Wall(0), Mono(0));

        for (id, sender, now) in [(1, 1, 0), (2, 2, 0), (3, 1, 120_000), (100, 1, 120_000)] {
            show(&mut lately, "r", id, sender, now);
        }

        assert_eq!(ids(&lately, "r"), [2, 100]);
        show(&mut lately, "r", 4, 1, 240_000);
        assert_eq!(ids(&lately, "r"), [2, 100, 4], "it is remembered for some minutes");
    }

    #[test]
    fn the_room_that_was_silent_longest_makes_way() {
        let mut lately = Lately::new(1);
        for number in 0..ROOMS_MAX as u64 {
            show(&mut lately, &format!("r{number}"), number, 1, number);
        }
        show(&mut lately, "r0", 9_000, 1, 9_000);

        show(&mut lately, "new", 9_001, 1, 9_001);

        assert_eq!(lately.rooms.len(), ROOMS_MAX);
        assert_eq!((ids(&lately, "r0"), ids(&lately, "r1")), (vec![9_000], vec![]));
    }

    #[test]
    fn a_house_that_keeps_none_keeps_none() {
        let mut lately = Lately::new(0);

        show(&mut lately, "r", 1, 1, 0);

        assert_eq!(ids(&lately, "r"), [0; 0]);
    }

    fn show(lately: &mut Lately, name: &str, id: u64, sender: u64, now: u64) {
        let body =
            Body::Comment { text: "hi".into(), style: Style::default(), media_ms: None, count: 1 };
        lately.show(APP, &room(name), Gen(1), &[placed(id, sender, body)], Mono(now));
    }

    fn placed(id: u64, sender: u64, body: Body) -> Placed {
        let (lane, role, at) = (Lane::Comment, Role::Viewer, Wall(id));
        let item = Item { id: ItemId(id), lane, sender: SenderRef(sender), role, at, body };
        Placed { seq: Seq(id), item }
    }

    fn ids(lately: &Lately, name: &str) -> Vec<u64> {
        lately.of(APP, &room(name)).iter().map(|it| it.placed.item.id.0).collect()
    }

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }
}
