//! A viewer in the world: an SDK's core with a connection that breaks now and then.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use proto::frame::{
    Comment, Control, Credential, Downlink, Hello, Login, PROTO_VERSION, Path, Uplink,
};
use proto::head::Tier;
use proto::id::{Cid, RoomId};
use proto::item::Style;
use proto::suite::Suite;
use proto::time::{Mono, Wall};
use rand::RngExt;
use sdk_core::merge;
use sdk_core::poll::{Draws, Miss};
use sdk_core::room::{Input, Limits, Output, Room};
use sdk_core::server_clock::ServerClock;

use crate::network::{ConnNo, Message, Network, ViewerNo};
use crate::store::{Answer, Question};
use crate::turn::Turn;

/// How often a viewer asks what time it is.
const HEARTBEAT: Duration = Duration::from_secs(25);
/// Attempts to fetch a slot that a gap wants, and the wait between two.
const FETCHES_MAX: u32 = 3;
const FETCH_WAIT: Duration = Duration::from_secs(1);

/// How a viewer gets the room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    pub(crate) path: Path,
    pub(crate) tier: Tier,
}

impl Habit {
    const ALL: [Self; 5] = [
        Self { path: Path::Push, tier: Tier::Full },
        Self { path: Path::Segments, tier: Tier::Full },
        Self { path: Path::Auto, tier: Tier::Full },
        Self { path: Path::Segments, tier: Tier::Lite },
        Self { path: Path::Auto, tier: Tier::Lite },
    ];

    pub(crate) const fn of(viewer: ViewerNo) -> Self {
        Self::ALL[viewer % Self::ALL.len()]
    }
}

pub(crate) struct Viewer {
    number: ViewerNo,
    room_id: RoomId,
    tier: Tier,
    room: Room,
    server_clock: ServerClock,
    /// The device's clock is so far ahead of the world's.
    ahead: Duration,
    conn: ConnNo,
    is_connected: bool,
    connect_at: Mono,
    ping_at: Mono,
    received: BytesMut,
    next_cid: u64,
    /// Fetches that are tried again.
    retries: VecDeque<(Mono, Question)>,
}

impl Viewer {
    pub(crate) fn new(
        number: ViewerNo,
        room_id: RoomId,
        habit: Habit,
        connect_at: Mono,
        network: &mut Network,
    ) -> Self {
        let Habit { path, tier } = habit;
        let draws = Draws { phase: network.rng.random(), settle: network.rng.random() };
        Self {
            number,
            room: Room::new(room_id.clone(), path, tier, draws, Limits::default()),
            room_id,
            tier,
            server_clock: ServerClock::default(),
            ahead: Duration::from_millis(network.draw(0..1_000_000)),
            conn: 0,
            is_connected: false,
            connect_at,
            ping_at: Mono(0),
            received: BytesMut::new(),
            next_cid: 0,
            retries: VecDeque::new(),
        }
    }

    pub(crate) const fn is_connected(&self) -> bool {
        self.is_connected
    }

    pub(crate) fn say(&mut self, text: String, turn: &mut Turn<'_>) {
        self.next_cid += 1;
        let cid = Cid(self.next_cid);
        turn.check.said(self.number, cid);
        let (room, style) = (self.room_id.clone(), Style::default());
        self.send(&Uplink::Comment(Comment { cid, room, text, style, media_ms: None }), turn);
    }

    /// The connection breaks; what is on its way to the viewer is lost.
    pub(crate) fn hang_up(&mut self, away: Duration, turn: &mut Turn<'_>) {
        turn.network.send(Message::Hangup(self.number, self.conn));
        self.dropped(self.conn, away, turn);
    }

    pub(crate) fn dropped(&mut self, conn: ConnNo, away: Duration, turn: &mut Turn<'_>) {
        if conn == self.conn && self.is_connected {
            self.is_connected = false;
            self.connect_at = turn.now.mono + away;
            self.room.handle(Input::Disconnected, self.local(turn));
            turn.check.left(self.number);
        }
    }

    pub(crate) fn bytes(&mut self, conn: ConnNo, bytes: &Bytes, turn: &mut Turn<'_>) {
        if conn != self.conn || !self.is_connected {
            return;
        }
        self.received.extend_from_slice(bytes);
        while let Some(head) = self.received.first_chunk::<4>() {
            let length = u32::from_be_bytes(*head) as usize;
            if self.received.len() < 4 + length {
                break;
            }
            self.received.advance(4);
            let frame = self.received.split_to(length);
            let frame = Downlink::decode(&frame).expect("a link sends frames that decode");
            self.frame(frame, turn);
            self.drain(turn);
        }
    }

