//! The link's shell in the world: connections are ways of the network.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use link_core::bucket::Rate;
use link_core::entry::{Entry, enter};
use link_core::framing::Framing;
use link_core::hub::{Hub, Member};
use link_core::outbox::Outbox;
use link_core::ring::{self, Reading, Ring, Switch};
use link_core::session::{Grant, Input, Limits, Output, Session};
use proto::control::RoomFact;
use proto::envelope::{Reply, RoomEvent};
use proto::frame::{Ack, Batch, Control, Downlink, Join, JoinOutcome, Joined, Path, Seal};
use proto::id::{AppId, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::suite::Suite;

use crate::network::{ConnNo, Message, ViewerNo, session_of, viewer_of};
use crate::turn::Turn;

struct Seat {
    viewer: ViewerNo,
    conn: ConnNo,
    session: Session,
    outbox: Outbox,
    /// To be said after the answer to a join.
    news: Option<Control>,
}

pub(crate) struct Link {
    limits: Arc<Limits>,
    room: RoomId,
    hub: Hub,
    ring: Ring,
    seats: BTreeMap<SessionId, Seat>,
}

impl Link {
    pub(crate) fn new(fact: &RoomFact) -> Self {
        let mut hub = Hub::new(4, 7);
        hub.learn(fact);
        let limits = Limits {
            login: Duration::from_secs(10),
            phase: Duration::from_secs(5),
            silence: Duration::from_secs(600),
            heartbeat: Duration::from_secs(25),
            frames: Rate { burst: 40, per_s: 20 },
            frame_bytes_max: 64 * 1024,
            compress: false,
        };
        let keep = ring::Limits {
            bytes_max: 4 << 20,
            kept_bytes_max: 1 << 20,
            keep: Duration::from_secs(60),
        };
        Self {
            limits: Arc::new(limits),
            room: fact.room.clone(),
            hub,
            ring: Ring::new(fact.room.clone(), keep),
            seats: BTreeMap::new(),
        }
    }

    pub(crate) fn frame(
        &mut self,
        (viewer, conn): (ViewerNo, ConnNo),
        frame: bytes::Bytes,
        turn: &mut Turn<'_>,
    ) {
        let id = session_of(viewer, conn);
        self.seats.entry(id).or_insert_with(|| Seat {
            viewer,
            conn,
            session: Session::new(
                Arc::clone(&self.limits),
                Suite::Plain,
                turn.now.mono,
                turn.now.mono,
            ),
            outbox: Outbox::new(Framing::Stream, 256 * 1024),
            news: None,
        });
        self.feed(id, Input::Frame(frame), turn);
    }

    pub(crate) fn hangup(&mut self, viewer: ViewerNo, conn: ConnNo) {
        let id = session_of(viewer, conn);
        self.seats.remove(&id);
        self.hub.depart(&member(id));
    }

    pub(crate) fn reply(&mut self, reply: &Reply, turn: &mut Turn<'_>) {
        match *reply {
            Reply::Ack { session, cid, outcome } => {
                self.send(session, &Downlink::Ack(Ack { cid, outcome }));
                self.write(session, turn);
            }
            Reply::Close { .. } => {}
        }
    }

    fn send(&mut self, id: SessionId, frame: &Downlink) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.outbox.push(&frame.encode()).expect("256 KiB hold all that a viewer is told");
        }
    }

    pub(crate) fn event(&mut self, event: RoomEvent, turn: &mut Turn<'_>) {
        let room = self.room.clone();
        match event {
            RoomEvent::Flush { gen_no, slot, part, items, .. } => {
                self.ring.flush(Batch { room, gen_no, slot, part, items }, turn.now.mono);
            }
            RoomEvent::Seal { gen_no, slot, items, crc } => {
                self.ring.seal(Seal { room, gen_no, slot, items, crc }, turn.now.mono);
            }
            RoomEvent::Heat { heat, gen_no, slot, .. } => {
                self.ring.switch(Switch { heat, gen_no, slot }, turn.now.mono);
            }
            RoomEvent::Opened { .. } | RoomEvent::Fates { .. } => {}
        }
        let ids: Vec<SessionId> = self.seats.keys().copied().collect();
        for id in ids {
            self.write(id, turn);
        }
    }

    fn feed(&mut self, id: SessionId, input: Input, turn: &mut Turn<'_>) {
        let mut input = Some(input);
        while let Some(seat) = self.seats.get_mut(&id) {
            if let Some(input) = input.take() {
                seat.session.handle(input, turn.now.link());
            }
            let Some(output) = seat.session.poll() else {
                break;
            };
            match output {
                Output::Send(frame) => self.send(id, &frame),
                Output::Verify(_) => {
                    input = Some(Input::Granted(Box::new(self.grant(id))));
                }
                Output::Join(join) => input = Some(Input::Joined(self.join(id, &join))),
                Output::Leave(room) => drop(self.hub.leave(&member(id), &room)),
                Output::Publish(entry) => turn.network.send(Message::Uplink(entry)),
                Output::Pong(_) | Output::Report(_) => {}
                Output::Close(_) => {
                    self.write(id, turn);
                    let (viewer, conn) = (self.seats[&id].viewer, self.seats[&id].conn);
                    self.hangup(viewer, conn);
                    turn.network.send(Message::Dropped(viewer, conn));
                    return;
                }
            }
        }
        if let Some(news) = self.seats.get_mut(&id).and_then(|it| it.news.take()) {
            self.send(id, &Downlink::Control(news));
        }
        self.write(id, turn);
    }

    fn grant(&self, session: SessionId) -> Grant {
        Grant {
            member: member(session),
            rooms: vec![self.room.clone()],
            life: Duration::from_secs(3600),
            confirm: None,
            resume_ticket: String::new(),
        }
    }

    fn join(&mut self, id: SessionId, join: &Join) -> Joined {
        let seat = self.seats.get_mut(&id).expect("the session that asks is seated");
        let member = seat.session.member().expect("a session that joins has its grant");
        let outcome = match self.hub.join(member, &join.room) {
            Err(refusal) => JoinOutcome::Refused { code: refusal.code(), retry_after_ms: 0 },
            Ok(_) => {
                let reading = match join.path {
                    Path::Segments => Reading::Segments,
                    Path::Push => Reading::Promoted,
                    Path::Auto => Reading::Auto,
                };
                let Entry { heat, path, resumed, news, cursor } =
                    enter(&self.ring, join.resume, reading);
                seat.outbox.follow(join.room.clone(), cursor);
                seat.news = news;
                let (latest, online) = (self.ring.latest(), self.ring.people());
                JoinOutcome::In { heat, path, resumed, latest, online }
            }
        };
        Joined { room: join.room.clone(), outcome }
    }

    fn write(&mut self, id: SessionId, turn: &mut Turn<'_>) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        let mut out = Vec::new();
        seat.outbox.take_own(&mut out);
        while seat.outbox.take(&self.ring, &mut out).expect("the world's links are fast").more {}
        for bytes in out {
            turn.network.send(Message::Down(seat.viewer, seat.conn, bytes));
        }
    }
}

fn member(session: SessionId) -> Arc<Member> {
    Arc::new(Member {
        session,
        app: AppId(1),
        viewer: account(viewer_of(session)),
        role: Role::Viewer,
        may_send: true,
    })
}

fn account(viewer: ViewerNo) -> ViewerId {
    ViewerId::parse(&format!("viewer-{viewer}")).expect("letters and digits are a name")
}
