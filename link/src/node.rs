//! What all sessions of a node share, and what happens to rooms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use anyhow::Context;
use auth_core::policy::Policies;
use kit::clock::Clock;
use link_core::Now;
use link_core::board::Boards;
use link_core::bucket::{Bucket, Rate};
use link_core::departures::{Departure, Departures};
use link_core::failures::Failures;
use link_core::hub::{Hub, Member};
use link_core::moves::Moves;
use link_core::places::Places;
use link_core::quality::Quality;
use link_core::ring::{Cursor, Limits};
use link_core::signs::Signs;
use link_core::turnstile::Turnstile;
use parking_lot::Mutex;
use proto::envelope::{Act, UplinkEntry};
use proto::frame::Control;
use proto::id::{RoomId, SessionId};
use proto::time::Wall;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::{Notify, watch};

use crate::config::{Config, ms};
use crate::counts::Counts;
use crate::door::Door;
use crate::drain::Order;
use crate::line::Lines;
use crate::poller::Poller;
use crate::pump::Pump;
use crate::room_keys::Vault;
use crate::rooms::{Room, Rooms};
use crate::uplink::Uplink;

/// Share of `ring_bytes_max` for what must not be missed.
const KEPT_SHARE: usize = 4;

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    /// When this process began, as its load reports say.
    pub(crate) start: Wall,
    pub(crate) counts: Counts,
    pub(crate) door: Door,
    pub(crate) failures: Mutex<Failures>,
    pub(crate) hub: Mutex<Hub>,
    pub(crate) boards: Mutex<Boards>,
    pub(crate) vault: Vault,
    pub(crate) rooms: Rooms,
    pub(crate) lines: Lines,
    pub(crate) pump: Arc<Pump>,
    pub(crate) poller: Poller,
    pub(crate) departures: Mutex<Departures>,
    /// Rung when a leave waits.
    pub(crate) left: Notify,
    pub(crate) uplink: Uplink,
    /// How many may come into rooms.
    pub(crate) turnstile: Mutex<Turnstile>,
    /// How many comments of all sessions are passed on.
    pub(crate) comments: Mutex<Bucket>,
    pub(crate) traffic: Traffic,
    pub(crate) quality: Mutex<Quality>,
    /// Connections that came to nothing.
    pub(crate) signs: Mutex<Signs>,
    /// Places for connections before login, at listeners that everybody is told of.
    pub(crate) places: Arc<Mutex<Places>>,
    /// The same at reserve listeners.
    pub(crate) reserve_places: Arc<Mutex<Places>>,
    moves: Mutex<Moves>,
    /// Where the sessions may go on, once the node drains and was told.
    pub(crate) drain_order: watch::Sender<Option<Order>>,
    rng: Mutex<StdRng>,
    next_session: AtomicU64,
}

/// A session's place in a room.
pub(crate) struct Seat {
    pub(crate) room: Arc<Room>,
    pub(crate) cursor: Cursor,
    /// To be said right after the answer.
    pub(crate) news: Option<Control>,
}

/// What load reports tell.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sessions: AtomicU32,
    pub(crate) handshakes: AtomicU32,
    pub(crate) logins: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) draining: AtomicBool,
    /// Rung when any of it changes in a way that gslb should know soon.
    pub(crate) changed: Notify,
    /// Rung when gslb should know at once.
    pub(crate) urgent: Notify,
}

