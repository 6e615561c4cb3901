//! Facts that the answers depend on: epochs, kicks and bans, policies.
//!
//! Reading begins when the masters are there: without them nothing is answered, and epochs would
//! have nowhere to go. It begins again when the length of an epoch changes. Beside the reading, the
//! end of `control` is asked for again and again: only who has read up to there knows every kick so
//! far, and answers go by how long ago that was.

use std::sync::Arc;
use std::time::Duration;

use bus::{At, Bus, Offset, PartitionNo, ReadError, Record, topic};
use gslb_core::refuge::Heard;
use kit::clock::Clock;
use kit::health::Part;
use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::control::Fact;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::known::Known;
use crate::moves::Promises;

/// `control` has one partition.
const PARTITION: PartitionNo = PartitionNo(0);
/// Records taken at a time.
const RECORDS_MAX: usize = 256;
/// Wait before the topic is opened again.
const REOPEN: Duration = Duration::from_millis(500);
/// Between two looks for the end of `control`.
const CONFIRM: Duration = Duration::from_millis(250);
/// Longest wait of one read for a record. Shorter than [`ANSWER_MAX`] by half: where the end is told
/// in the middle of a read, the next one tells whether there is more.
const READ_WAIT: Duration = Duration::from_millis(250);
/// Time for an answer of the bus, and for reading up to the end that it tells.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Reads `control` from its beginning, and what comes.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) known: Arc<Known>,
    pub(crate) clock: Clock,
    pub(crate) health: Part,
    pub(crate) refused: Refused,
    /// Where this process may come to lead.
    pub(crate) promises: Option<Promises>,
}

/// How far the reading is.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    next: Offset,
    /// Reads that have begun.
    begun: u64,
    /// The number of the last read that found nothing.
    idle: u64,
}

/// Facts that were not taken.
#[derive(Debug)]
pub(crate) struct Refused {
    malformed: IntCounter,
    epoch: IntCounter,
    skipped: IntCounter,
    lost: IntCounter,
}

/// Why it is not known whether everything was read.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Trouble {
    #[error("control cannot be read: {0}")]
    Read(#[from] ReadError),
    #[error("the bus does not answer, or control is not read to its end")]
    Late,
    #[error("the bus has lost control: it is read again from its beginning")]
    Lost,
}

impl Refused {
    pub(crate) fn new(meter: &Meter) -> Self {
        let count = |kind| meter.counter(list::GSLB_FACTS_REFUSED_TOTAL, &[kind]);
        Self {
            malformed: count("malformed"),
            epoch: count("epoch"),
            skipped: count("skipped"),
            lost: count("lost"),
        }
    }
}

