//! Steps done to the node and to a simple picture of it, and what must be the same in both.

mod rooms;
mod watch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::time::Duration;

use link_core::Now;
use link_core::framing::Framing;
use proto::close::CloseCode;
use proto::frame::{Ack, Comment, Downlink, Outcome, Place, Uplink};
use proto::id::{Cid, SessionId};
use proto::item::Style;
use proto::limits::ROOMS_PER_SESSION_MAX;
use proto::time::{Mono, Wall};
use proto::verdict::{Reason, Verdict};

use super::Covered;
use super::due::Due;
use super::queue::Queue;
use super::step::{CLIENTS, CLIENTS_PER_VIEWER, From, ROOMS, Step, Wish};
use super::subject::{APP, Guest, OUTBOX_BYTES_MAX, RING, Seen, Subject, join, room_id, viewer_id};
use super::timeline::Timeline;

/// How long sessions live: some expire in a run.
const LIVES: [Duration; 3] =
    [Duration::from_secs(20), Duration::from_mins(2), Duration::from_mins(50)];
/// Time passes in pieces: what is due happens at the end of each. A burst of leaves is told in one.
const PIECE_MS: u64 = 200;

/// The node and the picture of it.
pub(super) struct World {
    node: Subject,
    rooms: Vec<Room>,
    people: BTreeMap<SessionId, Person>,
    seats: BTreeMap<(SessionId, u8), Due>,
    clients: Vec<Client>,
    queue: Queue,
    /// Who is where, for those who hear of joins and leaves.
    heard: BTreeSet<(SessionId, u8)>,
    now: Mono,
    /// When somebody left last.
    left: Mono,
    sessions: u64,
    pub(super) covered: Covered,
}

struct Room {
    timeline: Timeline,
    version: u64,
    is_open: bool,
    offered: u32,
    was_told: bool,
}

/// A session that is logged in.
struct Person {
    client: u8,
    spoke: Mono,
    expires: Mono,
    life: Duration,
    own: VecDeque<Downlink>,
    own_bytes: usize,
}

#[derive(Default)]
struct Client {
    /// Oldest first.
    sessions: Vec<SessionId>,
    shown: BTreeMap<u8, Place>,
}

impl World {
    pub(super) fn new() -> Self {
        let room = |number| Room {
            timeline: Timeline::new(number),
            version: 0,
            is_open: false,
            offered: 0,
            was_told: false,
        };
        let mut world = Self {
            node: Subject::new(),
            rooms: (0..ROOMS).map(room).collect(),
            people: BTreeMap::new(),
            seats: BTreeMap::new(),
            clients: (0..CLIENTS).map(|_| Client::default()).collect(),
            queue: Queue::default(),
            heard: BTreeSet::new(),
            now: Mono(0),
            left: Mono(0),
            sessions: 0,
            covered: Covered::default(),
        };
        (0..ROOMS).for_each(|it| world.learn(it, true));
        world
    }

