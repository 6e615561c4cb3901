//! The node under test: link-core's machines, joined as the link joins them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use link_core::Now;
use link_core::bucket::Rate;
use link_core::departures::{Departure, Departures};
use link_core::entry::{Entry, enter};
use link_core::framing::Framing;
use link_core::hub::{Hub, Member};
use link_core::outbox::Outbox;
use link_core::ring::{self, Reading, Ring, Slow};
use link_core::session::{Grant, Input, Limits, Output, Session};
use proto::close::CloseCode;
use proto::envelope::UplinkEntry;
use proto::frame::{
    Close, Control, Credential, Downlink, Hello, Join, JoinOutcome, Joined, Login, PROTO_VERSION,
    Path, Place, Uplink,
};
use proto::id::{AppId, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::suite::Suite;

use super::step::{ROOMS, Wish};

pub(super) const APP: AppId = AppId(1);
/// Small, so that sessions are often slow.
pub(super) const OUTBOX_BYTES_MAX: usize = 6 * 1024;
/// A slot's frames fit, as they do in life: what a late switch brings back is still there.
pub(super) const RING: ring::Limits =
    ring::Limits { bytes_max: 16 * 1024, kept_bytes_max: 4 * 1024, keep: Duration::from_secs(60) };
pub(super) const LEAVES_MAX: usize = 24;
pub(super) const LEAVES: Rate = Rate { burst: 4, per_s: 20 };
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// What the node did.
#[derive(Debug)]
pub(super) enum Seen {
    /// Something was queued for the session alone; its bytes with their header.
    Sent(Downlink, usize),
    /// A session came into a room, or did not.
    Joined {
        room: u8,
        reading: Reading,
        asked: Option<Place>,
        outcome: JoinOutcome,
    },
    /// What is said beside the answer.
    News(Control),
    Left(u8),
    Published(UplinkEntry),
    /// The session's own queue is full.
    Overflowed,
    Closed(CloseCode),
    /// It was in these rooms, and is in none any more.
    Departed(Vec<u8>),
    /// This leave will not be told.
    Untold(u8),
}

/// The node.
pub(super) struct Subject {
    limits: Arc<Limits>,
    pub(super) hub: Hub,
    pub(super) departures: Departures,
    pub(super) rings: Vec<Ring>,
    conversations: BTreeMap<SessionId, Conversation>,
}

struct Conversation {
    session: Session,
    outbox: Outbox,
    framing: Framing,
    grant: Grant,
    wish: Wish,
    news: Vec<Control>,
}

/// Who logs in.
pub(super) struct Guest {
    pub(super) id: SessionId,
    pub(super) viewer: u8,
    pub(super) life: Duration,
    pub(super) wish: Wish,
    pub(super) framing: Framing,
}

impl Subject {
    pub(super) fn new() -> Self {
        let limits = Limits {
            login: Duration::from_secs(10),
            phase: Duration::from_secs(5),
            silence: SILENCE,
            heartbeat: Duration::from_secs(25),
            frames: Rate { burst: 10_000, per_s: 10_000 },
            frame_bytes_max: 64 * 1024,
            compress: false,
        };
        Self {
            limits: Arc::new(limits),
            hub: Hub::new(usize::from(ROOMS), 7),
            departures: Departures::new(LEAVES_MAX, LEAVES),
            rings: (0..ROOMS).map(|it| Ring::new(room_id(it), RING)).collect(),
            conversations: BTreeMap::new(),
        }
    }

    pub(super) fn log_in(&mut self, guest: Guest, joins: Vec<Join>, now: Now) -> Vec<Seen> {
        let Guest { id, viewer, life, wish, framing } = guest;
        let limits = Arc::clone(&self.limits);
        let session = Session::new(limits, Suite::Plain, now.mono, now.mono);
        let outbox = Outbox::new(framing, OUTBOX_BYTES_MAX);
        let grant = grant(id, viewer, life);
        let conversation = Conversation { session, outbox, framing, grant, wish, news: Vec::new() };
        self.conversations.insert(id, conversation);
        let mut seen = self.frame(id, &Uplink::Hello(hello()), now);
        let credential = Credential::Token(String::new());
        let login = Login { credential, binder: None, device: None, joins };
        seen.extend(self.frame(id, &Uplink::Login(login), now));
        seen
    }

    pub(super) fn join(&mut self, id: SessionId, join: Join, wish: Wish, now: Now) -> Vec<Seen> {
        if let Some(conversation) = self.conversations.get_mut(&id) {
            conversation.wish = wish;
        }
        self.frame(id, &Uplink::Join(join), now)
    }

    pub(super) fn frame(&mut self, id: SessionId, frame: &Uplink, now: Now) -> Vec<Seen> {
        self.feed(id, Input::Frame(frame.encode()), now)
    }

    pub(super) fn end(&mut self, id: SessionId, code: CloseCode, now: Now) -> Vec<Seen> {
        let reason = code.name().to_owned();
        let close = Close { code, reason, retry_after_ms: 0, addresses: Vec::new() };
        self.feed(id, Input::End(close), now)
    }

    /// The connection is gone.
    pub(super) fn hang_up(&mut self, id: SessionId) -> Vec<Seen> {
        let mut seen = Vec::new();
        self.depart(id, &mut seen);
        seen
    }

    pub(super) fn tick(&mut self, id: SessionId, now: Now) -> Vec<Seen> {
        if let Some(conversation) = self.conversations.get_mut(&id) {
            conversation.session.tick(now);
        }
        self.act(id, now)
    }

    /// Queues a frame that somebody else has for the session.
    pub(super) fn mail(&mut self, id: SessionId, frame: Downlink, now: Now) -> Vec<Seen> {
        let mut seen = Vec::new();
        self.send(id, frame, now, &mut seen);
        seen.extend(self.act(id, now));
        seen
    }

    /// All frames of its own that wait for the session.
    pub(super) fn read_own(&mut self, id: SessionId) -> Result<Vec<Downlink>, String> {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return Ok(Vec::new());
        };
        let mut out = Vec::new();
        conversation.outbox.take_own(&mut out);
        out.iter().map(|it| unframed(it, conversation.framing)).collect()
    }

    /// All that a room has for the session, and how many bytes that is.
    pub(super) fn read_room(
        &mut self,
        id: SessionId,
        room: u8,
    ) -> Result<Result<(Vec<Downlink>, usize), Slow>, String> {
        let ring = &self.rings[usize::from(room)];
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return Ok(Ok((Vec::new(), 0)));
        };
        let mut out = Vec::new();
        loop {
            match conversation.outbox.take(ring, &mut out) {
                Ok(taken) if taken.more => {}
                Ok(_) => break,
                Err(slow) => return Ok(Err(slow)),
            }
        }
        let bytes = out.iter().map(Bytes::len).sum();
        let frames = out.iter().map(|it| unframed(it, conversation.framing));
        Ok(Ok((frames.collect::<Result<_, _>>()?, bytes)))
    }

    /// The session was too slow: what waits is given up, so that the reason can be told.
    pub(super) fn give_up(&mut self, id: SessionId, now: Now) -> Vec<Seen> {
        if let Some(it) = self.conversations.get_mut(&id) {
            it.outbox = Outbox::new(it.framing, OUTBOX_BYTES_MAX);
        }
        self.end(id, CloseCode::Slow, now)
    }

    pub(super) fn session(&self, id: SessionId) -> Option<&Session> {
        self.conversations.get(&id).map(|it| &it.session)
    }

    fn feed(&mut self, id: SessionId, input: Input, now: Now) -> Vec<Seen> {
        if let Some(conversation) = self.conversations.get_mut(&id) {
            conversation.session.handle(input, now);
        }
        self.act(id, now)
    }

    fn act(&mut self, id: SessionId, now: Now) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(output) = self.conversations.get_mut(&id).and_then(|it| it.session.poll()) {
            match output {
                Output::Send(frame) => self.send(id, frame, now, &mut seen),
                Output::Verify(_) => {
                    if let Some(it) = self.conversations.get_mut(&id) {
                        self.hub.arrive(&it.grant.member);
                        it.session.handle(Input::Granted(Box::new(it.grant.clone())), now);
                    }
                }
                Output::Join(join) => self.enter(id, join, now, &mut seen),
                Output::Leave(room) => self.leave(id, &room, &mut seen),
                Output::Publish(entry) => seen.push(Seen::Published(entry)),
                Output::Pong(_) | Output::Report(_) => {}
                Output::Close(code) => {
                    seen.push(Seen::Closed(code));
                    self.depart(id, &mut seen);
                }
            }
        }
        let open = self.conversations.get_mut(&id).filter(|it| it.session.is_open());
        for news in open.map(|it| std::mem::take(&mut it.news)).unwrap_or_default() {
            seen.push(Seen::News(news.clone()));
            self.send(id, Downlink::Control(news), now, &mut seen);
        }
        seen
    }

    fn send(&mut self, id: SessionId, frame: Downlink, now: Now, seen: &mut Vec<Seen>) {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return;
        };
        let bytes = frame.encode();
        if conversation.outbox.push(&bytes).is_ok() {
            seen.push(Seen::Sent(frame, conversation.framing.wrap(&bytes).len()));
            return;
        }
        seen.push(Seen::Overflowed);
        let Downlink::Close(_) = frame else {
            return seen.extend(self.give_up(id, now));
        };
        // The session is over already: why is told in the place of what waited.
        conversation.outbox = Outbox::new(conversation.framing, OUTBOX_BYTES_MAX);
        self.send(id, frame, now, seen);
    }

    fn enter(&mut self, id: SessionId, join: Join, now: Now, seen: &mut Vec<Seen>) {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return;
        };
        let Some(member) = conversation.session.member() else {
            return;
        };
        let room = room_no(&join.room);
        let reading = match conversation.wish {
            Wish::Auto => Reading::Auto,
            Wish::Promoted => Reading::Promoted,
            Wish::Segments => Reading::Segments,
        };
        let outcome = match self.hub.join(member, &join.room) {
            Err(refusal) => JoinOutcome::Refused { code: refusal.code(), retry_after_ms: 0 },
            Ok(_) => {
                self.departures.cancel(id, &join.room);
                let ring = &self.rings[usize::from(room)];
                let Entry { heat, path, resumed, news, cursor } = enter(ring, join.resume, reading);
                conversation.outbox.follow(join.room.clone(), cursor);
                conversation.news.extend(news);
                let (latest, online) = (ring.latest(), ring.people());
                JoinOutcome::In { heat, path, resumed, latest, online }
            }
        };
        let asked = join.resume;
        seen.push(Seen::Joined { room, reading, asked, outcome: outcome.clone() });
        let joined = Joined { room: join.room, outcome };
        conversation.session.handle(Input::Joined(joined), now);
    }

    fn leave(&mut self, id: SessionId, room: &RoomId, seen: &mut Vec<Seen>) {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return;
        };
        conversation.outbox.unfollow(room);
        let member = conversation.session.member().cloned();
        if let Some(member) = member.filter(|it| self.hub.leave(it, room)) {
            seen.push(Seen::Left(room_no(room)));
            self.gone(member, room.clone(), seen);
        }
    }

    fn depart(&mut self, id: SessionId, seen: &mut Vec<Seen>) {
        let Some(conversation) = self.conversations.remove(&id) else {
            return;
        };
        let rooms = self.hub.depart(&conversation.grant.member);
        seen.push(Seen::Departed(rooms.iter().map(room_no).collect()));
        for room in rooms {
            self.gone(Arc::clone(&conversation.grant.member), room, seen);
        }
    }

    fn gone(&mut self, member: Arc<Member>, room: RoomId, seen: &mut Vec<Seen>) {
        let number = room_no(&room);
        if self.departures.push(Departure { member, room }).is_err() {
            seen.push(Seen::Untold(number));
        }
    }
}

