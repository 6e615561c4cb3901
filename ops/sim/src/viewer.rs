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
use proto::time::{Mono, Wall};
use rand::RngExt;
use sdk_core::merge;
use sdk_core::poll::{Draws, Miss};
use sdk_core::room::{Input, Limits, Output, Room};
use sdk_core::server_clock::ServerClock;

use crate::check::Check;
use crate::network::{ConnNo, Message, Network, ViewerNo};
use crate::store::{Answer, Question};

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
    pub(crate) const ALL: [Self; 5] = [
        Self { path: Path::Push, tier: Tier::Full },
        Self { path: Path::Segments, tier: Tier::Full },
        Self { path: Path::Auto, tier: Tier::Full },
        Self { path: Path::Segments, tier: Tier::Lite },
        Self { path: Path::Auto, tier: Tier::Lite },
    ];
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

    pub(crate) fn say(&mut self, text: String, network: &mut Network, check: &mut Check) {
        self.next_cid += 1;
        let cid = Cid(self.next_cid);
        check.said(self.number, cid);
        let (room, style) = (self.room_id.clone(), Style::default());
        self.send(&Uplink::Comment(Comment { cid, room, text, style, media_ms: None }), network);
    }

    /// The connection breaks; what is on its way to the viewer is lost.
    pub(crate) fn hang_up(
        &mut self,
        now: Mono,
        away: Duration,
        network: &mut Network,
        check: &mut Check,
    ) {
        network.send(Message::Hangup(self.number, self.conn));
        self.dropped(self.conn, now, away, check);
    }

    pub(crate) fn dropped(&mut self, conn: ConnNo, now: Mono, away: Duration, check: &mut Check) {
        if conn == self.conn && self.is_connected {
            self.is_connected = false;
            self.connect_at = now + away;
            self.room.handle(Input::Disconnected, now + self.ahead);
            check.left(self.number);
        }
    }

    pub(crate) fn bytes(
        &mut self,
        conn: ConnNo,
        bytes: &Bytes,
        now: Mono,
        network: &mut Network,
        check: &mut Check,
    ) {
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
            self.frame(frame, now, check);
            self.drain(network, check);
        }
    }

    /// The origin's answer.
    pub(crate) fn answered(
        &mut self,
        question: Question,
        answer: Answer,
        now: Mono,
        network: &mut Network,
        check: &mut Check,
    ) {
        let draw = network.rng.random();
        let input = match (question, answer) {
            (Question::Fetch { tries, gen_no, slot, tier }, Answer::Not(_))
                if tries + 1 < FETCHES_MAX =>
            {
                let tries = tries + 1;
                let again = Question::Fetch { tries, gen_no, slot, tier };
                return self.retries.push_back((now + FETCH_WAIT, again));
            }
            (Question::Fetch { gen_no, slot, .. }, Answer::Segment(segment)) => {
                Input::Fetched { gen_no, slot, segment: Some(Box::new(segment)) }
            }
            (Question::Fetch { gen_no, slot, .. }, Answer::Not(_) | Answer::Head(_)) => {
                Input::Fetched { gen_no, slot, segment: None }
            }
            (_, Answer::Head(head)) => {
                self.learn_time(head.now_ms, now);
                Input::Head(Box::new(head))
            }
            (_, Answer::Segment(segment)) => {
                self.learn_time(segment.header.now_ms, now);
                Input::Polled(Box::new(segment))
            }
            (_, Answer::Not(why)) => Input::Missed { why, draw },
        };
        self.room.handle(input, now + self.ahead);
        self.drain(network, check);
    }

    pub(crate) fn tick(&mut self, now: Mono, network: &mut Network, check: &mut Check) {
        if !self.is_connected && now >= self.connect_at {
            self.connect(now, network);
        }
        if self.is_connected && now >= self.ping_at {
            self.ping_at = now + HEARTBEAT;
            self.send(&Uplink::Ping { nonce: 0 }, network);
        }
        while let Some((_, question)) = self.retries.pop_front_if(|(at, _)| *at <= now) {
            network.send(Message::Ask(self.number, question));
        }
        let local = now + self.ahead;
        if self.room.deadline().is_some_and(|it| it <= local) {
            self.room.tick(local);
            self.drain(network, check);
        }
    }

    fn drain(&mut self, network: &mut Network, check: &mut Check) {
        let tier = self.tier;
        while let Some(output) = self.room.poll() {
            let question = match output {
                Output::Tell(merge::Output::Show(shown)) => {
                    check.shown(self.number, &shown.item, shown.place);
                    continue;
                }
                Output::Tell(merge::Output::Gap { from, to, .. }) => {
                    check.gap(self.number, from, to);
                    continue;
                }
                Output::Tell(merge::Output::Recall(_) | merge::Output::Fetch { .. }) => continue,
                Output::Join => {
                    self.send(&Uplink::Join(self.room.join()), network);
                    continue;
                }
                Output::Head { .. } => Question::Head,
                Output::Poll { gen_no, slot, tier, attempt } => {
                    let question = Question::Poll { gen_no, slot, tier };
                    // Some fail once; what fails twice is lost, and rightly so.
                    if attempt == 0 && network.chance(20) {
                        let failed = Box::new(Answer::Not(Miss::Failed));
                        network.send(Message::Answer(self.number, question, failed));
                        continue;
                    }
                    question
                }
                Output::Fetch { gen_no, slot } => Question::Fetch { gen_no, slot, tier, tries: 0 },
            };
            network.send(Message::Ask(self.number, question));
        }
    }

    fn connect(&mut self, now: Mono, network: &mut Network) {
        self.conn += 1;
        self.is_connected = true;
        self.ping_at = now + HEARTBEAT;
        self.received.clear();
        let hello = Hello {
            sdk: "sim".to_owned(),
            sdk_version: "0".to_owned(),
            proto_min: PROTO_VERSION,
            proto_max: PROTO_VERSION,
            suites: Vec::new(),
            codecs: Vec::new(),
            nonce: u64::from(self.conn),
        };
        let login = Login {
            credential: Credential::Token("dm1.sim".to_owned()),
            binder: None,
            device: None,
            joins: vec![self.room.join()],
        };
        self.send(&Uplink::Hello(hello), network);
        self.send(&Uplink::Login(login), network);
    }

    fn frame(&mut self, frame: Downlink, now: Mono, check: &mut Check) {
        let input = match frame {
            Downlink::Welcome(welcome) => return self.learn_time(welcome.server_ms, now),
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
            Downlink::Ack(ack) => return check.acked(self.number, ack),
            Downlink::Refused(_) | Downlink::Close(_) => {
                return self.dropped(self.conn, now, FETCH_WAIT, check);
            }
            Downlink::Pong { server_ms, .. } => return self.learn_time(server_ms, now),
            Downlink::Control(_) => return,
        };
        self.room.handle(input, now + self.ahead);
    }

    fn learn_time(&mut self, said: Wall, now: Mono) {
        let local = now + self.ahead;
        self.server_clock.sample(said, local);
        if let Some(offset) = self.server_clock.offset() {
            self.room.handle(Input::Clock(offset), local);
        }
    }

    fn send(&self, frame: &Uplink, network: &mut Network) {
        network.send(Message::Up(self.number, self.conn, frame.encode()));
    }
}
