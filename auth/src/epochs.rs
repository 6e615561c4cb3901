//! The epochs' driver: reads `control`, draws what is missing, publishes it, and believes only
//! what it reads back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use auth_core::epochs::{Epochs, Input, Now};
use auth_core::keyring::KeyError;
use bus::{
    At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Tail, Tailed, topic,
};
use kit::health::Part;
use kit::meter::{Metric, list};
use proto::control::{EpochFact, Fact};
use tokio_util::sync::CancellationToken;

use crate::keys::Keys;

/// `control` has one partition.
const PARTITION: PartitionNo = PartitionNo(0);
/// Records taken at once.
const RECORDS_MAX: usize = 256;
/// Pause before `control` is looked for again.
const OPEN_PAUSE: Duration = Duration::from_millis(500);

/// What the driver works with.
pub(crate) struct Driver {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) epochs: Epochs,
    /// Longest wait for an answer of the bus.
    pub(crate) answer_max: Duration,
    /// Below it the operator is warned.
    pub(crate) horizon_min: Duration,
    pub(crate) health: Part,
}

/// Why the driver cannot do its job.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Trouble {
    #[error("control could not be read: {0}")]
    Read(#[from] ReadError),
    #[error("an epoch could not be published: {0}")]
    Publish(#[from] PublishError),
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
            match tokio::time::timeout(self.answer_max, self.try_open()).await {
                Ok(Ok(start)) => return start,
                Ok(Err(error)) => self.health.fail(Trouble::Read(error).to_string()),
                Err(_) => self.health.fail(Trouble::Late.to_string()),
            }
            self.keys.clock.sleep(OPEN_PAUSE).await;
        }
    }

    async fn try_open(&self) -> Result<Start, ReadError> {
        let control = topic::control();
        let end = self.bus.locate(control.clone(), PARTITION, At::End).await?;
        let next = self.bus.locate(control.clone(), PARTITION, At::Oldest).await?;
        let bus = Arc::clone(&self.bus);
        let tail = Tail::open(bus, control, vec![PARTITION], At::Oldest).await?;
        Ok(Start { tail, next, end })
    }

    /// 1. Publishes what is due. 2. Reports. 3. Waits for facts or for time to pass.
    async fn follow(&mut self, start: Start) -> anyhow::Result<()> {
        let Start { mut tail, mut next, end } = start;
        let mut read = Ok(());
        loop {
            if next >= end {
                self.epochs.handle(&Input::Lead);
            }
            self.tick()?;
            let published = self.publish().await;
            self.report(read.and(published));
            tokio::select! {
                tailed = tail.next(RECORDS_MAX) => {
                    read = tailed.as_ref().map(|_| ()).map_err(|it| Trouble::Read(*it));
                    if let Ok(Tailed::Records(records)) = tailed {
                        records.iter().for_each(|it| self.take(it));
                        next = records.last().map_or(next, |it| Offset(it.offset.0 + 1));
                    }
                }
                () = self.keys.clock.sleep_until(self.epochs.deadline()) => {
                    read = self.probe().await;
                }
            }
        }
    }

    /// Asks the bus for something: a quiet tail does not tell whether it is there.
    async fn probe(&self) -> Result<(), Trouble> {
        let end = self.bus.locate(topic::control(), PARTITION, At::End);
        tokio::time::timeout(self.answer_max, end).await.map_err(|_| Trouble::Late)??;
        Ok(())
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let now = Now { mono: self.keys.clock.mono(), wall: self.keys.clock.wall() };
        self.epochs.tick(now, kit::seed::random_bytes).context("no epoch could be drawn")
    }

    async fn publish(&mut self) -> Result<(), Trouble> {
        let records: Vec<Publish> = std::iter::from_fn(|| self.epochs.poll()).map(record).collect();
        if records.is_empty() {
            return Ok(());
        }
        let answers = tokio::time::timeout(self.answer_max, self.bus.publish(records)).await;
        let Ok(answers) = answers else {
            self.count(list::AUTH_PUBLISH_FAILURES_TOTAL);
            return Err(Trouble::Late);
        };
        let mut published = Ok(());
        for answer in answers {
            match answer {
                Ok(_) => self.count(list::AUTH_EPOCHS_PUBLISHED_TOTAL),
                Err(error) => {
                    self.count(list::AUTH_PUBLISH_FAILURES_TOTAL);
                    published = Err(error.into());
                }
            }
        }
        published
    }

    /// Only what comes back from the bus counts: it is what everyone else has, too.
    fn take(&mut self, record: &Record) {
        match Fact::decode(&record.value) {
            Ok(Fact::Epoch(fact)) => {
                self.epochs.handle(&Input::Fact(&fact));
                match self.keys.keyring.write().handle(&fact, self.keys.clock.wall()) {
                    Ok(()) => tracing::info!(epoch = fact.epoch, alg = fact.alg, "epoch published"),
                    Err(KeyError::Outside { .. }) => {}
                    Err(error) => {
                        self.count(list::AUTH_FACTS_REFUSED_TOTAL);
                        tracing::warn!(epoch = fact.epoch, %error, "an epoch was not taken");
                    }
                }
            }
            Ok(_) => {}
            Err(_) => self.count(list::AUTH_FACTS_REFUSED_TOTAL),
        }
    }

    fn report(&self, works: Result<(), Trouble>) {
        let wall = self.keys.clock.wall();
        let horizon = self.keys.keyring.read().horizon(wall);
        let horizon_s = i64::try_from(horizon.as_secs()).unwrap_or(i64::MAX);
        let alg = self.epochs.alg(wall).unwrap_or(0);
        self.keys.meter.gauge(list::AUTH_HORIZON_SECONDS, &[]).set(horizon_s);
        self.keys.meter.gauge(list::AUTH_EPOCH_ALG, &[]).set(alg.into());
        match works {
            Err(trouble) => self.health.fail(trouble.to_string()),
            Ok(()) if horizon < self.horizon_min => {
                self.health.fail(format!("epochs are known for {horizon_s} s only"));
            }
            Ok(()) => self.health.ok(),
        }
    }

    fn count(&self, metric: Metric) {
        self.keys.meter.counter(metric, &[]).inc();
    }
}

fn record(fact: EpochFact) -> Publish {
    let fact = Fact::Epoch(fact);
    Publish {
        topic: topic::control(),
        partition: PARTITION,
        term: None,
        key: Some(fact.key().into()),
        value: fact.encode().into(),
    }
}
