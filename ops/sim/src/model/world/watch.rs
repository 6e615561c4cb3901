//! What the node did is noted in the picture, and both are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use link_core::ring::Reading;
use proto::close::CloseCode;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::{JoinOutcome, Path, Place, Resumed};
use proto::heat::Heat;
use proto::id::SessionId;
use proto::time::Mono;

use super::super::due::Due;
use super::super::step::{CLIENTS_PER_VIEWER, ROOMS};
use super::super::subject::{
    LEAVES, LEAVES_MAX, OUTBOX_BYTES_MAX, SILENCE, Seen, room_id, room_no,
};
use super::{PIECE_MS, World, same};

impl World {
    /// Notes what the node did for a session.
    pub(super) fn see(&mut self, id: SessionId, seen: Vec<Seen>) -> Result<(), String> {
        for one in seen {
            match one {
                Seen::Sent(frame, bytes) => {
                    if let Some(person) = self.people.get_mut(&id) {
                        person.own.push_back(frame);
                        person.own_bytes += bytes;
                    }
                }
                Seen::Overflowed => self.overflowed(id)?,
                Seen::Joined { room, reading, asked, outcome } => {
                    self.joined(id, room, reading, asked, &outcome)?;
                }
                Seen::News(news) => {
                    let told = self.rooms.iter().filter_map(|it| it.timeline.pending());
                    let is_ahead = told.into_iter().any(|it| it == news);
                    is_ahead.then_some(()).ok_or_else(|| format!("{news:?} is not ahead"))?;
                }
                Seen::Left(room) => {
                    let was_there = self.seats.remove(&(id, room)).is_some();
                    same("a seat that was left", &was_there, &true)?;
                    self.left((id, room));
                }
                Seen::Untold(room) => {
                    same("an untold leave", &self.queue.untold.contains(&(id, room)), &true)?;
                    self.covered.untold += 1;
                }
                Seen::Published(entry) => self.published(id, &entry)?,
                Seen::Closed(code) => {
                    *self.covered.closes.entry(code.name()).or_default() += 1;
                }
                Seen::Departed(rooms) => self.departed(id, rooms)?,
            }
        }
        Ok(())
    }

    /// The session's own queue was full: it must have been, for a frame of at most 512 bytes.
    fn overflowed(&mut self, id: SessionId) -> Result<(), String> {
        let Some(person) = self.people.get_mut(&id) else {
            return Err("a stranger's queue is full".to_owned());
        };
        let waits = person.own_bytes;
        person.own.clear();
        person.own_bytes = 0;
        let is_full = waits + 512 > OUTBOX_BYTES_MAX;
        is_full.then_some(()).ok_or_else(|| format!("full with {waits} bytes"))
    }

    fn joined(
        &mut self,
        id: SessionId,
        room: u8,
        reading: Reading,
        asked: Option<Place>,
        outcome: &JoinOutcome,
    ) -> Result<(), String> {
        let others = self.seats.range((id, 0)..=(id, u8::MAX)).count();
        let one = &self.rooms[usize::from(room)];
        let is_in = self.seats.contains_key(&(id, room));
        let may = one.is_open && (is_in || others < proto::limits::ROOMS_PER_SESSION_MAX);
        let JoinOutcome::In { heat, path, resumed, latest, .. } = *outcome else {
            return same("a refused join", &may, &false);
        };
        same("a join", &may, &true)?;
        let timeline = &one.timeline;
        let open = timeline.open_heat();
        let expected = match (reading, open) {
            (Reading::Promoted, _) | (Reading::Auto, Heat::Cold) => Path::Push,
            (Reading::Auto, Heat::Hot) | (Reading::Segments, _) => Path::Segments,
        };
        same("the room's heat", &(heat, path), &(open, expected))?;
        same("the newest place", &latest, &timeline.latest())?;
        let due = match asked.filter(|_| path == Path::Push) {
            Some(place) => {
                self.covered.resume(resumed);
                timeline.resume(place, resumed, reading, self.now)?
            }
            None => {
                same("a fresh start", &resumed, &Resumed::Fresh)?;
                Due::new(reading)
            }
        };
        self.seats.insert((id, room), due);
        self.queue.cancel((id, room));
        Ok(())
    }

    fn left(&mut self, seat: (SessionId, u8)) {
        self.queue.push(seat);
        self.left = self.now;
    }

    /// Others hear of joins and comments; not of rooms where the session is not.
    fn published(&mut self, id: SessionId, entry: &UplinkEntry) -> Result<(), String> {
        let seat = (id, room_no(&entry.room));
        same("the session of an act", &entry.session, &id)?;
        same("an act of one in the room", &self.seats.contains_key(&seat), &true)?;
        if matches!(entry.act, Act::Join { .. }) {
            self.heard.insert(seat);
        }
        Ok(())
    }