fn grant(session: SessionId, viewer: u8, life: Duration) -> Grant {
    Grant {
        member: Arc::new(Member {
            session,
            app: APP,
            viewer: viewer_id(viewer),
            role: Role::Viewer,
            may_send: true,
        }),
        rooms: (0..ROOMS).map(room_id).collect(),
        life,
        confirm: None,
        resume_ticket: String::new(),
    }
}

fn hello() -> Hello {
    Hello {
        sdk: "model".to_owned(),
        sdk_version: "1".to_owned(),
        proto_min: PROTO_VERSION,
        proto_max: PROTO_VERSION,
        suites: vec![Suite::Plain.name().to_owned()],
        codecs: Vec::new(),
        nonce: 1,
    }
}

pub(super) fn room_id(room: u8) -> RoomId {
    RoomId::parse(&format!("room-{room}")).expect("letters and digits are a name")
}

pub(super) fn room_no(room: &RoomId) -> u8 {
    let number = room.as_str().strip_prefix("room-").and_then(|it| it.parse().ok());
    number.expect("rooms are named by `room_id`")
}

pub(super) fn viewer_id(viewer: u8) -> ViewerId {
    ViewerId::parse(&format!("viewer-{viewer}")).expect("letters and digits are a name")
}

/// A request to join.
pub(super) fn join(room: u8, resume: Option<Place>) -> Join {
    Join { room: room_id(room), path: Path::Auto, resume }
}

/// The frame in a block: behind its length, or as one unmasked binary message.
fn unframed(block: &[u8], framing: Framing) -> Result<Downlink, String> {
    let header = match (framing, block.get(1)) {
        (Framing::Stream, _) => 4,
        (Framing::WebSocket, Some(0..=125)) => 2,
        (Framing::WebSocket, Some(126)) => 4,
        (Framing::WebSocket, _) => 10,
    };
    let frame = block.get(header..).unwrap_or_default();
    Downlink::decode(frame).map_err(|error| format!("the node sent no frame: {error}"))
}
