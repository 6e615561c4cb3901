//! What a shard learns about rooms: settings, who may not speak, listed words.

use std::ops::Bound;
use std::sync::Arc;

use proto::control::Fact;
use proto::id::{AppId, RoomId};
use proto::time::Mono;

use super::Shard;
use crate::judge::Now;
use crate::room::{Life, Room};
use crate::words::Words;

/// Rooms swept in one turn; all of 10,000 within 40 s. A silent sender costs memory, nothing else.
const ROOMS_PER_SWEEP: usize = 256;

impl Shard {
    /// Lets some rooms forget what is over, and forgets those that are.
    pub(super) fn sweep(&mut self, now: Now) {
        let from = self.swept.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut over = Vec::new();
        for (name, room) in self.rooms.range_mut((from, Bound::Unbounded)).take(ROOMS_PER_SWEEP) {
            if room.expire(now) == Life::Over {
                over.push(name.clone());
            }
            self.swept = Some(name.clone());
        }
        for name in over {
            self.rooms.remove(&name);
            self.closed.remove(&name);
        }
    }

    /// The words that count in a room: its app's, and its own.
    #[must_use]
    pub fn words(&self, app: AppId, room: &RoomId) -> Vec<Arc<Words>> {
        let own = self.rooms.get(&(app, room.clone())).and_then(Room::words);
        self.words.get(&app).into_iter().chain(own).cloned().collect()
    }

    pub(super) fn list(&mut self, app: AppId, room: Option<RoomId>, words: Option<Arc<Words>>) {
        match (room, words) {
            (Some(name), words) => {
                if let Some(room) = self.room(app, &name) {
                    room.list(words);
                }
            }
            (None, Some(words)) => {
                self.words.insert(app, words);
            }
            (None, None) => {
                self.words.remove(&app);
            }
        }
    }

    pub(super) fn learn(&mut self, fact: Fact, now: Mono) {
        match fact {
            Fact::Room(fact) => {
                let key = (fact.app, fact.room.clone());
                let Some(room) = self.room(key.0, &key.1) else { return };
                room.set(fact);
                let (is_closed, holds) = (room.is_closed(), room.hold_ms() > 0);
                if holds && !is_closed {
                    self.holding.insert(key.clone());
                } else {
                    self.holding.remove(&key);
                }
                if is_closed {
                    self.closed.insert(key);
                } else {
                    self.closed.remove(&key);
                }
            }
            Fact::Mute { app, room, viewer, until } => {
                if let Some(room) = self.room(app, &room) {
                    room.people.mute(viewer, until);
                }
            }
            Fact::Ban { app, room, viewer, until } => {
                if let Some(room) = self.room(app, &room) {
                    room.people.ban(viewer, until);
                }
            }
            Fact::Person { app, room, viewer, standing } => {
                if let Some(room) = self.room(app, &room) {
                    room.people.stand(viewer, standing);
                }
            }
            Fact::Keep { app, room, keep_permille } => {
                self.hear_kept(app, room, keep_permille, now);
            }
            Fact::Epoch(_)
            | Fact::Kick { .. }
            | Fact::Close { .. }
            | Fact::Heat { .. }
            | Fact::Bases { .. }
            | Fact::Move { .. }
            | Fact::Lease(_)
            | Fact::Policy(_)
            | Fact::Sdk(_)
            // The shell reads the list, and tells it by `Input::Words`.
            | Fact::Words { .. }
            // Broadcasters publish it.
            | Fact::Catalogue(_)
            // Links keep both.
            | Fact::Exclude { .. }
            | Fact::Attribute { .. }
            | Fact::Sealed { .. }
            | Fact::Revoked { .. } => {}
        }
    }

    /// The room, made if it is new: a mute may be told before its room, since facts are compacted.
    /// A closed one makes place for it.
    pub(super) fn room(&mut self, app: AppId, room: &RoomId) -> Option<&mut Room> {
        let key = (app, room.clone());
        if !self.rooms.contains_key(&key) {
            if self.rooms.len() >= self.limits.rooms_max
                && let Some(closed) = self.closed.pop_first()
            {
                self.rooms.remove(&closed);
            }
            if self.rooms.len() >= self.limits.rooms_max {
                self.ignored += 1;
                return None;
            }
            let made = Room::new(self.secret.room(app, room), self.limits.senders_max);
            self.rooms.insert(key.clone(), made);
        }
        self.rooms.get_mut(&key)
    }
}
