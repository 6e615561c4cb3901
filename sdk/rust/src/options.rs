//! What a client is told at its start.

use std::sync::Arc;
use std::time::Duration;

use channel::ClientTls;
use futures_util::future::BoxFuture;
use kit::clock::Clock;
use proto::address::Transport;
use proto::enter::Class;
use proto::frame::Path;
use proto::head::Tier;
use proto::id::{AppId, DeviceId, RoomId};
use proto::limits::HOLD_MS_MAX;

use crate::wire::Udp;

/// Gives tickets: asked each time before the client enters.
///
/// A `String` is one ticket for all times; a function that returns a `String` makes new ones.
pub trait TicketSource: Send + Sync {
    /// A ticket that is valid now.
    fn ticket(&self) -> BoxFuture<'_, anyhow::Result<String>>;
}

impl TicketSource for String {
    fn ticket(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

impl<F: Fn() -> String + Send + Sync> TicketSource for F {
    fn ticket(&self) -> BoxFuture<'_, anyhow::Result<String>> {
        Box::pin(std::future::ready(Ok(self())))
    }
}

/// What a client enters with.
#[derive(Clone)]
pub enum Entry {
    /// A ticket of the business server.
    Ticket(Arc<dyn TicketSource>),
    /// Nothing: a room whose policy lets viewers in without a ticket, and no other room. The client
    /// has a passing account, which it loses when its session's life is over: it comes back as
    /// another then, and a comment under way at that moment may be shown twice.
    NoTicket {
        /// Whose room.
        app: AppId,
        /// Which.
        room: RoomId,
    },
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ticket(_) => f.write_str("Ticket(…)"),
            Self::NoTicket { app, room } => write!(f, "NoTicket({app}, {room})"),
        }
    }
}

impl<T: TicketSource + 'static> From<Arc<T>> for Entry {
    fn from(source: Arc<T>) -> Self {
        Self::Ticket(source)
    }
}

/// What a client is told at its start.
#[derive(Clone)]
pub struct Options {
    /// Address of `enter`, such as `https://enter.example/v1/enter`.
    pub enter_url: String,
    /// What the client enters with.
    pub entry: Entry,
    /// Rooms to be in, and how their items should come; at most
    /// [`proto::limits::ROOMS_PER_SESSION_MAX`].
    pub rooms: Vec<(RoomId, Path)>,
    /// What kind of client this is: `enter` orders the delivery paths by it.
    pub class: Class,
    /// Transports that may be used.
    pub transports: Vec<Transport>,
    /// The device's name, bound into the token.
    pub device: Option<DeviceId>,
    /// Whom to believe that it is a link, over `tls`, `wss` and `quic`; without it these are not
    /// used.
    /// [`ClientTls::pinned`] believes known keys only.
    pub tls: Option<ClientTls>,
    /// The same over `national`, from [`ClientTls::national`]. A viewer who must use the national
    /// suites sets this, allows [`Transport::National`] alone, and nothing else is offered.
    pub national: Option<ClientTls>,
    /// What QUIC goes through; share one among many clients. Without it each connection has its
    /// own.
    pub udp: Option<Udp>,
    /// For `enter` and segments; share one among many clients. See [`crate::http::client`].
    pub http: reqwest::Client,
    /// How much of each segment is wanted.
    pub tier: Tier,
    /// Tells the time. The server's time never comes from its wall.
    pub clock: Clock,
    /// For jitter, phases and nonces; clients of one process need different ones.
    pub seed: u64,
    /// Bounds.
    pub bounds: Bounds,
    /// Deadlines.
    pub waits: Waits,
}

impl Options {
    /// The usual options; add rooms.
    #[must_use]
    pub fn new(
        enter_url: String,
        entry: impl Into<Entry>,
        http: reqwest::Client,
        clock: Clock,
        seed: u64,
    ) -> Self {
        Self {
            enter_url,
            entry: entry.into(),
            rooms: Vec::new(),
            class: Class::Native,
            transports: vec![
                Transport::Tls,
                Transport::Wss,
                Transport::Quic,
                Transport::Tcp,
                Transport::Ws,
            ],
            device: None,
            tls: None,
            national: None,
            udp: None,
            http,
            tier: Tier::Full,
            clock,
            seed,
            bounds: Bounds::default(),
            waits: Waits::default(),
        }
    }

    /// Whether an address of this kind can be used.
    pub(crate) fn speaks(&self, transport: Transport) -> bool {
        let is_spoken = match transport {
            Transport::Tls | Transport::Wss | Transport::Quic | Transport::National => {
                self.tls(transport).is_some()
            }
            Transport::Tcp | Transport::Ws => true,
        };
        is_spoken && self.transports.contains(&transport)
    }

    /// Whom to believe over a transport.
    pub(crate) const fn tls(&self, transport: Transport) -> Option<&ClientTls> {
        match transport {
            Transport::National => self.national.as_ref(),
            Transport::Tls | Transport::Wss | Transport::Quic => self.tls.as_ref(),
            Transport::Tcp | Transport::Ws => None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("enter_url", &self.enter_url)
            .field("entry", &self.entry)
            .field("rooms", &self.rooms)
            .field("transports", &self.transports)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// How much a client keeps.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Events that wait to be read; when they are this many, the client stops reading.
    pub events_max: usize,
    /// Comments and likes that wait to be sent.
    pub sends_max: usize,
    /// Comments without a verdict; more wait to be sent.
    pub unacked_max: usize,
    /// How much each room remembers and fetches at once.
    pub room: sdk_core::room::Limits,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            events_max: 1_024,
            sends_max: 64,
            unacked_max: 64,
            room: sdk_core::room::Limits::default(),
        }
    }
}

/// A room may hold a comment back for so long, and then it takes its usual way.
const VERDICT: Duration = Duration::from_millis(HOLD_MS_MAX as u64 + 10_000);

/// How long a client waits.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// For `enter`.
    pub enter: Duration,
    /// For one address: TCP, TLS and WebSocket together, or QUIC. Short, because the next one waits:
    /// where UDP does not pass, nothing answers.
    pub connect: Duration,
    /// For the answers to Hello and Login.
    pub login: Duration,
    /// For a write. A link that does not read for this long is left.
    pub write: Duration,
    /// For a Pong.
    pub pong: Duration,
    /// For a segment or a head. An origin may hold the question for interval + 500 ms.
    pub fetch: Duration,
    /// For the verdict on a comment, which a room may hold back for [`HOLD_MS_MAX`].
    pub verdict: Duration,
    /// Between a login and its renewal, however soon the session ends.
    pub renew_min: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            enter: Duration::from_secs(5),
            connect: Duration::from_secs(3),
            login: Duration::from_secs(5),
            write: Duration::from_secs(5),
            pong: Duration::from_secs(10),
            fetch: Duration::from_secs(5),
            verdict: VERDICT,
            renew_min: Duration::from_secs(30),
        }
    }
}
