//! Lists of words: read from the room store, compiled, and given to the shard.
//!
//! `control` says that a list changed, not what it holds. The old list counts until the new one is
//! compiled, which happens beside the turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chatserver_core::shard::Input;
use chatserver_core::words::{BadList, Word, Words};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::site::Site;
use crate::store::StoreError;
use crate::store::rows::{LISTS_MAX, Scope};

/// Pause after the store was away.
const PAUSE: Duration = Duration::from_millis(200);

/// Who keeps the shard's lists new.
#[derive(Debug)]
pub(crate) struct Lists {
    site: Arc<Site>,
    desk: Arc<Desk>,
    /// Versions that the shard has.
    known: Mutex<BTreeMap<Scope, u64>>,
    /// Lists that changed, at most [`LISTS_MAX`].
    wanted: Mutex<BTreeSet<Scope>>,
    bell: Notify,
}

impl Lists {
    pub(crate) fn new(site: Arc<Site>, desk: Arc<Desk>) -> Self {
        Self { site, desk, known: Mutex::default(), wanted: Mutex::default(), bell: Notify::new() }
    }

    /// Notes that a list has this version now.
    pub(crate) fn want(&self, scope: Scope, version: u64) {
        if self.known.lock().get(&scope).is_some_and(|it| *it >= version) {
            return;
        }
        let mut wanted = self.wanted.lock();
        if wanted.len() < LISTS_MAX {
            wanted.insert(scope);
            self.bell.notify_one();
        }
    }

    /// Gives the shard a list, unless it has a newer one.
    pub(crate) fn give(&self, scope: Scope, version: u64, words: Arc<Words>) {
        let mut known = self.known.lock();
        if known.get(&scope).is_some_and(|it| *it >= version) {
            return;
        }
        let words = Some(words).filter(|it| !it.is_empty());
        self.desk.learn([Input::Words { app: scope.app, room: scope.room.clone(), words }]);
        known.insert(scope, version);
    }

    /// Reads every list of the store: nobody may be judged without them.
    pub(crate) async fn load_all(&self) -> Result<(), StoreError> {
        for scope in self.site.rows.word_lists().await? {
            self.load(scope).await?;
        }
        Ok(())
    }

    /// Reads what changes, until `shutdown`.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = self.follow() => Ok(()),
        }
    }

    async fn follow(&self) {
        loop {
            let Some(scope) = self.wanted.lock().pop_first() else {
                self.bell.notified().await;
                continue;
            };
            while let Err(error) = self.load(scope.clone()).await {
                tracing::warn!(%error, ?scope, "a list of words cannot be read");
                self.site.clock.sleep(PAUSE).await;
            }
        }
    }

    async fn load(&self, scope: Scope) -> Result<(), StoreError> {
        let list = self.site.rows.words(&scope).await?;
        match compile(list.words).await {
            Ok(words) => self.give(scope, list.version, words),
            // It was compiled before it was written, perhaps by a later version of this program.
            Err(error) => tracing::error!(%error, ?scope, "a list of words does not count"),
        }
        Ok(())
    }
}

/// Compiles a list beside the turns: 100,000 words take half a second.
pub(crate) async fn compile(words: Vec<Word>) -> Result<Arc<Words>, BadList> {
    let compiled = tokio::task::spawn_blocking(move || Words::compile(&words)).await;
    compiled.unwrap_or(Err(BadList::TooLarge)).map(Arc::new)
}
