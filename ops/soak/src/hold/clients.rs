//! A process full of clients, and how it is spoken with: it says how many are in once a second, and
//! reports what they had when it is told anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use kit::clock::Clock;
use kit::task::Tasks;
use proto::address::Transport;
use proto::enter::{Client, EnterRequest};
use proto::frame::{Credential, Downlink, Join, JoinOutcome, Path, Uplink};
use proto::id::{RoomId, ViewerId};
use proto::time::Mono;
use sdk::raw::{self, Raw};
use serde::{Deserialize, Serialize};
use stack::Identity;
use stack::crowd::{signer, ticket_source};
use tokio::sync::Semaphore;

use crate::aside::{self, Aside, say};

/// The first argument of this executable when it is to be clients.
pub(crate) const NAME: &str = "hold-clients";
/// Logins at a time.
const LOGINS: usize = 32;
/// One step of a login, or a heartbeat's answer.
const STEP_MAX: Duration = Duration::from_secs(20);
/// Between two attempts.
const RETRY: Duration = Duration::from_millis(200);
/// How often those that are in are told.
const TELL: Duration = Duration::from_secs(1);

/// What the process is told.
#[derive(Deserialize, Serialize)]
pub(super) struct Orders {
    /// Accounts from this number on,
    pub(super) first: usize,
    /// up to this one, which is not among them.
    pub(super) end: usize,
    pub(super) enter_url: String,
    pub(super) ca_pem: String,
    pub(super) room: RoomId,
    pub(super) identity: Identity,
    /// Each is in within so many seconds.
    pub(super) in_s_max: u64,
}

/// What the process says.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// So many are in.
    In(usize),
    /// What they had since the last report.
    Report(Report),
}

/// What clients had.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Report {
    /// Heartbeats that were answered.
    pub(super) beats: u64,
    /// Sessions that ended.
    pub(super) lost: u64,
    /// Sessions without any heartbeat.
    pub(super) silent: u64,
}

/// The process, as the run has it. It ends when this is dropped.
pub(super) struct Clients {
    aside: Aside,
    are_in: usize,
}

impl Clients {
    pub(super) async fn start(orders: &Orders) -> anyhow::Result<Self> {
        let aside = Aside::start(aside::itself(NAME)?, orders).await?;
        Ok(Self { aside, are_in: 0 })
    }

    /// How many are in, as it said last.
    pub(super) const fn are_in(&self) -> usize {
        self.are_in
    }

    /// Waits for what it says next.
    pub(super) async fn hear(&mut self, at_most: Duration) -> anyhow::Result<Option<Report>> {
        Ok(match self.aside.hear(at_most).await? {
            Said::In(are_in) => {
                self.are_in = are_in;
                None
            }
            Said::Report(report) => Some(report),
        })
    }

    /// Asks what they had.
    pub(super) async fn report(&mut self, at_most: Duration) -> anyhow::Result<Report> {
        self.aside.tell("report").await?;
        loop {
            if let Some(report) = self.hear(at_most).await? {
                return Ok(report);
            }
        }
    }
}

/// All sessions of the process.
struct Host {
    orders: Orders,
    http: reqwest::Client,
    tls: channel::ClientTls,
    clock: Clock,
    logins: Semaphore,
    deadline: Mono,
    seats: Vec<Seat>,
}

#[derive(Default)]
struct Seat {
    is_in: AtomicBool,
    is_lost: AtomicBool,
    beats: AtomicU64,
}

/// Is the clients' process.
///
/// # Errors
/// When orders make no sense or there are too few descriptors.
pub(crate) async fn run() -> anyhow::Result<()> {
    let (orders, mut input) = aside::orders::<Orders>().await?;
    let sessions = orders.end - orders.first;
    let allowed = kit::process::raise_descriptors()?;
    ensure!(sessions as u64 + 256 <= allowed, "{sessions} sessions, and {allowed} descriptors");
    let tls = channel::ClientTls::trusting(&orders.ca_pem)?;
    let clock = Clock::system();
    let host = Arc::new(Host {
        http: sdk::http::client(&tls)?,
        tls,
        logins: Semaphore::new(LOGINS),
        deadline: clock.mono() + Duration::from_secs(orders.in_s_max),
        seats: (0..sessions).map(|_| Seat::default()).collect(),
        clock,
        orders,
    });
    let mut tasks = Tasks::default();
    for number in 0..sessions {
        let host = Arc::clone(&host);
        tasks.spawn("session", async move { host.hold(number).await });
    }
    loop {
        tokio::select! {
            line = input.next_line() => match line? {
                Some(_) => say(&Said::Report(host.report()))?,
                None => return Ok(()),
            },
            () = host.clock.sleep(TELL) => say(&Said::In(host.are_in()))?,
            Some(ended) = tasks.next() => ended?,
        }
    }
}

