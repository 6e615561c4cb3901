//! The epochs' driver: follows `control`, draws what is missing while it leads, and believes only
//! what it reads back.
//!
//! **Why no epoch is drawn twice**, with two services of which one may be killed, stopped for
//! minutes, cut off, or slow at the wrong moment:
//!
//! 1. The lease ([`lead`](crate::lead)) gives each leader a term that nobody else ever has, higher
//!    than all before.
//! 2. A new leader first appends a *fence*, a record under its term. Every bus refuses a record
//!    whose term is lower than one it has taken ([`Publish::term`](bus::Publish::term)). So what a
//!    former leader still has on its way is in the log before the fence, or never. No clock and no
//!    lease's end is trusted for this.
//! 3. It reads `control` until it meets its own fence. `control` has one partition and is read in
//!    order from its oldest record, so at that moment it knows every epoch that any former leader
//!    has published or ever will. Only then does it draw, what is missing, under its term.
//! 4. What it puts out again is what it put out before.
//!
//! So all records of an epoch have one random and one algorithm, and each at least the masters of
//! the one before: whichever of them compaction keeps, who starts later reads what the others
//! have. Clocks only decide which epochs are due; a leader whose clock is ahead draws more of them,
//! never other ones. The second line, for a bus that breaks its contract, is in
//! [`auth_core::epochs`].

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use auth_core::epochs::{Epochs, Input, Now};
use auth_core::keyring::KeyError;
use bus::{At, Offset, ReadError, Record, Tail, Tailed, topic};
use kit::health::Part;
use kit::meter::list;
use proto::control::{EpochFact, Fact, LeaseFact};
use proto::id::{NodeId, Term};
use proto::time::{Mono, Wall};
use tokio_util::sync::CancellationToken;

use crate::site::{NotTaken, PARTITION, Site};

/// Records taken at once.
const RECORDS_MAX: usize = 256;
/// Pause before `control` is looked for again.
const OPEN_PAUSE: Duration = Duration::from_millis(500);
/// What did not come back is put out again after this.
const RESEND: Duration = Duration::from_secs(1);
/// Facts of the ledger that are said again at a time.
const AGAIN_MAX: usize = 256;
/// What the fence is called among the leases.
const FENCE: &str = "epochs-fence";

/// What the driver works with.
pub(crate) struct Driver {
    pub(crate) site: Arc<Site>,
    pub(crate) epochs: Epochs,
    pub(crate) node: NodeId,
    pub(crate) health: Part,
    /// While this service leads.
    pub(crate) fence: Option<Fence>,
    /// When the ledger is compared with `control` again.
    pub(crate) say_at: Mono,
    /// Not before: nothing is known at the start.
    pub(crate) alarm_from: Mono,
    pub(crate) is_alarmed: bool,
}

/// This leader's record that shuts former leaders out.
pub(crate) struct Fence {
    term: Term,
    is_up: bool,
    resend: Mono,
}

