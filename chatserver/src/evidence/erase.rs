//! Removing what an account said.
//!
//! An erasure is kept on disk until every file is rewritten without the account's records; exports
//! leave them out from the first moment on. It waits for turns that were under way when it was asked
//! for, which may still put down what the account said. What is said later is new evidence.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use chatserver_core::ledger::{Erasure, Record, What};
use parking_lot::Mutex;
use proto::id::{AppId, ViewerId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::files::Folder;
use super::{Counts, Witness};

/// Pause after a disk said no.
const PAUSE: Duration = Duration::from_secs(5);
/// How often turns are looked at that an erasure waits for.
const LOOK: Duration = Duration::from_millis(200);
/// Erasures that wait: each is looked up for every record that is exported or rewritten.
const ERASURES_MAX: usize = 1000;

/// Who erases.
#[derive(Debug)]
pub(crate) struct Eraser {
    folder: Arc<Folder>,
    witness: Arc<Witness>,
    counts: Counts,
    pending: Mutex<Vec<Erasure>>,
    bell: Notify,
}

/// Why an erasure was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untaken {
    #[error("as many accounts as may be are being erased")]
    Full,
    #[error("the disk does not take it")]
    Disk(#[from] io::Error),
}

impl Eraser {
    pub(super) fn open(
        folder: Arc<Folder>,
        witness: Arc<Witness>,
        counts: Counts,
    ) -> io::Result<Self> {
        let pending = Mutex::new(folder.erasures()?);
        Ok(Self { folder, witness, counts, pending, bell: Notify::new() })
    }

    /// Erases what an account said in an app up to now. When it returns, nothing of it is exported
    /// any more; the files follow.
    pub(crate) async fn erase(&self, app: AppId, account: ViewerId) -> Result<Erasure, Untaken> {
        if self.pending.lock().len() >= ERASURES_MAX {
            return Err(Untaken::Full);
        }
        let until = self.witness.clock.wall();
        let erasure = Erasure { app, account, until };
        let (folder, kept) = (Arc::clone(&self.folder), erasure.clone());
        blocking(move || folder.keep_erasure(&kept)).await?;
        let mut pending = self.pending.lock();
        // Whoever asks twice within a millisecond asks for the same.
        if !pending.contains(&erasure) {
            pending.push(erasure.clone());
        }
        drop(pending);
        let account = Some(erasure.account.clone());
        let what = What::Erased { until };
        self.witness.note(vec![(app, Record { at: until, room: None, account, what })]);
        self.bell.notify_one();
        Ok(erasure)
    }

    /// Erasures that are not done.
    pub(crate) fn pending(&self) -> Vec<Erasure> {
        self.pending.lock().clone()
    }

    /// Rewrites files until `shutdown`; what is not done then is done after the next start.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) -> anyhow::Result<()> {
        let works = async {
            loop {
                if let Err(error) = self.work().await {
                    tracing::warn!(%error, "evidence cannot be erased");
                    self.witness.clock.sleep(PAUSE).await;
                } else if self.pending.lock().is_empty() {
                    self.bell.notified().await;
                } else {
                    self.witness.clock.sleep(LOOK).await;
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = works => Ok(()),
        }
    }

    /// Does what waits for no turn.
    pub(super) async fn work(&self) -> io::Result<()> {
        let earliest = self.witness.turns.earliest(&self.witness.clock);
        let mut erasures = self.pending();
        erasures.retain(|it| it.until < earliest);
        if erasures.is_empty() {
            return Ok(());
        }
        let apps: BTreeSet<AppId> = erasures.iter().map(|it| it.app).collect();
        let Some(files) = self.witness.list(apps).await else {
            return Err(io::Error::other("the ledger's files were not closed"));
        };
        // A file that is opened meanwhile has nothing of what was said before.
        for file in files {
            let of_app = erasures.iter().filter(|it| it.app == file.app).cloned();
            let of_app: Vec<Erasure> = of_app.collect();
            if of_app.is_empty() {
                continue;
            }
            let folder = Arc::clone(&self.folder);
            let erased = blocking(move || folder.erase(&file, &of_app)).await?;
            self.counts.erased.inc_by(erased.records);
            self.counts.damaged.inc_by(erased.damaged);
        }
        let (folder, done) = (Arc::clone(&self.folder), erasures.clone());
        blocking(move || done.iter().try_for_each(|it| folder.forget_erasure(it))).await?;
        self.pending.lock().retain(|it| !erasures.contains(it));
        Ok(())
    }
}

/// Runs `work` where blocking is allowed.
pub(super) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