impl Host {
    /// Comes in, and sends heartbeats for as long as the session lives.
    async fn hold(&self, number: usize) -> anyhow::Result<()> {
        let seat = &self.seats[number];
        let (mut session, beat) = loop {
            let place = self.logins.acquire().await?;
            match self.come_in(number).await {
                Ok(come) => break come,
                Err(error) if self.clock.mono() >= self.deadline => return Err(error),
                Err(_) => {}
            }
            drop(place);
            self.clock.sleep(RETRY).await;
        };
        seat.is_in.store(true, Ordering::Relaxed);
        for nonce in 0.. {
            self.clock.sleep(beat).await;
            if beat_once(&mut session, nonce).await.is_err() {
                seat.is_lost.store(true, Ordering::Relaxed);
                return Ok(());
            }
            seat.beats.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives the session, and how often it is to speak.
    async fn come_in(&self, number: usize) -> anyhow::Result<(Raw, Duration)> {
        let Self { orders, http, tls, clock, .. } = self;
        let app = orders.identity.app();
        let account = ViewerId::parse(&format!("held-{}", orders.first + number))?;
        let ticket = ticket_source(&Arc::new(signer(&app)?), &app, &account, &orders.room, clock)();
        let client = Client { transports: vec![Transport::Tls], ..Client::default() };
        let request = EnterRequest { ticket, client, ..EnterRequest::default() };
        let entered = sdk::enter::enter(http, &orders.enter_url, &request, STEP_MAX).await?;
        let offer = entered.addresses.into_iter().next().context("there is no address")?;
        let mut session = raw::connect(&offer.address, Some(tls), STEP_MAX).await?;
        let join = Join { room: orders.room.clone(), path: Path::Push, resume: None };
        session.login(Credential::Token(offer.token), None, vec![join]).await?;
        let greeting = session.recv().await?;
        let Downlink::Welcome(welcome) = greeting else { bail!("not greeted: {greeting:?}") };
        let answer = session.recv().await?;
        let Downlink::LoginOk(login_ok) = answer else { bail!("not logged in: {answer:?}") };
        let outcome = login_ok.rooms.first().map(|it| &it.outcome);
        let is_in = matches!(outcome, Some(JoinOutcome::In { .. }));
        ensure!(is_in, "not in the room: {outcome:?}");
        Ok((session, Duration::from_millis(welcome.heartbeat_ms.into())))
    }

    fn are_in(&self) -> usize {
        self.seats.iter().filter(|it| it.is_in.load(Ordering::Relaxed)).count()
    }

    /// What they had since it was last asked.
    fn report(&self) -> Report {
        let beats = self.seats.iter().map(|it| it.beats.swap(0, Ordering::Relaxed));
        let beats: Vec<u64> = beats.collect();
        let lost = self.seats.iter().filter(|it| it.is_lost.load(Ordering::Relaxed)).count();
        Report {
            silent: beats.iter().filter(|&&it| it == 0).count() as u64,
            beats: beats.iter().sum(),
            lost: lost as u64,
        }
    }
}

/// Sends a heartbeat, and reads until it is answered.
async fn beat_once(session: &mut Raw, nonce: u64) -> anyhow::Result<()> {
    session.send(&Uplink::Ping { nonce }).await?;
    loop {
        let frame = session.recv().await?;
        if matches!(frame, Downlink::Pong { nonce: answered, .. } if answered == nonce) {
            return Ok(());
        }
        ensure!(!matches!(frame, Downlink::Close(_)), "closed: {frame:?}");
    }
}
