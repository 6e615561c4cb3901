//! What a shard tells the others of its rooms, hears from them, and lets links pass on.

use proto::control::Fact;
use proto::id::{AppId, RoomId};
use proto::time::Mono;

use super::{Output, Shard};
use crate::flow::{Limit, Seen, Tally};

impl Shard {
    /// What was seen of rooms since this was last asked; the answer is [`super::Input::Flow`].
    pub fn tell(&mut self, now: Mono) -> Vec<Tally> {
        let mut tallies = Vec::new();
        let rooms = &mut self.rooms;
        self.flowing.retain(|key| {
            let told = rooms.get_mut(key).and_then(|it| it.stream.tell(now));
            if let Some((wanted_per_s, passed)) = told {
                let (app, room) = key.clone();
                tallies.push(Tally { app, room, wanted_per_s, passed });
            }
            told.is_some()
        });
        tallies
    }

    /// Rooms of which links pass on a share only.
    #[must_use]
    pub fn sampled(&self) -> usize {
        let rooms = self.offered.iter().filter_map(|it| self.rooms.get(it));
        rooms.filter(|it| it.valve.is_partly_shut()).count()
    }

    /// Chatservers that share what rooms show, as far as is known.
    #[must_use]
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(super) fn hear_all(&mut self, nodes: u32, seen: Vec<(AppId, RoomId, Seen)>, now: Mono) {
        self.nodes = nodes.max(self.limits.nodes_min).max(1);
        // Others are there that the centre has not heard of: what it saw is not all.
        if nodes < self.limits.nodes_min {
            return;
        }
        for (app, room, seen) in seen {
            let Some(known) = self.rooms.get_mut(&(app, room.clone())) else { continue };
            let Some(limit_per_s) = known.items_per_s() else { continue };
            known.stream.hear(seen, Limit { per_s: limit_per_s, nodes: self.nodes }, now);
            if seen.wanted_per_s > limit_per_s || !known.valve.is_idle() {
                known.valve.wanted(seen.wanted_per_s, now);
                self.offered.insert((app, room));
            }
        }
    }

    pub(super) fn hear_kept(&mut self, app: AppId, room: RoomId, kept: u16, now: Mono) {
        // A share may be told before its room, since facts are compacted.
        if let Some(known) = self.room(app, &room) {
            known.valve.heard(kept, now);
            self.offered.insert((app, room));
        }
    }

    pub(super) fn turn_valves(&mut self, now: Mono) {
        let Self { rooms, outputs, .. } = self;
        self.offered.retain(|key| {
            let Some(room) = rooms.get_mut(key) else { return false };
            // Of a room that is not told yet nobody knows what is too much.
            let told = room.items_per_s().and_then(|it| room.valve.decide(it, now));
            if let Some(keep_permille) = told {
                let (app, room) = key.clone();
                outputs.push_back(Output::Tell(Fact::Keep { app, room, keep_permille }));
            }
            !room.valve.is_idle()
        });
    }
}
