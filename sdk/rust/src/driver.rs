//! The one task of a client: an event loop around the connection, the rooms and their fetches.

mod aside;
mod frames;
mod jobs;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use proto::close::CloseCode;
use proto::frame::{Comment, Uplink};
use proto::id::{Cid, RoomId};
use proto::limits::ROOMS_PER_SESSION_MAX;
use proto::time::Mono;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use sdk_core::backoff::Backoff;
use sdk_core::bases::Bases;
use sdk_core::poll::Draws;
use sdk_core::room::{Input, Room};
use sdk_core::server_clock::ServerClock;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::client::Command;
use crate::connect::{Established, Learned, Plan, Resume, Setback, establish};
use crate::event::{End, Event};
use crate::options::Options;
use crate::sealed::Rings;
use crate::session::{Due, Session};
use crate::wire::WireError;
use aside::Aside;
use jobs::{Done, Statistics};

/// Shortest and longest time between two reports. A million sessions send 130,000 a second.
const REPORT_MIN: Duration = Duration::from_secs(5);
/// See [`REPORT_MIN`].
const REPORT_MAX: Duration = Duration::from_secs(10);

/// What an attempt to connect gives.
type Attempted = (Learned, Result<Established, Setback>);

/// Drives one client.
pub(crate) struct Driver {
    options: Arc<Options>,
    rng: SmallRng,
    rooms: BTreeMap<RoomId, Room>,
    link: Link,
    server_clock: ServerClock,
    backoff: Backoff,
    resume: Option<Resume>,
    bases: Bases,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    statistics: Statistics,
    aside: Aside,
    rings: Rings,
    report_at: Mono,
    /// Comments without a verdict, with when that is given up.
    unacked: BTreeMap<Cid, (Mono, Comment)>,
    commands: mpsc::Receiver<Command>,
    /// Events that were not given to the application yet; at most what one input causes.
    outbox: VecDeque<Event>,
    events: mpsc::Sender<Event>,
    closed: CancellationToken,
}

