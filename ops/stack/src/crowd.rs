//! A crowd: viewers with real SDKs and sockets, a script to play, and books on every item.
//!
//! Every other viewer reads pushes, the others poll segments; transports take turns. What the
//! room's ledger says was sealed is compared with what each viewer was given.

mod audit;
mod book;
mod fault;
mod summary;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::app::{App, TicketAlg};
use auth_core::secret::Secret;
use auth_core::ticket::{Claims, Signer};
use bus::{At, Bus, Tail, Tailed};
use channel::ClientTls;
use kit::clock::Clock;
use kit::seed::derive;
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::address::Transport;
use proto::envelope::{RoomBatch, RoomEvent};
use proto::frame::Path;
use proto::id::{RoomId, ViewerId};
use proto::time::Mono;
use sdk::{Client, Event, Events, Options};

use crate::replay::Script;
use audit::Audit;
use book::{Book, Side};
use fault::Spoiler;

pub use fault::{Fault, FaultKind};
pub use summary::{Latency, Quantiles, Received, Summary};

/// Viewers of one crowd: two descriptors each, with their sessions in the same process.
pub const VIEWERS_MAX: usize = 4_000;
/// All viewers must be in within this time.
const CONNECT_MAX: Duration = Duration::from_secs(60);
/// The first slot must be sealed within this time.
const FIRST_SLOT_MAX: Duration = Duration::from_secs(15);
/// Every comment must have its fate within this time after the last was sent.
const SETTLE_MAX: Duration = Duration::from_secs(15);
/// Every viewer must have everything within this time after that.
const DELIVER_MAX: Duration = Duration::from_secs(15);
/// How often the books are looked at while waiting.
const LOOK: Duration = Duration::from_millis(50);
/// Slots that must be sealed after the last viewer came in and before the first comment.
const CALM_SLOTS: u64 = 2;
/// Life of a ticket.
const TICKET_LIFE_S: u64 = 3600;

/// What a crowd is made of.
pub struct Plan {
    /// How many viewers, at most [`VIEWERS_MAX`].
    pub viewers: usize,
    /// Where they go.
    pub room: RoomId,
    /// Where they enter.
    pub enter_url: String,
    /// The app that signs their tickets, with an HS256 key.
    pub app: App,
    /// Whom they believe.
    pub tls: ClientTls,
    /// The bus whose `sealed` is the ledger.
    pub bus: Arc<dyn Bus>,
    /// Time.
    pub clock: Clock,
    /// Seed of everything drawn.
    pub seed: u64,
    /// What spoils the items on their way into the books.
    pub faults: Vec<Fault>,
    /// Gets a JSON line per comment once its fate is known.
    pub log: Option<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("viewers", &self.viewers).finish_non_exhaustive()
    }
}

/// A crowd whose viewers are all in the room.
#[derive(Debug)]
pub struct Crowd {
    room: RoomId,
    clock: Clock,
    clients: Vec<Client>,
    shared: Arc<Shared>,
    readers: Tasks,
    ledger: Tasks,
}

/// What viewers' tasks and the ledger's write to.
struct Shared {
    clock: Clock,
    books: Mutex<Books>,
    connected: AtomicUsize,
    seals: AtomicU64,
}

