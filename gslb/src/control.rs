//! Facts that the answers depend on: epochs, kicks and bans, segment bases.

use std::sync::Arc;
use std::time::Duration;

use bus::{At, Bus, Record, Tail, Tailed, topic};
use kit::clock::Clock;
use kit::health::Part;
use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::control::Fact;
use tokio_util::sync::CancellationToken;

use crate::known::Known;

/// Records taken at a time.
const RECORDS_MAX: usize = 256;
/// Wait before the topic is opened again.
const REOPEN: Duration = Duration::from_millis(500);

/// Reads `control` from its beginning, and what comes.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) known: Arc<Known>,
    pub(crate) clock: Clock,
    /// The configured bases hold, whatever is announced.
    pub(crate) bases_fixed: bool,
    pub(crate) health: Part,
    pub(crate) refused: Refused,
}

/// Facts that were not taken.
#[derive(Debug)]
pub(crate) struct Refused {
    malformed: IntCounter,
    epoch: IntCounter,
    skipped: IntCounter,
}

impl Refused {
    pub(crate) fn new(meter: &Meter) -> Self {
        let count = |kind| meter.counter(list::GSLB_FACTS_REFUSED_TOTAL, &[kind]);
        Self { malformed: count("malformed"), epoch: count("epoch"), skipped: count("skipped") }
    }
}

impl Control {
    /// Reads until `shutdown`.
    pub(crate) async fn keep(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let read = async {
            let mut tail = self.open().await;
            loop {
                match tail.next(RECORDS_MAX).await {
                    Ok(Tailed::Records(records)) => {
                        records.iter().for_each(|it| self.handle(it));
                        self.health.ok();
                    }
                    Ok(Tailed::Skipped { records, .. }) => {
                        tracing::warn!(records, "facts on control were missed");
                        self.refused.skipped.inc_by(records);
                    }
                    Err(error) => self.health.fail(error.to_string()),
                }
            }
        };
        tokio::select! {
            () = read => Ok(()),
            () = shutdown.cancelled() => Ok(()),
        }
    }

    async fn open(&self) -> Tail {
        loop {
            let all = Tail::all(&topic::control());
            match Tail::open(self.bus.clone(), topic::control(), all, At::Oldest).await {
                Ok(tail) => return tail,
                Err(error) => self.health.fail(error.to_string()),
            }
            self.clock.sleep(REOPEN).await;
        }
    }

    fn handle(&self, record: &Record) {
        let now = self.clock.wall();
        match Fact::decode(&record.value) {
            Ok(Fact::Epoch(fact)) => {
                let epoch = fact.epoch;
                if let Err(error) = self.known.keys.handle(fact, now) {
                    tracing::debug!(epoch, %error, "an epoch was passed over");
                    self.refused.epoch.inc();
                }
            }
            Ok(Fact::Bases { bases }) => {
                if !self.bases_fixed {
                    self.known.bases.store(Arc::new(bases));
                }
            }
            Ok(fact @ (Fact::Kick { .. } | Fact::Ban { .. } | Fact::Revoked { .. })) => {
                self.known.revocations.write().handle(&fact, now);
            }
            Ok(
                Fact::Room(_)
                | Fact::Mute { .. }
                | Fact::Close { .. }
                | Fact::Keep { .. }
                | Fact::Heat { .. }
                | Fact::Move { .. }
                | Fact::Lease(_)
                | Fact::Policy(_)
                | Fact::Sdk(_),
            ) => {}
            Err(error) => {
                tracing::debug!(%error, "a record on control is no fact");
                self.refused.malformed.inc();
            }
        }
    }
}