impl Control {
    /// Reads until `shutdown`.
    pub(crate) async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut interval_s = self.known.keys.interval_s();
        loop {
            let has_begun = interval_s.borrow_and_update().is_some();
            tokio::select! {
                () = self.follow(), if has_begun => {}
                // The sender is in `self`, so waiting for it cannot fail.
                _ = interval_s.changed() => {}
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Reads from the oldest fact on, until the bus has lost what was read.
    async fn follow(&self) {
        let next = self.open().await;
        let progress = watch::Sender::new(Progress { next, ..Progress::default() });
        let behind = progress.subscribe();
        tokio::select! {
            () = self.read(progress) => {}
            () = self.confirm(behind) => {}
        }
    }

    /// Tries until the bus is there; where the oldest fact is.
    async fn open(&self) -> Offset {
        loop {
            let oldest = self.bus.locate(topic::control(), PARTITION, At::Oldest);
            match timeout(ANSWER_MAX, oldest).await {
                Ok(Ok(oldest)) => return oldest,
                Ok(Err(error)) => self.health.fail(Trouble::Read(error).to_string()),
                Err(_) => self.health.fail(Trouble::Late.to_string()),
            }
            self.clock.sleep(REOPEN).await;
        }
    }

    /// Takes facts, and tells how far it is.
    async fn read(&self, progress: watch::Sender<Progress>) {
        loop {
            progress.send_modify(|it| it.begun += 1);
            let next = progress.borrow().next;
            let read = self.bus.read(topic::control(), PARTITION, next, RECORDS_MAX, READ_WAIT);
            match timeout(READ_WAIT + ANSWER_MAX, read).await {
                Ok(Ok(records)) => {
                    let rules = records.iter().filter_map(|it| self.handle(it));
                    self.known.handle_rules(&rules.collect::<Vec<_>>());
                    progress.send_modify(|it| match records.last() {
                        Some(last) => it.next = Offset(last.offset.0 + 1),
                        None => it.idle = it.begun,
                    });
                }
                Ok(Err(ReadError::Gone { oldest })) => {
                    let records = oldest.0.saturating_sub(next.0);
                    tracing::warn!(records, "facts on control were missed");
                    self.refused.skipped.inc_by(records);
                    progress.send_modify(|it| it.next = oldest);
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "control cannot be read");
                    self.clock.sleep(REOPEN).await;
                }
                Err(_) => tracing::debug!("control cannot be read: the bus does not answer"),
            }
        }
    }

    /// Finds out, again and again, up to when everything is known, until the bus has lost it.
    async fn confirm(&self, mut progress: watch::Receiver<Progress>) {
        loop {
            let asked = self.clock.mono();
            let known = timeout(ANSWER_MAX, self.catch_up(&mut progress)).await;
            match known.map_err(|_| Trouble::Late).flatten() {
                Ok(()) => {
                    self.known.control.confirm(asked);
                    self.health.ok();
                }
                Err(trouble) => {
                    self.health.fail(trouble.to_string());
                    if matches!(trouble, Trouble::Lost) {
                        tracing::warn!("the bus has lost control");
                        self.refused.lost.inc();
                        self.known.control.forget();
                        return;
                    }
                }
            }
            self.clock.sleep(CONFIRM).await;
        }
    }

    /// Waits until everything was read that is on `control` now.
    ///
    /// The last offsets before the end may hold no record at all, such as the marks that Kafka's
    /// transactions leave: a read that begins after the end was told, and finds nothing, is enough.
    async fn catch_up(&self, progress: &mut watch::Receiver<Progress>) -> Result<(), Trouble> {
        let read = progress.borrow().next;
        let end = self.bus.locate(topic::control(), PARTITION, At::End).await?;
        if end < read {
            return Err(Trouble::Lost);
        }
        let begun = progress.borrow().begun;
        // The sender lives as long as the reading, which goes on beside this for ever.
        let caught_up = progress.wait_for(|it| it.next >= end || it.idle > begun).await;
        caught_up.map_err(|_| Trouble::Late)?;
        Ok(())
    }

    /// Takes one, or gives it back if answers look at it as a whole.
    fn handle(&self, record: &Record) -> Option<Fact> {
        let now = self.clock.wall();
        match Fact::decode(&record.value) {
            Ok(Fact::Epoch(fact)) => {
                if let Err(error) = self.known.keys.handle(&fact, now) {
                    tracing::debug!(epoch = fact.epoch, %error, "an epoch was passed over");
                    self.refused.epoch.inc();
                }
            }
            Ok(Fact::Revoked { kid, from_epoch, to_epoch }) => {
                self.known.keys.revoke(kid, from_epoch, to_epoch);
            }
            Ok(fact @ (Fact::Kick { .. } | Fact::Ban { .. } | Fact::Exclude { .. })) => {
                self.known.revocations.write().handle(&fact, now);
            }
            Ok(fact @ Fact::Move { .. }) => {
                if let Some(promises) = &self.promises {
                    let age = self.known.control.age(self.clock.mono());
                    promises.hear(&fact, age.map_or(Heard::ReadBack(now), |_| Heard::Live));
                }
            }
            Ok(fact @ (Fact::Policy(_) | Fact::Sealed { .. })) => return Some(fact),
            Ok(
                Fact::Room(_)
                | Fact::Bases { .. }
                | Fact::Mute { .. }
                | Fact::Close { .. }
                | Fact::Keep { .. }
                | Fact::Heat { .. }
                | Fact::Lease(_)
                | Fact::Sdk(_)
                | Fact::Words { .. }
                | Fact::Catalogue(_)
                | Fact::Person { .. }
                | Fact::Attribute { .. },
            ) => {}
            Err(error) => {
                tracing::debug!(%error, "a record on control is no fact");
                self.refused.malformed.inc();
            }
        }
        None
    }
}