struct Books {
    book: Book,
    spoiler: Spoiler<(proto::id::ItemId, proto::frame::Place)>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Crowd {
    /// Brings all viewers into the room.
    ///
    /// # Errors
    /// When the plan cannot work, or viewers or the room's first slot did not come in time.
    pub async fn start(plan: Plan) -> anyhow::Result<Self> {
        ensure!(
            (1..=VIEWERS_MAX).contains(&plan.viewers),
            "a crowd has 1 to {VIEWERS_MAX} viewers"
        );
        let accounts: Vec<ViewerId> =
            (0..plan.viewers).map(account).collect::<anyhow::Result<_>>()?;
        let sides = (0..plan.viewers).map(side).collect();
        let shared = Arc::new(Shared {
            clock: plan.clock.clone(),
            books: Mutex::new(Books {
                book: Book::new(accounts.clone(), sides, plan.log),
                spoiler: Spoiler::new(plan.faults),
            }),
            connected: AtomicUsize::new(0),
            seals: AtomicU64::new(0),
        });
        let mut ledger = Tasks::default();
        let topic = bus::topic::sealed();
        let partition = topic.partition_of_room(&plan.room);
        let tail = Tail::open(plan.bus, topic, vec![partition], At::End).await?;
        ledger.spawn("ledger", follow(tail, plan.room.clone(), Arc::clone(&shared)));
        wait(&plan.clock, FIRST_SLOT_MAX, || shared.seals.load(Ordering::Relaxed) > 0)
            .await
            .context("the room's first slot was not sealed")?;

        let http = sdk::http::client(&plan.tls)?;
        let signer = Arc::new(signer(&plan.app)?);
        let mut clients = Vec::with_capacity(plan.viewers);
        let mut readers = Tasks::default();
        for (number, account) in accounts.into_iter().enumerate() {
            let ticket = ticket_source(&signer, &plan.app, &account, &plan.room, &plan.clock);
            let seed = derive(plan.seed, account.as_str());
            let mut options = Options::new(
                plan.enter_url.clone(),
                Arc::new(ticket),
                http.clone(),
                plan.clock.clone(),
                seed,
            );
            options.rooms = vec![(plan.room.clone(), path(number))];
            options.transports = vec![transport(number)];
            options.tls = Some(plan.tls.clone());
            let (client, events) = Client::start(options);
            clients.push(client);
            readers.spawn("viewer", read(number, events, Arc::clone(&shared)));
        }
        let crowd = Self { room: plan.room, clock: plan.clock, clients, shared, readers, ledger };
        crowd.come_in().await?;
        Ok(crowd)
    }

    /// Deals a script's comments over the viewers, each at its time. `until` ends it early.
    pub async fn play(&self, script: &Script, speed: f64, until: Option<Mono>) {
        let start_us = self.clock.micros();
        for (number, comment) in script.comments.iter().enumerate() {
            let media = Duration::from_millis(comment.media_ms).div_f64(speed);
            let due_us = start_us + u64::try_from(media.as_micros()).unwrap_or(u64::MAX);
            if until.is_some_and(|it| Mono(due_us / 1000) >= it) {
                break;
            }
            let ahead_us = due_us.saturating_sub(self.clock.micros());
            if ahead_us > 0 {
                self.clock.sleep(Duration::from_micros(ahead_us)).await;
            }
            let viewer = number % self.clients.len();
            let now_us = self.clock.micros();
            // The books are held while sending, so that an answer finds the comment in them.
            let mut books = self.shared.books.lock();
            let sent = self.clients[viewer].send(
                &self.room,
                &comment.text,
                comment.style,
                Some(comment.media_ms),
            );
            let refusal = sent.as_ref().err().map(ToString::to_string).unwrap_or_default();
            books.book.sent(viewer, &comment.text, sent.map_err(|_| refusal.as_str()), now_us);
        }
    }

    /// Forgets what was played: for runs without an end.
    pub fn forget(&self) {
        self.shared.books.lock().book.forget();
    }

    /// Waits until nothing is on its way, and turns a page of the books: what they came to stays,
    /// and the comments are forgotten, so that a long run's books do not grow. Nobody may speak
    /// meanwhile.
    ///
    /// # Errors
    /// When something is still on its way after a while; then the page is as it was.
    pub async fn turn_page(&self) -> anyhow::Result<()> {
        let books = &self.shared.books;
        wait(&self.clock, SETTLE_MAX, || {
            let book = &mut books.lock().book;
            let is_complete = book.is_complete();
            if is_complete {
                book.turn_page();
            }
            is_complete
        })
        .await
        .context("something is still on its way")
    }

    /// Waits until every comment has its fate and every viewer has everything, closes the books,
    /// and lets the viewers go.
    ///
    /// # Errors
    /// When a viewer's task failed. What did not come in time is in the summary.
    pub async fn end(mut self, damaged: u64) -> anyhow::Result<Summary> {
        let books = &self.shared.books;
        let settled = wait(&self.clock, SETTLE_MAX, || books.lock().book.is_settled()).await;
        let delivered = wait(&self.clock, DELIVER_MAX, || books.lock().book.is_delivered()).await;
        if settled.and(delivered).is_err() {
            tracing::warn!("not everything arrived in time");
        }
        self.clients.iter().for_each(Client::close);
        while let Some(ended) = self.readers.next().await {
            ended?;
        }
        self.ledger.abort();
        let mut books = self.shared.books.lock();
        for (viewer, (id, place)) in books.spoiler.flush() {
            books.book.shown(viewer, id, place);
        }
        Ok(books.book.close(damaged, kit::process::resident_bytes()))
    }

    async fn come_in(&self) -> anyhow::Result<()> {
        let (shared, viewers) = (&self.shared, self.clients.len());
        let connected = || shared.connected.load(Ordering::Relaxed);
        wait(&self.clock, CONNECT_MAX, || connected() >= viewers)
            .await
            .with_context(|| format!("{} of {viewers} viewers came in", connected()))?;
        let seen = shared.seals.load(Ordering::Relaxed);
        wait(&self.clock, FIRST_SLOT_MAX, || {
            shared.seals.load(Ordering::Relaxed) >= seen + CALM_SLOTS
        })
        .await
        .context("no more slots were sealed")
    }
}

/// One viewer's events, into the books.
async fn read(number: usize, mut events: Events, shared: Arc<Shared>) -> anyhow::Result<()> {
    let mut was_connected = false;
    while let Some(event) = events.next().await {
        match event {
            Event::Connected { .. } if !was_connected => {
                was_connected = true;
                shared.connected.fetch_add(1, Ordering::Relaxed);
            }
            Event::Show { place, item, .. } => {
                let now_us = shared.clock.micros();
                let books = &mut *shared.books.lock();
                books.book.delivered(number, item.id, now_us);
                for (id, place) in books.spoiler.pass(number, (item.id, place)) {
                    books.book.shown(number, id, place);
                }
            }
            Event::Ack(ack) => shared.books.lock().book.acked(number, ack.cid, ack.outcome),
            Event::Ended(end) => tracing::debug!(number, ?end, "a viewer ended"),
            Event::Disconnected { code, .. } => {
                tracing::info!(number, ?code, "a viewer lost its connection");
            }
            Event::Gap { items, .. } => tracing::warn!(number, ?items, "a viewer has a gap"),
            Event::Connected { .. }
            | Event::ReadOnly { .. }
            | Event::Recall { .. }
            | Event::Unanswered { .. }
            | Event::Skipped { .. }
            | Event::Heat { .. }
            | Event::Joined(_)
            | Event::Catalogue { .. }
            | Event::Locked { .. }
            | Event::Control(_) => {}
        }
    }
    Ok(())
}

/// The room's ledger, into the books.
async fn follow(mut tail: Tail, room: RoomId, shared: Arc<Shared>) -> anyhow::Result<()> {
    loop {
        let records = match tail.next(256).await? {
            Tailed::Records(records) => records,
            Tailed::Skipped { records, .. } => {
                tracing::error!(records, "the ledger lost records; the audit is void");
                continue;
            }
        };
        for record in records {
            let batch = RoomBatch::decode(&record.value).context("a sealed record is damaged")?;
            for entry in batch.entries.iter().filter(|it| it.room == room) {
                shared.books.lock().book.event(&entry.event);
                if let RoomEvent::Seal { .. } = entry.event {
                    shared.seals.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

async fn wait(
    clock: &Clock,
    at_most: Duration,
    mut is_done: impl FnMut() -> bool,
) -> anyhow::Result<()> {
    let deadline = clock.mono() + at_most;
    while !is_done() {
        ensure!(clock.mono() < deadline, "waited {} s", at_most.as_secs());
        clock.sleep(LOOK).await;
    }
    Ok(())
}

fn account(number: usize) -> anyhow::Result<ViewerId> {
    Ok(ViewerId::parse(&format!("crowd-{number}"))?)
}

fn side(number: usize) -> Side {
    if number.is_multiple_of(2) { Side::Push } else { Side::Segments }
}

fn path(number: usize) -> Path {
    match side(number) {
        Side::Push => Path::Push,
        Side::Segments => Path::Segments,
    }
}

fn transport(number: usize) -> Transport {
    const TURNS: [Transport; 4] = [Transport::Tcp, Transport::Tls, Transport::Ws, Transport::Wss];
    TURNS[number / 2 % TURNS.len()]
}

/// Signs as the business server of `app` would.
///
/// # Errors
/// When the app has no HS256 key.
pub fn signer(app: &App) -> anyhow::Result<Signer> {
    let key = app.ticket_keys.iter().find(|it| it.alg == TicketAlg::Hs256);
    let key = key.context("the app has no HS256 key to sign tickets with")?;
    Ok(Signer::new(&key.kid, key.alg, &Secret::new(key.key.expose().to_owned()))?)
}

/// Signs a new ticket each time it is asked.
pub fn ticket_source(
    signer: &Arc<Signer>,
    app: &App,
    account: &ViewerId,
    room: &RoomId,
    clock: &Clock,
) -> impl Fn() -> String + Send + Sync + use<> {
    let (signer, clock, app) = (Arc::clone(signer), clock.clone(), app.id);
    let (account, room) = (account.clone(), room.clone());
    move || {
        let now_s = clock.wall().unix_s();
        let claims =
            Claims::viewer(app, account.as_str(), room.as_str(), now_s, now_s + TICKET_LIFE_S);
        signer.sign(&claims).unwrap_or_default()
    }
}