    /// The origin's answer.
    pub(crate) fn answered(&mut self, question: Question, answer: Answer, turn: &mut Turn<'_>) {
        let draw = turn.network.rng.random();
        let input = match (question, answer) {
            (Question::Fetch { tries, gen_no, slot, tier }, Answer::Not(_))
                if tries + 1 < FETCHES_MAX =>
            {
                let tries = tries + 1;
                let again = Question::Fetch { tries, gen_no, slot, tier };
                return self.retries.push_back((turn.now.mono + FETCH_WAIT, again));
            }
            (Question::Fetch { gen_no, slot, .. }, Answer::Segment(segment)) => {
                Input::Fetched { gen_no, slot, segment: Some(Box::new(segment)) }
            }
            (Question::Fetch { gen_no, slot, .. }, Answer::Not(_) | Answer::Head(_)) => {
                Input::Fetched { gen_no, slot, segment: None }
            }
            (_, Answer::Head(head)) => {
                self.learn_time(head.now_ms, turn);
                Input::Head(Box::new(head))
            }
            (_, Answer::Segment(segment)) => {
                self.learn_time(segment.header.now_ms, turn);
                Input::Polled(Box::new(segment))
            }
            (_, Answer::Not(why)) => Input::Missed { why, draw },
        };
        self.room.handle(input, self.local(turn));
        self.drain(turn);
    }

    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        if !self.is_connected && turn.now.mono >= self.connect_at {
            self.connect(turn);
        }
        if self.is_connected && turn.now.mono >= self.ping_at {
            self.ping_at = turn.now.mono + HEARTBEAT;
            self.send(&Uplink::Ping { nonce: 0 }, turn);
        }
        while let Some((_, question)) = self.retries.pop_front_if(|(at, _)| *at <= turn.now.mono) {
            turn.network.send(Message::Ask(self.number, question));
        }
        let local = self.local(turn);
        if self.room.deadline().is_some_and(|it| it <= local) {
            self.room.tick(local);
            self.drain(turn);
        }
    }

    fn drain(&mut self, turn: &mut Turn<'_>) {
        let tier = self.tier;
        while let Some(output) = self.room.poll() {
            let question = match output {
                Output::Tell(merge::Output::Show(shown)) => {
                    turn.check.shown(self.number, &shown.item, shown.place);
                    continue;
                }
                Output::Tell(merge::Output::Gap { from, to, .. }) => {
                    turn.check.gap(self.number, from, to);
                    continue;
                }
                Output::Tell(merge::Output::Recall(_) | merge::Output::Fetch { .. }) => continue,
                Output::Join => {
                    self.send(&Uplink::Join(self.room.join()), turn);
                    continue;
                }
                Output::Head { .. } => Question::Head,
                Output::Poll { gen_no, slot, tier, attempt } => {
                    let question = Question::Poll { gen_no, slot, tier };
                    // Some fail once; what fails twice is lost, and rightly so.
                    if attempt == 0 && turn.network.chance(20) {
                        let failed = Box::new(Answer::Not(Miss::Failed));
                        turn.network.send(Message::Answer(self.number, question, failed));
                        continue;
                    }
                    question
                }
                Output::Fetch { gen_no, slot } => Question::Fetch { gen_no, slot, tier, tries: 0 },
            };
            turn.network.send(Message::Ask(self.number, question));
        }
    }

    fn connect(&mut self, turn: &mut Turn<'_>) {
        self.conn += 1;
        self.is_connected = true;
        self.ping_at = turn.now.mono + HEARTBEAT;
        self.received.clear();
        let hello = Hello {
            sdk: "sim".to_owned(),
            sdk_version: "0".to_owned(),
            proto_min: PROTO_VERSION,
            proto_max: PROTO_VERSION,
            suites: vec![Suite::Plain.name().to_owned()],
            codecs: Vec::new(),
            nonce: u64::from(self.conn),
        };
        let login = Login {
            credential: Credential::Token("dm1.sim".to_owned()),
            binder: None,
            device: None,
            joins: vec![self.room.join()],
        };
        self.send(&Uplink::Hello(hello), turn);
        self.send(&Uplink::Login(login), turn);
    }

    fn frame(&mut self, frame: Downlink, turn: &mut Turn<'_>) {
        let input = match frame {
            Downlink::Welcome(welcome) => return self.learn_time(welcome.server_ms, turn),
            Downlink::LoginOk(mut login) => match login.rooms.pop() {
                Some(joined) => Input::Joined(joined.outcome),
                None => return,
            },
            Downlink::Joined(joined) => Input::Joined(joined.outcome),
            Downlink::Batch(batch) => Input::Batch(batch),
            Downlink::Seal(seal) => Input::Seal(seal),
            Downlink::Skipped { items, .. } => Input::Skipped { items },
            Downlink::Control(Control::Heat { heat, gen_no, slot, .. }) => {
                Input::Heat { heat, gen_no, slot }
            }
            Downlink::Ack(ack) => return turn.check.acked(self.number, ack),
            Downlink::Refused(_) | Downlink::Close(_) => {
                return self.dropped(self.conn, FETCH_WAIT, turn);
            }
            Downlink::Pong { server_ms, .. } => return self.learn_time(server_ms, turn),
            Downlink::Control(_) => return,
        };
        self.room.handle(input, self.local(turn));
    }

    fn learn_time(&mut self, said: Wall, turn: &Turn<'_>) {
        let local = self.local(turn);
        self.server_clock.sample(said, local);
        if let Some(offset) = self.server_clock.offset() {
            self.room.handle(Input::Clock(offset), local);
        }
    }

    /// What the device's clock shows.
    fn local(&self, turn: &Turn<'_>) -> Mono {
        turn.now.mono + self.ahead
    }

    fn send(&self, frame: &Uplink, turn: &mut Turn<'_>) {
        turn.network.send(Message::Up(self.number, self.conn, frame.encode()));
    }
}