    fn departed(&mut self, id: SessionId, rooms: Vec<u8>) -> Result<(), String> {
        let seated: BTreeSet<u8> =
            self.seats.range((id, 0)..=(id, u8::MAX)).map(|it| it.0.1).collect();
        same("the rooms of one who went", &rooms.iter().copied().collect(), &seated)?;
        for room in rooms {
            self.seats.remove(&(id, room));
            self.left((id, room));
        }
        if let Some(person) = self.people.remove(&id) {
            self.clients[usize::from(person.client)].sessions.retain(|it| *it != id);
        }
        Ok(())
    }

    /// Time passes, and what is due in it happens.
    pub(super) fn pass(&mut self, ms: u32) -> Result<(), String> {
        let ms = u64::from(ms);
        let until = self.now.0 + ms;
        while self.now.0 < until {
            self.now = Mono((self.now.0 + PIECE_MS).min(until));
            self.expire()?;
            self.node.rings.iter_mut().for_each(|it| it.tick(self.now));
            self.tell_leaves()?;
        }
        // All places of the queue, and a second.
        let told_within = Duration::from_secs(1 + LEAVES_MAX as u64 / u64::from(LEAVES.per_s));
        if self.now.since(self.left) > told_within {
            same("leaves that wait after a while", &self.queue.len(), &0)?;
        }
        Ok(())
    }

    fn expire(&mut self) -> Result<(), String> {
        let now = self.now;
        for id in self.people.keys().copied().collect::<Vec<_>>() {
            let Some(person) = self.people.get(&id) else { continue };
            let (expires, silent) = (person.expires, person.spoke + SILENCE);
            let deadline = self.node.session(id).and_then(|it| it.deadline());
            same("a deadline", &deadline, &Some(expires.min(silent)))?;
            let seen = self.node.tick(id, self.moment());
            if now >= expires {
                super::check_closed(&seen, CloseCode::Expired)?;
            } else if now >= silent {
                super::check_closed(&seen, CloseCode::Silent)?;
            } else {
                same("what happens before a deadline", &seen.len(), &0)?;
            }
            self.see(id, seen)?;
        }
        Ok(())
    }

    fn tell_leaves(&mut self) -> Result<(), String> {
        while let Some(departure) = self.node.departures.poll(self.now) {
            let seat = (departure.member.session, room_no(&departure.room));
            same("the leave that is told", &Some(seat), &self.queue.pop())?;
            same("a leave of one who was there", &self.heard.remove(&seat), &true)?;
            self.covered.leaves += 1;
        }
        self.queue.pass_cancelled();
        let most = u64::from(LEAVES.burst) + u64::from(LEAVES.per_s) * self.now.0 / 1000;
        let is_paced = self.covered.leaves <= most;
        is_paced.then_some(()).ok_or_else(|| "leaves are told too fast".to_owned())
    }

    pub(super) fn gauges(&mut self) -> Result<(), String> {
        let told = self.node.hub.gauges();
        let told: BTreeMap<u8, _> = told
            .iter()
            .map(|it| (room_no(&it.room), (it.people, it.sessions, it.offered)))
            .collect();
        let mut expected = BTreeMap::new();
        for number in 0..ROOMS {
            let (people, sessions) = self.count(number);
            let room = &mut self.rooms[usize::from(number)];
            let offered = std::mem::take(&mut room.offered);
            let is_live = sessions > 0 || offered > 0;
            if is_live || room.was_told {
                expected.insert(number, (people, sessions, offered));
            }
            room.was_told = is_live;
        }
        same("the gauges", &told, &expected)
    }

    /// People and sessions in a room.
    fn count(&self, room: u8) -> (u32, u32) {
        let seats = self.seats.keys().filter(|it| it.1 == room);
        let of = |id: &SessionId| self.people.get(id).map(|it| it.client / CLIENTS_PER_VIEWER);
        let sessions: Vec<_> = seats.map(|it| of(&it.0)).collect();
        let people: BTreeSet<_> = sessions.iter().collect();
        let count = |length| u32::try_from(length).unwrap_or(u32::MAX);
        (count(people.len()), count(sessions.len()))
    }

    /// What holds at any time.
    pub(super) fn check(&self) -> Result<(), String> {
        for room in 0..ROOMS {
            let id = room_id(room);
            let counted = (self.node.hub.people(&id), self.node.hub.sessions(&id));
            same("people and sessions", &counted, &self.count(room))?;
        }
        same("leaves that wait", &self.node.departures.len(), &self.queue.len())?;
        self.check_rings()
    }
}