    /// Does a step, and says what is not as it must be.
    pub(super) fn take(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Login { client, rooms, wish, from } => self.log_in(client, rooms, wish, from)?,
            Step::Join { client, room, wish, from } => self.join(client, room, wish, from)?,
            Step::Leave { client, room } => self.leave(client, room)?,
            Step::Switch { client, leave, join } => {
                self.leave(client, leave)?;
                self.join(client, join, Wish::Auto, From::Push)?;
            }
            Step::HangUp { client, is_oldest } => self.hang_up(client, is_oldest)?,
            Step::Kick { viewer } => self.kick(viewer)?,
            Step::Comment { client, room } => self.comment(client, room)?,
            Step::Refresh { client } => self.refresh(client)?,
            Step::Answer { client, acks } => self.answer(client, acks)?,
            Step::Read { client } => self.read(client)?,
            Step::Flush { room, comments, gifts } => self.flush(room, comments, gifts)?,
            Step::Repeat { room } => self.repeat(room)?,
            Step::Lose { room, comments } => self.lose(room, comments),
            Step::Seal { room } => self.seal(room)?,
            Step::Turn { room, ahead, is_late } => self.turn(room, ahead, is_late)?,
            Step::NewGen { room } => self.timeline(room).new_gen(),
            Step::Close { room } => self.learn(room, false),
            Step::Open { room } => self.learn(room, true),
            Step::Keep { room, permille } => self.node.hub.keep(&room_id(room), permille),
            Step::Gauges => self.gauges()?,
            Step::Pass { ms } => self.pass(ms)?,
        }
        self.check()
    }

    /// Lets everything come to its end, and looks at the whole once more.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.pass(5_000)?;
        for client in 0..CLIENTS {
            self.read(client)?;
        }
        self.gauges()?;
        let seated: BTreeSet<_> = self.seats.keys().copied().collect();
        let is_gone = |it: &&_| self.queue.untold.contains(it) || self.queue.will_tell(it);
        let believed: BTreeSet<_> = self.heard.iter().filter(|it| !is_gone(it)).copied().collect();
        same("what the others believe", &believed, &seated)
    }

    fn timeline(&mut self, room: u8) -> &mut Timeline {
        &mut self.rooms[usize::from(room)].timeline
    }

    fn moment(&self) -> Now {
        Now { mono: self.now, wall: Wall(1_000_000 + self.now.0) }
    }

    fn newest(&self, client: u8) -> Option<SessionId> {
        self.clients[usize::from(client)].sessions.last().copied()
    }

    fn resume(&mut self, client: u8, room: u8, from: From) -> Option<Place> {
        match from {
            From::Nowhere => None,
            From::Push => self.clients[usize::from(client)].shown.get(&room).copied(),
            From::Segments => self.timeline(room).newest(),
        }
    }

    fn log_in(&mut self, client: u8, rooms: u16, wish: Wish, from: From) -> Result<(), String> {
        self.sessions += 1;
        let id = SessionId(self.sessions);
        let life = LIVES[usize::try_from(self.sessions % 3).unwrap_or(0)];
        let (own, own_bytes) = (VecDeque::new(), 0);
        let (spoke, expires) = (self.now, self.now + life);
        let person = Person { client, spoke, expires, life, own, own_bytes };
        self.people.insert(id, person);
        self.clients[usize::from(client)].sessions.push(id);
        let wanted = (0..ROOMS).filter(|it| rooms & (1 << it) != 0).take(ROOMS_PER_SESSION_MAX);
        let wanted: Vec<u8> = wanted.collect();
        let joins = wanted.iter().map(|&it| join(it, self.resume(client, it, from))).collect();
        let viewer = client / CLIENTS_PER_VIEWER;
        let framing = if client.is_multiple_of(2) { Framing::Stream } else { Framing::WebSocket };
        let guest = Guest { id, viewer, life, wish, framing };
        let seen = self.node.log_in(guest, joins, self.moment());
        self.see(id, seen)?;
        self.covered.logins += 1;
        Ok(())
    }

    fn join(&mut self, client: u8, room: u8, wish: Wish, from: From) -> Result<(), String> {
        let resume = self.resume(client, room, from);
        let Some(id) = self.speak(client) else {
            return Ok(());
        };
        let seen = self.node.join(id, join(room, resume), wish, self.moment());
        self.see(id, seen)
    }

    fn leave(&mut self, client: u8, room: u8) -> Result<(), String> {
        let Some(id) = self.speak(client) else {
            return Ok(());
        };
        let was_there = self.seats.contains_key(&(id, room));
        let leave = Uplink::Leave { room: room_id(room) };
        let seen = self.node.frame(id, &leave, self.moment());
        let has_left = seen.iter().any(|it| matches!(it, Seen::Left(_)));
        same("a leave", &has_left, &was_there)?;
        self.see(id, seen)
    }

    fn hang_up(&mut self, client: u8, is_oldest: bool) -> Result<(), String> {
        let sessions = &self.clients[usize::from(client)].sessions;
        let id = if is_oldest { sessions.first() } else { sessions.last() };
        let Some(&id) = id else {
            return Ok(());
        };
        let seen = self.node.hang_up(id);
        self.see(id, seen)
    }

    fn kick(&mut self, viewer: u8) -> Result<(), String> {
        let found: Vec<_> = self.node.hub.sessions_of(APP, &viewer_id(viewer)).collect();
        let is_of = |it: &Person| it.client / CLIENTS_PER_VIEWER == viewer;
        let people = self.people.iter().filter(|it| is_of(it.1));
        same("the sessions of a viewer", &found, &people.map(|it| *it.0).collect())?;
        found.into_iter().try_for_each(|id| self.end(id, CloseCode::Kicked))
    }

    fn end(&mut self, id: SessionId, code: CloseCode) -> Result<(), String> {
        let seen = self.node.end(id, code, self.moment());
        check_closed(&seen, code)?;
        self.see(id, seen)
    }

    fn comment(&mut self, client: u8, room: u8) -> Result<(), String> {
        let Some(id) = self.speak(client) else {
            return Ok(());
        };
        let comment = Uplink::Comment(Comment {
            cid: Cid(self.now.0),
            room: room_id(room),
            text: "hello".to_owned(),
            style: Style::default(),
            media_ms: None,
        });
        let seen = self.node.frame(id, &comment, self.moment());
        let is_passed_on = seen.iter().any(|it| matches!(it, Seen::Published(_)));
        same("a comment", &is_passed_on, &self.seats.contains_key(&(id, room)))?;
        if is_passed_on {
            let (hub, cid) = (&mut self.node.hub, Cid(self.now.0));
            let viewer = viewer_id(client / CLIENTS_PER_VIEWER);
            let fates = [0, 0].map(|_| hub.offer(&room_id(room), &viewer, cid, self.now));
            same("the fate of a comment that comes again", &fates[0], &fates[1])?;
            self.rooms[usize::from(room)].offered += 2;
        }
        self.see(id, seen)
    }

    fn refresh(&mut self, client: u8) -> Result<(), String> {
        let Some(id) = self.speak(client) else {
            return Ok(());
        };
        let seen = self.node.frame(id, &Uplink::Refresh { token: String::new() }, self.moment());
        if let Some(person) = self.people.get_mut(&id) {
            person.expires = self.now + person.life;
        }
        self.see(id, seen)
    }

    fn answer(&mut self, client: u8, acks: u8) -> Result<(), String> {
        let Some(id) = self.newest(client) else {
            return Ok(());
        };
        for cid in 0..acks {
            let verdict = Verdict::Drop { reason: Reason::Busy, retry_after_ms: 1 };
            let outcome = Outcome::Verdict(verdict);
            let ack = Downlink::Ack(Ack { cid: Cid(cid.into()), outcome });
            let seen = self.node.mail(id, ack, self.moment());
            self.see(id, seen)?;
        }
        Ok(())
    }

    /// The newest session of a client says something now.
    fn speak(&mut self, client: u8) -> Option<SessionId> {
        let id = self.newest(client)?;
        self.people.get_mut(&id)?.spoke = self.now;
        Some(id)
    }

    /// All sessions of the client take what waits for them.
    fn read(&mut self, client: u8) -> Result<(), String> {
        for id in self.clients[usize::from(client)].sessions.clone() {
            self.read_session(id, client)?;
        }
        Ok(())
    }

    fn read_session(&mut self, id: SessionId, client: u8) -> Result<(), String> {
        let own = self.node.read_own(id)?;
        if let Some(person) = self.people.get_mut(&id) {
            same("a session's own frames", &own, &person.own.drain(..).collect())?;
            person.own_bytes = 0;
        }
        let rooms: Vec<u8> = self.seats.range((id, 0)..=(id, u8::MAX)).map(|it| it.0.1).collect();
        let share = OUTBOX_BYTES_MAX / rooms.len().max(1);
        for room in rooms {
            let due = self.seats.get_mut(&(id, room)).expect("it was found in `seats`");
            let Ok((frames, bytes)) = self.node.read_room(id, room)? else {
                if !due.may_be_slow() {
                    return Err("closed as slow, though nothing is lost".to_owned());
                }
                let seen = self.node.give_up(id, self.moment());
                check_closed(&seen, CloseCode::Slow)?;
                return self.see(id, seen);
            };
            let most = share + RING.kept_bytes_max + RING.bytes_max / 8;
            if bytes > most {
                return Err(format!("{bytes} bytes waited where {most} may"));
            }
            let read = due.check(frames, share, self.now)?;
            self.covered.items += read.items;
            self.covered.skipped += read.skipped;
            if let Some(shown) = read.shown {
                self.clients[usize::from(client)].shown.insert(room, shown);
            }
        }
        Ok(())
    }
}

/// Whether two views of one thing are the same.
fn same<T: Debug + PartialEq>(what: &str, node: &T, picture: &T) -> Result<(), String> {
    if node == picture { Ok(()) } else { Err(format!("{what}: {node:?}, not {picture:?}")) }
}

fn check_closed(seen: &[Seen], code: CloseCode) -> Result<(), String> {
    let told = seen
        .iter()
        .any(|it| matches!(it, Seen::Sent(Downlink::Close(close), _) if close.code == code));
    let closed = seen.iter().any(|it| matches!(it, Seen::Closed(it) if *it == code));
    let is_so = closed && told;
    is_so.then_some(()).ok_or_else(|| format!("not closed as {}: {seen:?}", code.name()))
}
