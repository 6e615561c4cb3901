//! Who hears what, and when: messages on their way, in virtual time.

use std::collections::BTreeMap;

use broadcaster_core::room::Sealed;
use bytes::Bytes;
use proto::envelope::{Accepted, Reply, RoomEvent, UplinkEntry};
use proto::head::GenInfo;
use proto::id::{ItemId, SessionId};
use proto::time::Mono;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::store::{Answer, Question};

/// A viewer's number.
pub(crate) type ViewerNo = usize;
/// Which of a viewer's connections, one after the other.
pub(crate) type ConnNo = u32;
/// Which of the broadcaster's lives, one after the other.
pub(crate) type LifeNo = u32;

/// The session of a connection.
pub(crate) fn session_of(viewer: ViewerNo, conn: ConnNo) -> SessionId {
    SessionId((u64::from(conn) << 16) | viewer as u64)
}

pub(crate) fn viewer_of(session: SessionId) -> ViewerNo {
    usize::try_from(session.0 & 0xffff).unwrap_or(0)
}

/// What arrives somewhere.
#[derive(Debug)]
pub(crate) enum Message {
    /// A frame at the link.
    Up(ViewerNo, ConnNo, Bytes),
    /// Bytes at a viewer.
    Down(ViewerNo, ConnNo, Bytes),
    /// A connection's end, at the link.
    Hangup(ViewerNo, ConnNo),
    /// A connection's end, at the viewer.
    Dropped(ViewerNo, ConnNo),
    /// On `uplink`.
    Uplink(UplinkEntry),
    /// On `reply`.
    Reply(Reply),
    /// A gift with its key, at the chatserver.
    Gift(u32),
    /// The acknowledgement of a gift and its item, at the business server.
    Receipt(u32, ItemId),
    /// On `accepted`.
    Accepted(Box<Accepted>),
    /// On `sealed`, at the chatserver.
    Sealed(Box<RoomEvent>),
    /// On `downlink`.
    Downlink(Box<RoomEvent>),
    /// A new gen, at the store.
    Open(LifeNo, GenInfo),
    /// A slot's files, at the store.
    Store(LifeNo, Box<Sealed>),
    /// A viewer's question, at the origin.
    Ask(ViewerNo, Question),
    /// The answer, at the viewer.
    Answer(ViewerNo, Question, Box<Answer>),
}

/// Messages of one way keep their order; ways do not wait for each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Way {
    Up(ViewerNo, ConnNo),
    Down(ViewerNo, ConnNo),
    Uplink(ViewerNo),
    Reply,
    Business,
    Accepted,
    Sealed,
    Downlink,
    Store(LifeNo),
    Question(u64),
}

/// The network, and the world's only source of chance.
pub(crate) struct Network {
    pub(crate) rng: SmallRng,
    now: Mono,
    sent: u64,
    waiting: BTreeMap<(Mono, u64), Message>,
    last: BTreeMap<Way, Mono>,
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            now: Mono(0),
            sent: 0,
            waiting: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// Sends a message; it arrives after a delay, behind earlier ones of its way.
    pub(crate) fn send(&mut self, message: Message) {
        self.sent += 1;
        let (way, delay_ms) = match &message {
            Message::Up(viewer, conn, _) | Message::Hangup(viewer, conn) => {
                (Way::Up(*viewer, *conn), 5..60)
            }
            Message::Down(viewer, conn, _) | Message::Dropped(viewer, conn) => {
                (Way::Down(*viewer, *conn), 5..60)
            }
            Message::Uplink(entry) => (Way::Uplink(viewer_of(entry.session)), 1..20),
            Message::Reply(_) => (Way::Reply, 1..20),
            Message::Gift(_) | Message::Receipt(..) => (Way::Business, 5..60),
            Message::Accepted(_) => (Way::Accepted, 1..20),
            Message::Sealed(_) => (Way::Sealed, 1..20),
            Message::Downlink(_) => (Way::Downlink, 1..20),
            Message::Open(life, _) | Message::Store(life, ..) => (Way::Store(*life), 5..100),
            Message::Ask(..) | Message::Answer(..) => (Way::Question(self.sent), 5..80),
        };
        let arrival = Mono(self.now.0 + self.draw(delay_ms));
        let arrival = arrival.max(self.last.get(&way).copied().unwrap_or_default());
        if !matches!(way, Way::Question(_)) {
            self.last.insert(way, arrival);
        }
        self.waiting.insert((arrival, self.sent), message);
    }

    /// The next message that has arrived at `now`.
    pub(crate) fn arrived(&mut self, now: Mono) -> Option<Message> {
        self.now = now;
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// True with this chance in a thousand.
    pub(crate) fn chance(&mut self, permille: u32) -> bool {
        self.rng.random_range(0..1000) < permille
    }

    /// A number of this range.
    pub(crate) fn draw(&mut self, range: std::ops::Range<u64>) -> u64 {
        self.rng.random_range(range)
    }
}
