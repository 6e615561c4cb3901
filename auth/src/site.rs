//! What the parts of the service share: what is known, and how it is changed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use auth_core::app::App;
use auth_core::keyring::Keyring;
use auth_core::ledger::Ledger;
use auth_core::policy::Policies;
use bus::{Bus, PartitionNo, Publish, PublishError, topic};
use kit::clock::Clock;
use kit::meter::{Meter, Metric, list};
use parking_lot::{Mutex, RwLock};
use proto::control::Fact;
use proto::id::{AppId, Term};
use proto::keys::{Master, Masters};
use proto::time::Mono;
use tokio::sync::watch;

use crate::masters::MastersFile;
use crate::node::Nodes;
use crate::operators::Operators;

/// `control` has one partition.
pub(crate) const PARTITION: PartitionNo = PartitionNo(0);
/// How long after `control` was last read to its end what is known here still counts.
const CURRENT_MAX: Duration = Duration::from_secs(5);
/// Time for one change of a file.
const FILE_MAX: Duration = Duration::from_secs(10);

/// What everything works with.
pub(crate) struct Site {
    pub(crate) clock: Clock,
    pub(crate) meter: Meter,
    pub(crate) bus: Arc<dyn Bus>,
    /// Longest wait for an answer of the bus.
    pub(crate) answer_max: Duration,
    pub(crate) interval_s: u32,
    /// Below it the operator is warned.
    pub(crate) horizon_min: Duration,
    pub(crate) nodes: Nodes,
    pub(crate) operators: Operators,
    pub(crate) apps: Arc<[App]>,
    /// Held while it is read or changed and the masters below are replaced, so that they never go
    /// back to an older reading.
    pub(crate) file: Mutex<MastersFile>,
    /// As in the file, newest first.
    pub(crate) masters: RwLock<Vec<Master>>,
    pub(crate) keyring: RwLock<Keyring>,
    pub(crate) ledger: LedgerFile,
    pub(crate) policies: RwLock<Policies>,
    /// When `control` was last known to its end.
    pub(crate) current_at: Mutex<Option<Mono>>,
    /// The term with which this service leads, while it does.
    pub(crate) lead: watch::Sender<Option<Term>>,
}

/// The ledger, and its file.
pub(crate) struct LedgerFile {
    pub(crate) known: Mutex<Ledger>,
    /// Held while the file is written, so that the last writer writes the newest.
    path: Mutex<PathBuf>,
}

/// Why the bus did not take something.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    #[error("the bus does not take it: {0}")]
    Refused(#[from] PublishError),
    #[error("the bus does not answer")]
    Late,
}

impl LedgerFile {
    /// Reads what was kept. Blocks for file access.
    pub(crate) fn open(path: PathBuf) -> anyhow::Result<Self> {
        let name = || format!("could not use {}", path.display());
        let kept = kit::private::read(&path).with_context(name)?;
        let facts: Vec<Fact> = match kept {
            Some(bytes) => serde_json::from_slice(&bytes).with_context(name)?,
            None => Vec::new(),
        };
        Ok(Self { known: Mutex::new(Ledger::new(facts)), path: Mutex::new(path) })
    }

    fn write(&self) -> anyhow::Result<()> {
        let path = self.path.lock();
        let facts: Vec<Fact> = self.known.lock().facts().cloned().collect();
        kit::private::write(&path, &serde_json::to_vec_pretty(&facts)?)
            .with_context(|| format!("could not write {}", path.display()))
    }
}

impl Site {
    /// Whether what was published last is known here: else keys and operators' changes would be
    /// made from an older state.
    pub(crate) fn is_current(&self) -> bool {
        let now = self.clock.mono();
        self.current_at.lock().is_some_and(|it| now.since(it) < CURRENT_MAX)
    }

    pub(crate) fn app_ids(&self) -> Vec<AppId> {
        self.apps.iter().map(|it| it.id).collect()
    }

    /// Numbers of the masters, newest first.
    pub(crate) fn kids(&self) -> Vec<u8> {
        self.masters.read().iter().map(|it| it.kid).collect()
    }

    /// Works with the masters that `read` gets from the file, or puts into it, from now on.
    pub(crate) async fn take_masters(
        self: &Arc<Self>,
        read: impl FnOnce(&MastersFile) -> anyhow::Result<Vec<Master>> + Send + 'static,
    ) -> anyhow::Result<()> {
        let site = Arc::clone(self);
        let work = move || {
            let file = site.file.lock();
            let masters = Masters { interval_s: site.interval_s, masters: read(&file)? };
            site.keyring.write().replace_masters(&masters)?;
            *site.masters.write() = masters.masters;
            Ok(())
        };
        on_disk(work).await
    }

    /// Acts by what an operator said, here or elsewhere.
    pub(crate) fn apply(&self, fact: &Fact) {
        if let Fact::Revoked { kid, from_epoch, to_epoch } = *fact {
            self.keyring.write().revoke(kid, from_epoch, to_epoch);
        }
        self.policies.write().handle(fact);
    }

    /// Notes what operators said, on disk too.
    pub(crate) async fn keep_ledger(self: &Arc<Self>) -> anyhow::Result<()> {
        let site = Arc::clone(self);
        on_disk(move || site.ledger.write()).await
    }

    /// Appends facts to `control`: with a term where only its holder may.
    pub(crate) async fn publish(&self, facts: &[Fact], term: Option<Term>) -> Result<(), NotTaken> {
        let records = facts.iter().map(|it| record(it, term)).collect();
        let answers = tokio::time::timeout(self.answer_max, self.bus.publish(records)).await;
        let taken = match answers {
            Ok(answers) => answers.into_iter().try_for_each(|it| it.map(|_| ())),
            Err(_) => {
                self.count(list::AUTH_PUBLISH_FAILURES_TOTAL, &[]);
                return Err(NotTaken::Late);
            }
        };
        if taken.is_err() {
            self.count(list::AUTH_PUBLISH_FAILURES_TOTAL, &[]);
        }
        Ok(taken?)
    }

    pub(crate) fn count(&self, metric: Metric, labels: &[&str]) {
        self.meter.counter(metric, labels).inc();
    }
}

/// Does something that blocks for file access.
pub(crate) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let done = tokio::time::timeout(FILE_MAX, tokio::task::spawn_blocking(work)).await;
    done.context("the disk does not answer")?.context("the work on the disk failed")?
}

fn record(fact: &Fact, term: Option<Term>) -> Publish {
    Publish {
        topic: topic::control(),
        partition: PARTITION,
        term,
        key: Some(fact.key().into()),
        value: fact.encode().into(),
    }
}