impl Node {
    /// A node with nobody on it.
    ///
    /// # Errors
    /// When used tokens cannot be kept, or the system has no descriptor left.
    pub(crate) fn open(
        config: Config,
        clock: Clock,
        counts: Counts,
        policies: Policies,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let ring_limits = Limits {
            bytes_max: config.ring_bytes_max,
            kept_bytes_max: config.ring_bytes_max / KEPT_SHARE,
            keep: ms(config.ring_ms),
        };
        // A tenth of a second's worth at once: a mass disconnect is told evenly.
        let pace = Rate { burst: config.leaves_per_s / 10, per_s: config.leaves_per_s };
        let comments = Rate { burst: config.comments_per_s, per_s: config.comments_per_s };
        let places = || Places::new(config.handshakes_max, config.site_places_max());
        let start = clock.wall();
        let secret = kit::seed::random_bytes().context("cannot draw a secret")?;
        Ok(Self {
            signs: Mutex::new(Signs::new(config.siege.site_signs_max())),
            places: Arc::new(Mutex::new(places())),
            reserve_places: Arc::new(Mutex::new(places())),
            moves: Mutex::new(Moves::new(start)),
            drain_order: watch::Sender::default(),
            door: Door::open(&config, policies, counts.clone(), start)?,
            failures: Mutex::default(),
            hub: Mutex::new(Hub::new(config.rooms_max, u128::from_le_bytes(secret))),
            boards: Mutex::new(Boards::new(config.rooms_max)),
            vault: Vault::new(config.rooms_max),
            rooms: Rooms::new(ring_limits, config.rooms_max),
            lines: Lines::new(),
            pump: Arc::default(),
            poller: Poller::new().context("sockets cannot be watched")?,
            departures: Mutex::new(Departures::new(config.leaves_max, pace)),
            left: Notify::new(),
            uplink: Uplink::new(config.unit, config.uplink_entries_max),
            turnstile: Mutex::new(Turnstile::new(config.entry.limits(config.rooms_max))),
            comments: Mutex::new(Bucket::new(comments)),
            traffic: Traffic::default(),
            quality: Mutex::default(),
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            next_session: AtomicU64::new(first_session(start)),
            clock,
            start,
            counts,
            config,
        })
    }

    pub(crate) fn now(&self) -> Now {
        Now { mono: self.clock.mono(), wall: self.clock.wall() }
    }

    /// A number that no session of this node ever had.
    pub(crate) fn new_session(&self) -> SessionId {
        SessionId(self.next_session.fetch_add(1, Ordering::Relaxed))
    }

    /// A number of milliseconds by chance, both ends included.
    pub(crate) fn draw_ms(&self, from: u32, to: u32) -> u32 {
        self.rng.lock().random_range(from..=to.max(from))
    }

    /// Whether the node drains, in the life that began at `start` as gslb knows it.
    pub(crate) fn is_drain_of(&self, start: Wall) -> bool {
        let began = self.config.worker.map_or(self.start, |it| it.node_start);
        self.is_draining() && start == began
    }

    /// Whether an order to move within `window_ms`, decided at `at`, counts; remembers it.
    pub(crate) fn take_move(&self, at: Wall, window_ms: u32) -> bool {
        self.moves.lock().take(at, ms(window_ms), self.clock.wall())
    }

    /// Places held before login: the public ones or the reserve's, whichever are more.
    pub(crate) fn places_taken(&self) -> u32 {
        let taken = self.places.lock().taken();
        taken.max(self.reserve_places.lock().taken())
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.traffic.draining.load(Ordering::Relaxed)
    }

    /// Takes a session out of a room; the chatservers are told in due course.
    pub(crate) fn leave(&self, member: &Arc<Member>, room: &RoomId) {
        if self.hub.lock().leave(member, room) {
            self.gone(member, room);
        }
    }

    /// Takes a session out of everything.
    pub(crate) fn depart(&self, member: &Arc<Member>) {
        let rooms = self.hub.lock().depart(member);
        for room in &rooms {
            self.gone(member, room);
        }
    }

    fn gone(&self, member: &Arc<Member>, room_id: &RoomId) {
        if let Some(room) = self.rooms.find(room_id) {
            room.forget(member.session);
        }
        let departure = Departure { member: Arc::clone(member), room: room_id.clone() };
        if self.departures.lock().push(departure).is_err() {
            self.counts.leaves_untold.inc();
        }
        self.left.notify_one();
    }

    /// Hands leaves to the uplink, as many as may go now.
    pub(crate) fn tell_leaves(&self) {
        let now = self.now();
        loop {
            let Some(Departure { member, room }) = self.departures.lock().poll(now.mono) else {
                break;
            };
            let entry = UplinkEntry {
                session: member.session,
                app: member.app,
                room,
                viewer: member.viewer.clone(),
                role: member.role,
                may_send: member.may_send,
                at: now.wall,
                origin: None,
                act: Act::Leave,
            };
            if self.uplink.push(entry).is_err() {
                self.counts.leaves_untold.inc();
            }
        }
        let waiting = self.departures.lock().len();
        self.counts.leaves.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }
}

/// Sessions are numbered from the time of the start on: facts about sessions of an earlier life,
/// which `control` keeps, must not hit a new one. A million a second would have to log in to
/// catch up with the clock.
const fn first_session(start: Wall) -> u64 {
    start.0.saturating_mul(1000)
}