/// Why the driver cannot do its job.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Trouble {
    #[error("control could not be read: {0}")]
    Read(#[from] ReadError),
    #[error("control could not be written: {0}")]
    Write(#[from] NotTaken),
    #[error("the bus does not answer")]
    Late,
}

/// Where reading begins, and where that which was published before ends.
struct Start {
    tail: Tail,
    next: Offset,
    end: Offset,
}

impl Driver {
    /// Draws and publishes epochs until `shutdown`.
    ///
    /// # Errors
    /// When the system gives no random bytes: nothing may be drawn without.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let work = async {
            let start = self.open().await;
            self.follow(start).await
        };
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            ended = work => ended,
        }
    }

    /// Tries until the bus is there.
    async fn open(&mut self) -> Start {
        loop {
            match tokio::time::timeout(self.site.answer_max, self.try_open()).await {
                Ok(Ok(start)) => return start,
                Ok(Err(error)) => self.health.fail(Trouble::Read(error).to_string()),
                Err(_) => self.health.fail(Trouble::Late.to_string()),
            }
            self.site.clock.sleep(OPEN_PAUSE).await;
        }
    }

    async fn try_open(&self) -> Result<Start, ReadError> {
        let control = topic::control();
        let bus = Arc::clone(&self.site.bus);
        let end = bus.locate(control.clone(), PARTITION, At::End).await?;
        let next = bus.locate(control.clone(), PARTITION, At::Oldest).await?;
        let tail = Tail::open(bus, control, vec![PARTITION], At::Oldest).await?;
        Ok(Start { tail, next, end })
    }

    /// 1. Learns whether it leads. 2. Publishes what is due. 3. Lets masters retire. 4. Reports.
    /// 5. Waits for facts, for another leader or for time to pass.
    async fn follow(&mut self, start: Start) -> anyhow::Result<()> {
        let Start { mut tail, mut next, mut end } = start;
        let mut lead = self.site.lead.subscribe();
        let mut read = Ok(());
        loop {
            let term = *lead.borrow_and_update();
            self.lead(term);
            let published = self.publish(next >= end).await?;
            self.retire().await;
            if read.is_ok() && next >= end {
                *self.site.current_at.lock() = Some(self.site.clock.mono());
            }
            self.report(read.and(published));
            tokio::select! {
                tailed = tail.next(RECORDS_MAX) => {
                    read = tailed.as_ref().map(|_| ()).map_err(|it| Trouble::Read(*it));
                    if let Ok(Tailed::Records(records)) = tailed {
                        next = records.last().map_or(next, |it| Offset(it.offset.0 + 1));
                        self.take(&records).await;
                    }
                }
                _ = lead.changed() => {}
                () = self.site.clock.sleep_until(self.epochs.deadline()) => {
                    read = self.probe().await.map(|it| end = it);
                }
            }
        }
    }

    /// Asks the bus for something: a quiet tail does not tell whether it is there.
    async fn probe(&self) -> Result<Offset, Trouble> {
        let end = self.site.bus.locate(topic::control(), PARTITION, At::End);
        let end = tokio::time::timeout(self.site.answer_max, end).await;
        Ok(end.map_err(|_| Trouble::Late)??)
    }

    fn lead(&mut self, term: Option<Term>) {
        if self.fence.as_ref().map(|it| it.term) != term {
            self.epochs.handle(&Input::Follow);
            self.fence = term.map(|term| Fence { term, is_up: false, resend: Mono(0) });
        }
    }

    /// Publishes what is due; tells how that went.
    async fn publish(&mut self, is_caught_up: bool) -> anyhow::Result<Result<(), Trouble>> {
        let now = Now { mono: self.site.clock.mono(), wall: self.site.clock.wall() };
        self.epochs.handle(&Input::Masters(&self.site.kids()));
        self.epochs.tick(now, kit::seed::random_bytes).context("no epoch could be drawn")?;
        let mut published = Ok(());
        if let Some(fence) = self.fence.as_mut() {
            let mut facts: Vec<Fact> = Vec::new();
            if !fence.is_up && fence.resend <= now.mono {
                fence.resend = now.mono + RESEND;
                facts.push(Fact::Lease(fence_fact(self.node, fence.term)));
            }
            facts.extend(std::iter::from_fn(|| self.epochs.poll()).map(Fact::Epoch));
            let term = Some(fence.term);
            published = self.put(&facts, term).await;
        }
        if is_caught_up && self.say_at <= now.mono {
            self.say_at = now.mono + RESEND;
            let unheard: Vec<Fact> = {
                let known = self.site.ledger.known.lock();
                known.unheard().take(AGAIN_MAX).cloned().collect()
            };
            published = published.and(self.put(&unheard, None).await);
        }
        Ok(published)
    }

    async fn put(&self, facts: &[Fact], term: Option<Term>) -> Result<(), Trouble> {
        if facts.is_empty() {
            return Ok(());
        }
        self.site.publish(facts, term).await?;
        let epochs = facts.iter().filter(|it| matches!(it, Fact::Epoch(_))).count();
        let published = self.site.meter.counter(list::AUTH_EPOCHS_PUBLISHED_TOTAL, &[]);
        published.inc_by(u64::try_from(epochs).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Only what comes back from the bus counts: it is what everyone else has, too.
    async fn take(&mut self, records: &[Record]) {
        let mut has_news = false;
        for record in records {
            match Fact::decode(&record.value) {
                Ok(Fact::Epoch(fact)) => self.take_epoch(&fact),
                Ok(Fact::Lease(lease)) => self.take_lease(&lease),
                Ok(fact @ (Fact::Policy(_) | Fact::Sdk(_) | Fact::Revoked { .. })) => {
                    self.site.apply(&fact);
                    has_news |= self.site.ledger.known.lock().hear(&fact);
                }
                Ok(
                    Fact::Room(_)
                    | Fact::Mute { .. }
                    | Fact::Ban { .. }
                    | Fact::Words { .. }
                    | Fact::Catalogue(_)
                    | Fact::Exclude { .. }
                    | Fact::Person { .. }
                    | Fact::Attribute { .. }
                    | Fact::Sealed { .. }
                    | Fact::Kick { .. }
                    | Fact::Close { .. }
                    | Fact::Keep { .. }
                    | Fact::Heat { .. }
                    | Fact::Bases { .. }
                    | Fact::Move { .. },
                ) => {}
                Err(_) => self.site.count(list::AUTH_FACTS_REFUSED_TOTAL, &[]),
            }
        }
        if has_news && let Err(error) = self.site.keep_ledger().await {
            tracing::error!(error = format!("{error:#}"), "what operators said is not on disk");
        }
    }

    fn take_epoch(&mut self, fact: &EpochFact) {
        self.epochs.handle(&Input::Fact(fact));
        let taken = self.site.keyring.write().handle(fact, self.site.clock.wall());
        let EpochFact { epoch, alg, kids, .. } = fact;
        match taken {
            Ok(()) => tracing::info!(epoch, alg, ?kids, "epoch published"),
            Err(KeyError::Outside { .. }) => {}
            Err(error) => {
                self.site.count(list::AUTH_FACTS_REFUSED_TOTAL, &[]);
                tracing::error!(epoch, %error, "an epoch was not taken");
            }
        }
    }

    fn take_lease(&mut self, lease: &LeaseFact) {
        if let Some(fence) = self.fence.as_mut()
            && *lease == fence_fact(self.node, fence.term)
        {
            fence.is_up = true;
            self.epochs.handle(&Input::Lead);
        }
    }

    /// Removes from the file what no epoch needs any more.
    async fn retire(&mut self) {
        let retired = self.epochs.retire(self.site.clock.mono());
        if retired.is_empty() {
            return;
        }
        let kids = retired.clone();
        match self.site.take_masters(move |file| file.retire(&kids)).await {
            Ok(()) => tracing::info!(kids = ?retired, "masters that no epoch names are removed"),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "retired masters are not removed");
            }
        }
    }

    fn report(&mut self, works: Result<(), Trouble>) {
        let wall = self.site.clock.wall();
        let (horizon, missing) = {
            let keyring = self.site.keyring.read();
            (keyring.horizon(wall), keyring.missing_masters(wall))
        };
        let horizon_s = i64::try_from(horizon.as_secs()).unwrap_or(i64::MAX);
        let alg = self.epochs.alg(wall).unwrap_or(0);
        self.site.meter.gauge(list::AUTH_HORIZON_SECONDS, &[]).set(horizon_s);
        self.site.meter.gauge(list::AUTH_EPOCH_ALG, &[]).set(alg.into());
        let is_low = horizon < self.site.horizon_min;
        self.alarm(is_low, horizon_s);
        match works {
            Err(trouble) => self.health.fail(trouble.to_string()),
            Ok(()) if is_low => {
                self.health.fail(format!("epochs are known for {horizon_s} s only"));
            }
            Ok(()) if !missing.is_empty() => {
                self.health.fail(format!("epochs name masters that are not here: {missing:?}"));
            }
            Ok(()) => self.health.ok(),
        }
    }

    /// Once when logins will stop soon, and once when they will not.
    fn alarm(&mut self, is_low: bool, horizon_s: i64) {
        if is_low && self.site.clock.mono() < self.alarm_from {
            return;
        }
        if is_low && !self.is_alarmed {
            tracing::error!(horizon_s, "logins stop soon: no further epochs are known");
        } else if !is_low && self.is_alarmed {
            tracing::info!(horizon_s, "epochs are known far enough again");
        }
        self.is_alarmed = is_low;
    }
}

fn fence_fact(node: NodeId, term: Term) -> LeaseFact {
    LeaseFact { topic: FENCE.to_owned(), partition: 0, node, term, expires: Wall(0) }
}
