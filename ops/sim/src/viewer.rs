//! A viewer in the world: an SDK's core with a connection that breaks now and then.

use bytes::{Buf, Bytes, BytesMut};
use proto::frame::{
    Comment, Control, Credential, Downlink, Hello, Join, JoinOutcome, Login, PROTO_VERSION, Path,
    Uplink,
};
use proto::heat::Heat;
use proto::id::{Cid, Gen, RoomId, SlotNo};
use proto::item::Style;
use proto::segment::Segment;
use proto::time::Mono;
use sdk_core::merge::{Input, Limits, Merge, Output};

use crate::broadcaster::Broadcaster;
use crate::check::Check;
use crate::network::{ConnNo, Message, Network, ViewerNo};

pub(crate) struct Viewer {
    number: ViewerNo,
    room: RoomId,
    path: Path,
    merge: Merge,
    conn: ConnNo,
    is_connected: bool,
    connect_at: Mono,
    received: BytesMut,
    next_cid: u64,
    /// Slots from here on are polled.
    poll: Option<SlotNo>,
    /// Slots from here on come by push again.
    poll_end: Option<SlotNo>,
    is_fetching: bool,
}

impl Viewer {
    pub(crate) fn new(number: ViewerNo, room: RoomId, path: Path, connect_at: Mono) -> Self {
        Self {
            number,
            room,
            path,
            merge: Merge::new(Limits::default()),
            conn: 0,
            is_connected: false,
            connect_at,
            received: BytesMut::new(),
            next_cid: 0,
            poll: None,
            poll_end: None,
            is_fetching: false,
        }
    }

    pub(crate) const fn is_connected(&self) -> bool {
        self.is_connected
    }

    pub(crate) fn say(&mut self, text: String, network: &mut Network) {
        self.next_cid += 1;
        let cid = Cid(self.next_cid);
        let (room, style) = (self.room.clone(), Style::default());
        self.send(&Uplink::Comment(Comment { cid, room, text, style, media_ms: None }), network);
    }

    /// The connection breaks; what is on its way to the viewer is lost.
    pub(crate) fn hang_up(&mut self, back_at: Mono, network: &mut Network) {
        network.send(Message::Hangup(self.number, self.conn));
        self.dropped(self.conn, back_at);
    }

    pub(crate) fn dropped(&mut self, conn: ConnNo, back_at: Mono) {
        if conn == self.conn {
            self.is_connected = false;
            self.connect_at = back_at;
        }
    }

    pub(crate) fn bytes(&mut self, conn: ConnNo, bytes: &Bytes, now: Mono, check: &mut Check) {
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
        }
    }

    pub(crate) fn fetched(&mut self, slot: SlotNo, segment: Option<Segment>, now: Mono) {
        self.is_fetching = false;
        if let Some(segment) = segment {
            if self.poll == Some(slot) {
                self.poll = Some(SlotNo(slot.0 + 1));
            }
            self.merge.handle(Input::Segment(segment), now);
        }
    }

    pub(crate) fn tick(
        &mut self,
        now: Mono,
        broadcaster: &Broadcaster,
        network: &mut Network,
        check: &mut Check,
    ) {
        if !self.is_connected && now >= self.connect_at {
            self.connect(network);
        }
        if self.merge.deadline().is_some_and(|it| it <= now) {
            self.merge.tick(now);
        }
        while let Some(output) = self.merge.poll() {
            match output {
                Output::Show(shown) => check.shown(self.number, &shown.item, shown.place),
                Output::Fetch { slot, .. } => self.fetch(slot, broadcaster, network),
                Output::Gap { from, to, .. } => check.gap(self.number, from, to),
                Output::Recall(_) => {}
            }
        }
        if let Some(slot) = self.poll
            && !self.is_fetching
        {
            if self.poll_end.is_some_and(|it| slot >= it) {
                (self.poll, self.poll_end) = (None, None);
            } else if broadcaster.segments.contains_key(&slot) {
                self.fetch(slot, broadcaster, network);
            }
        }
    }

    fn connect(&mut self, network: &mut Network) {
        self.conn += 1;
        self.is_connected = true;
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
        let join = Join { room: self.room.clone(), path: self.path, resume: self.merge.cursor() };
        let login = Login {
            credential: Credential::Token("dm1.sim".to_owned()),
            binder: None,
            device: None,
            joins: vec![join],
        };
        self.send(&Uplink::Hello(hello), network);
        self.send(&Uplink::Login(login), network);
    }

    fn frame(&mut self, frame: Downlink, now: Mono, check: &mut Check) {
        match frame {
            Downlink::LoginOk(login) => {
                for joined in login.rooms {
                    if let JoinOutcome::In { path, resumed, .. } = joined.outcome {
                        self.merge.handle(Input::Joined { path, resumed }, now);
                        self.poll_end = None;
                        let reached = self.merge.reached().map_or(SlotNo(0), |(_, slot)| slot);
                        self.poll = match path {
                            // Also what was to come by push while the connection was away.
                            Path::Segments => Some(self.poll.map_or(reached, |it| it.min(reached))),
                            Path::Push | Path::Auto => None,
                        };
                    }
                }
            }
            Downlink::Batch(batch) => self.merge.handle(Input::Batch(batch), now),
            Downlink::Seal(seal) => self.merge.handle(Input::Seal(seal), now),
            Downlink::Skipped { items, .. } => self.merge.handle(Input::Skipped { items }, now),
            Downlink::Ack(ack) => check.acked(self.number, ack),
            Downlink::Control(Control::Heat { heat, gen_no, slot, .. }) => {
                self.heat(heat, gen_no, slot, now);
            }
            Downlink::Refused(_) | Downlink::Close(_) => self.is_connected = false,
            Downlink::Welcome(_)
            | Downlink::Control(_)
            | Downlink::Joined(_)
            | Downlink::Pong { .. } => {}
        }
    }

    fn heat(&mut self, heat: Heat, gen_no: Gen, slot: SlotNo, now: Mono) {
        if self.path != Path::Auto {
            return;
        }
        self.merge.handle(Input::Heat { heat, gen_no, slot }, now);
        match heat {
            Heat::Hot => {
                self.poll.get_or_insert(slot);
                self.poll_end = None;
            }
            Heat::Cold => self.poll_end = self.poll.map(|_| slot),
        }
    }

    /// A fetch in a hundred fails, and is tried again by whoever wanted it.
    fn fetch(&mut self, slot: SlotNo, broadcaster: &Broadcaster, network: &mut Network) {
        self.is_fetching = true;
        let segment = broadcaster.segments.get(&slot).cloned();
        let segment = segment.filter(|_| self.poll != Some(slot) || !network.chance(10));
        network.send(Message::Fetched(self.number, slot, segment.map(Box::new)));
    }

    fn send(&self, frame: &Uplink, network: &mut Network) {
        network.send(Message::Up(self.number, self.conn, frame.encode()));
    }
}
