//! Who hears what, and when: messages on their way, in virtual time.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::envelope::{Accepted, Reply, RoomEvent, UplinkEntry};
use proto::id::{SessionId, SlotNo};
use proto::segment::Segment;
use proto::time::Mono;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// A viewer's number.
pub(crate) type ViewerNo = usize;
/// Which of a viewer's connections, one after the other.
pub(crate) type ConnNo = u32;

/// The session of a connection.
pub(crate) fn session_of(viewer: ViewerNo, conn: ConnNo) -> SessionId {
    SessionId((u64::from(conn) << 16) | viewer as u64)
}

pub(crate) fn viewer_of(session: SessionId) -> ViewerNo {
    usize::try_from(session.0 & 0xffff).unwrap_or(0)
}

/// What arrives somewhere.
#[derive(Clone, Debug)]
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
    /// On `accepted`.
    Accepted(Box<Accepted>),
    /// On `sealed` and `downlink`.
    Room(Box<RoomEvent>),
    /// A fetched segment at a viewer; none if the fetch failed.
    Fetched(ViewerNo, SlotNo, Option<Box<Segment>>),
}

/// Messages of one way keep their order; ways do not wait for each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Way {
    Up(ViewerNo, ConnNo),
    Down(ViewerNo, ConnNo),
    Uplink(ViewerNo),
    Reply,
    Accepted,
    Room,
    Fetch(ViewerNo),
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
        let (way, delay_ms) = match &message {
            Message::Up(viewer, conn, _) | Message::Hangup(viewer, conn) => {
                (Way::Up(*viewer, *conn), 5..60)
            }
            Message::Down(viewer, conn, _) | Message::Dropped(viewer, conn) => {
                (Way::Down(*viewer, *conn), 5..60)
            }
            Message::Uplink(entry) => (Way::Uplink(viewer_of(entry.session)), 1..20),
            Message::Reply(_) => (Way::Reply, 1..20),
            Message::Accepted(_) => (Way::Accepted, 1..20),
            Message::Room(_) => (Way::Room, 1..20),
            Message::Fetched(viewer, ..) => (Way::Fetch(*viewer), 10..150),
        };
        let arrival = Mono(self.now.0 + self.rng.random_range(delay_ms));
        let last = self.last.entry(way).or_default();
        let arrival = arrival.max(*last);
        *last = arrival;
        self.sent += 1;
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
}