/// Where the connection is.
enum Link {
    /// Not before this.
    Waiting(Mono),
    Connecting(BoxFuture<'static, Attempted>),
    Open(Box<Session>),
    /// The last event is out.
    Over,
}

/// What happened to the connection.
enum Step {
    Established(Box<Attempted>),
    Frame(Result<Bytes, WireError>),
}

impl Link {
    /// Waits for what happens next. Cancelling it loses nothing.
    async fn step(&mut self) -> Step {
        match self {
            Self::Waiting(_) | Self::Over => std::future::pending().await,
            Self::Connecting(connecting) => Step::Established(Box::new(connecting.await)),
            Self::Open(session) => Step::Frame(session.wire.recv().await),
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}

impl Driver {
    pub(crate) fn new(
        options: Options,
        commands: mpsc::Receiver<Command>,
        events: mpsc::Sender<Event>,
        closed: CancellationToken,
    ) -> Self {
        let mut rng = SmallRng::seed_from_u64(options.seed);
        let draws = Draws { phase: rng.random(), settle: rng.random() };
        let (tier, limits) = (options.tier, options.bounds.room);
        let wanted = options.rooms.iter().take(ROOMS_PER_SESSION_MAX);
        let room = |(id, path): &(RoomId, _)| {
            (id.clone(), Room::new(id.clone(), *path, tier, draws, limits))
        };
        Self {
            rooms: wanted.map(room).collect(),
            bases: Bases::new(rng.random()),
            report_at: options.clock.mono() + REPORT_MAX.mul_f64(rng.random()),
            rng,
            link: Link::Waiting(Mono(0)),
            server_clock: ServerClock::default(),
            backoff: Backoff::default(),
            resume: None,
            jobs: FuturesUnordered::new(),
            statistics: Statistics::default(),
            aside: Aside::default(),
            rings: Rings::default(),
            unacked: BTreeMap::new(),
            commands,
            outbox: VecDeque::new(),
            events,
            closed,
            options: Arc::new(options),
        }
    }

    /// Runs until the client is closed or must not come back.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let closed = self.closed.clone();
        loop {
            // 1. Do what is wanted; events last, because they may wait for the application.
            self.carry_out().await;
            if !self.tell(&closed).await || matches!(self.link, Link::Over) {
                break;
            }
            // 2. Wait for whatever comes first.
            let sends = self.link.is_open() && self.unacked.len() < self.options.bounds.unacked_max;
            let wake = self.deadline();
            let clock = self.options.clock.clone();
            tokio::select! {
                () = closed.cancelled() => break,
                step = self.link.step() => self.stepped(step).await,
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => self.done(done).await,
                Some(command) = self.commands.recv(), if sends => self.command(command).await,
                () = clock.sleep_until(wake) => {}
            }
            // 3. Fire what is due.
            self.tick().await;
        }
        self.end().await;
        Ok(())
    }

    /// Gives events to the application; false if nobody reads them any more.
    async fn tell(&mut self, closed: &CancellationToken) -> bool {
        while let Some(event) = self.outbox.pop_front() {
            tokio::select! {
                sent = self.events.send(event) => if sent.is_err() { return false },
                () = closed.cancelled() => return false,
            }
        }
        true
    }

    async fn end(&mut self) {
        let wait = self.options.waits.write;
        if let Link::Open(session) = std::mem::replace(&mut self.link, Link::Over) {
            session.wire.close(wait).await;
        }
        if self.closed.is_cancelled() {
            // Nobody may be reading; who reads gets it.
            drop(self.events.send_timeout(Event::Ended(End::Closed), wait).await);
        }
    }

    fn now(&self) -> Mono {
        self.options.clock.mono()
    }

    fn deadline(&self) -> Mono {
        /// An upper bound, so that a mistake in a deadline costs a second and not for ever.
        const WAKE_MAX: Duration = Duration::from_secs(1);
        let mut deadline = self.now() + WAKE_MAX;
        let rooms = self.rooms.values().filter_map(Room::deadline);
        let unacked = self.unacked.values().map(|(until, _)| *until);
        let link = match &self.link {
            Link::Waiting(until) => Some(*until),
            Link::Open(session) => Some(session.deadline().min(self.report_at)),
            Link::Connecting(_) | Link::Over => None,
        };
        for at in rooms.chain(unacked).chain(link) {
            deadline = deadline.min(at);
        }
        deadline
    }

    async fn tick(&mut self) {
        let now = self.now();
        self.rooms.values_mut().for_each(|it| it.tick(now));
        while let Some(entry) = self.unacked.first_entry()
            && now >= entry.get().0
        {
            let (cid, _) = entry.remove_entry();
            self.outbox.push_back(Event::Unanswered { cid });
        }
        if let Link::Waiting(until) = self.link
            && now >= until
        {
            self.connect();
        }
        self.tick_session(now).await;
    }

    async fn tick_session(&mut self, now: Mono) {
        let draw = self.rng.random();
        let Link::Open(session) = &mut self.link else {
            return;
        };
        match session.tick(now, self.options.waits.pong, draw) {
            Due::Nothing => {}
            Due::Ping { nonce } => self.send(&Uplink::Ping { nonce }).await,
            Due::Renew => {
                let authority = session.address.authority();
                self.renew(authority);
            }
            Due::Dead => self.disconnected(None, Duration::ZERO),
        }
        self.report(now).await;
    }

    /// Tells now and then how segments arrive, while they are polled.
    async fn report(&mut self, now: Mono) {
        if now < self.report_at {
            return;
        }
        let spread = (REPORT_MAX - REPORT_MIN).mul_f64(self.rng.random());
        self.report_at = now + REPORT_MIN + spread;
        let bases = self.bases.report(now);
        if let Some(report) = self.statistics.take(bases) {
            self.send(&Uplink::Report(report)).await;
        }
    }

    fn connect(&mut self) {
        let joins = self.rooms.values().map(Room::join).collect();
        let plan = Plan { joins, resume: self.resume.clone(), nonce: self.rng.random() };
        self.link = Link::Connecting(Box::pin(establish(Arc::clone(&self.options), plan)));
    }

    async fn stepped(&mut self, step: Step) {
        let now = self.now();
        match step {
            Step::Established(established) => {
                let (learned, established) = *established;
                self.learn(learned);
                match established {
                    Ok(established) => self.open(established).await,
                    Err(setback) => self.set_back(setback),
                }
            }
            Step::Frame(Ok(frame)) => {
                if let Link::Open(session) = &mut self.link {
                    session.heard(now);
                }
                self.frame(&frame);
            }
            Step::Frame(Err(error)) => {
                tracing::debug!(error = format!("{error:#}"), "the connection ended");
                let code = match error {
                    WireError::Closed(code) => code,
                    WireError::Deadline(_)
                    | WireError::FrameBytes(_)
                    | WireError::Transport(_)
                    | WireError::Host
                    | WireError::Unpinned(_)
                    | WireError::Io(_)
                    | WireError::WebSocket(_) => None,
                };
                self.disconnected(code, Duration::ZERO);
            }
        }
    }

    /// The same to every room.
    fn tell_rooms(&mut self, input: &Input) {
        let now = self.now();
        self.rooms.values_mut().for_each(|it| it.handle(input.clone(), now));
    }

    /// Tells the rooms what time it is at the server.
    fn spread_clock(&mut self) {
        if let Some(offset) = self.server_clock.offset() {
            self.tell_rooms(&Input::Clock(offset));
        }
    }

    async fn open(&mut self, established: Established) {
        let now = self.now();
        self.backoff.connected(now);
        let login_ok = established.login_ok.clone();
        let address = established.address.clone();
        self.link = Link::Open(Box::new(Session::new(established, now, self.rng.random())));
        let (session, role, rooms) = (login_ok.session, login_ok.role, login_ok.rooms.clone());
        self.outbox.push_back(Event::Connected { session, address, role, rooms });
        self.logged_in(login_ok, now);
        // The verdicts of these were lost with the last connection; their numbers make them one.
        let again: Vec<_> = self.unacked.values().map(|(_, it)| it.clone()).collect();
        for comment in again {
            self.send(&Uplink::Comment(comment)).await;
        }
    }

    fn set_back(&mut self, setback: Setback) {
        let now = self.now();
        if let Some(problem) = setback.problem {
            return self.over(End::Enter(problem));
        }
        let draw = self.rng.random();
        let Some(wait) = self.backoff.failed(setback.code, setback.retry_after, now, draw) else {
            return self.over_by(setback.code);
        };
        self.link = Link::Waiting(now + wait);
        if setback.is_read_only {
            self.tell_rooms(&Input::ReadOnly);
            self.outbox.push_back(Event::ReadOnly { retry_in: wait });
        } else {
            self.outbox.push_back(Event::Disconnected { code: setback.code, retry_in: wait });
        }
    }

    /// The connection ended.
    fn disconnected(&mut self, code: Option<CloseCode>, retry_after: Duration) {
        if !self.link.is_open() {
            return;
        }
        if code == Some(CloseCode::Expired) {
            self.resume = None;
        }
        self.tell_rooms(&Input::Disconnected);
        self.set_back(Setback { code, retry_after, ..Setback::default() });
    }

    fn over_by(&mut self, code: Option<CloseCode>) {
        self.over(code.map_or(End::Closed, End::Code));
    }

    fn over(&mut self, end: End) {
        self.link = Link::Over;
        self.outbox.push_back(Event::Ended(end));
    }

    /// Sends a frame, if there is a connection; one that cannot be written to is left.
    async fn send(&mut self, frame: &Uplink) {
        let Link::Open(session) = &mut self.link else {
            return;
        };
        if let Err(error) = session.send(frame, self.options.waits.write).await {
            tracing::debug!(error = format!("{error:#}"), "a frame was not sent");
            self.disconnected(None, Duration::ZERO);
        }
    }

    async fn command(&mut self, command: Command) {
        let frame = match command {
            Command::Comment(comment) => {
                let until = self.now() + self.options.waits.verdict;
                self.unacked.insert(comment.cid, (until, comment.clone()));
                Uplink::Comment(comment)
            }
            Command::Like { room, count } => Uplink::Like { room, count },
            Command::Catalogue { room } => return self.fetch_catalogue(room, None),
        };
        self.send(&frame).await;
    }
}
