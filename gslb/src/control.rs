//! Facts that the answers depend on: epochs, kicks and bans, policies.
//!
//! Reading begins when the masters are there: without them nothing is answered, and epochs would
//! have nowhere to go. It begins again when the length of an epoch changes. Beside the reading, the end of `control` is asked for again and again: only
//! who has read up to there knows every kick so far, and answers go by how long ago that was.

use std::sync::Arc;
use std::time::Duration;

use bus::{At, Bus, Offset, PartitionNo, ReadError, Record, Tail, Tailed, topic};
use kit::clock::Clock;
use kit::health::Part;
use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::control::Fact;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::known::Known;

/// `control` has one partition.
const PARTITION: PartitionNo = PartitionNo(0);
/// Records taken at a time.
const RECORDS_MAX: usize = 256;
/// Wait before the topic is opened again.
const REOPEN: Duration = Duration::from_millis(500);
/// Between two looks for the end of `control`.
const CONFIRM: Duration = Duration::from_millis(250);
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
        let (tail, next) = self.open().await;
        let next = watch::Sender::new(next);
        let behind = next.subscribe();
        tokio::select! {
            () = self.read(tail, next) => {}
            () = self.confirm(behind) => {}
        }
    }

    /// Tries until the bus is there.
    async fn open(&self) -> (Tail, Offset) {
        loop {
            match timeout(ANSWER_MAX, self.try_open()).await {
                Ok(Ok(opened)) => return opened,
                Ok(Err(error)) => self.health.fail(Trouble::Read(error).to_string()),
                Err(_) => self.health.fail(Trouble::Late.to_string()),
            }
            self.clock.sleep(REOPEN).await;
        }
    }

    async fn try_open(&self) -> Result<(Tail, Offset), ReadError> {
        let (bus, control) = (Arc::clone(&self.bus), topic::control());
        let oldest = bus.locate(control.clone(), PARTITION, At::Oldest).await?;
        Ok((Tail::open(bus, control, vec![PARTITION], At::Oldest).await?, oldest))
    }

    /// Takes facts, and tells which record comes next.
    async fn read(&self, mut tail: Tail, next: watch::Sender<Offset>) {
        loop {
            match tail.next(RECORDS_MAX).await {
                Ok(Tailed::Records(records)) => {
                    records.iter().for_each(|it| self.handle(it));
                    if let Some(last) = records.last() {
                        next.send_replace(Offset(last.offset.0 + 1));
                    }
                }
                Ok(Tailed::Skipped { records, oldest, .. }) => {
                    tracing::warn!(records, "facts on control were missed");
                    self.refused.skipped.inc_by(records);
                    next.send_replace(oldest);
                }
                Err(error) => tracing::debug!(%error, "control cannot be read"),
            }
        }
    }

    /// Finds out, again and again, up to when everything is known, until the bus has lost it.
    async fn confirm(&self, mut next: watch::Receiver<Offset>) {
        loop {
            let asked = self.clock.mono();
            let known = timeout(ANSWER_MAX, self.catch_up(&mut next)).await;
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
    async fn catch_up(&self, next: &mut watch::Receiver<Offset>) -> Result<(), Trouble> {
        let read = *next.borrow();
        let end = self.bus.locate(topic::control(), PARTITION, At::End).await?;
        if end < read {
            return Err(Trouble::Lost);
        }
        // The sender lives as long as the reading, which goes on beside this for ever.
        next.wait_for(|it| *it >= end).await.map_err(|_| Trouble::Late)?;
        Ok(())
    }

    fn handle(&self, record: &Record) {
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
            Ok(fact @ (Fact::Kick { .. } | Fact::Ban { .. })) => {
                self.known.revocations.write().handle(&fact, now);
            }
            Ok(fact @ Fact::Policy(_)) => self.known.policies.write().handle(&fact),
            Ok(
                Fact::Room(_)
                | Fact::Bases { .. }
                | Fact::Mute { .. }
                | Fact::Close { .. }
                | Fact::Keep { .. }
                | Fact::Heat { .. }
                | Fact::Move { .. }
                | Fact::Lease(_)
                | Fact::Sdk(_),
            ) => {}
            Err(error) => {
                tracing::debug!(%error, "a record on control is no fact");
                self.refused.malformed.inc();
            }
        }
    }
}
