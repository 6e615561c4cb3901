//! Lists of words: read from the room store, compiled, and given to the shard.
//!
//! `control` says that a list changed, not what it holds. The old list counts until the new one is
//! compiled, which happens beside the turns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chatserver_core::shard::Input;
use chatserver_core::words::{BadList, Word, Words};
use parking_lot::Mutex;
use proto::control::Fact;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::announce::AnnounceError;
use crate::desk::Desk;
use crate::site::Site;
use crate::store::StoreError;
use crate::store::rows::Scope;
use crate::sweep::Memory;

/// Pause after the store was away.
const PAUSE: Duration = Duration::from_millis(200);

/// Who keeps the shard's lists new. There are as many scopes as apps and rooms.
#[derive(Debug)]
pub(crate) struct Lists {
    site: Arc<Site>,
    desk: Arc<Desk>,
    memory: Arc<Memory>,
    /// Versions that the shard has.
    known: Mutex<BTreeMap<Scope, u64>>,
    /// Lists that changed.
    wanted: Mutex<BTreeMap<Scope, Wanted>>,
    bell: Notify,
}

/// Why a list is to be read again.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// The version that it has if nothing lies in the store.
    version: u64,
    /// Whether everyone knows of it.
    is_told: bool,
}

/// A list that was read.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    version: u64,
    /// Whether the shard did not have it.
    is_new: bool,
}

impl Lists {
    pub(crate) fn new(site: Arc<Site>, desk: Arc<Desk>, memory: Arc<Memory>) -> Self {
        let (known, wanted) = (Mutex::default(), Mutex::default());
        Self { site, desk, memory, known, wanted, bell: Notify::new() }
    }

    /// Hears that a list has this version now.
    pub(crate) fn hear(&self, scope: Scope, version: u64) {
        if self.known.lock().get(&scope).is_none_or(|it| *it < version) {
            self.want(scope, Wanted { version, is_told: true });
        }
    }

    /// Whoever is about to write a list holds this until everything is done: if it is dropped
    /// before, the list is read again and told, since the write may have happened.
    pub(crate) fn change(&self, scope: Scope, version: u64) -> Change<'_> {
        Change { lists: self, scope: Some(scope), version }
    }

    fn want(&self, scope: Scope, wanted: Wanted) {
        let mut all = self.wanted.lock();
        let before = all.entry(scope).or_insert(wanted);
        before.version = before.version.max(wanted.version);
        before.is_told &= wanted.is_told;
        self.bell.notify_one();
    }

    /// Gives the shard a list, unless it has a newer one; whether it has not.
    fn give(&self, scope: Scope, version: u64, words: Arc<Words>) -> bool {
        let mut known = self.known.lock();
        if known.get(&scope).is_some_and(|it| *it >= version) {
            return false;
        }
        let words = Some(words).filter(|it| !it.is_empty());
        self.desk.learn([Input::Words { app: scope.app, room: scope.room.clone(), words }]);
        known.insert(scope, version);
        true
    }

    /// Reads every list of the store: nobody may be judged without them.
    pub(crate) async fn load_all(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let (scopes, next) = self.site.rows.word_lists(after).await?;
            for scope in scopes {
                self.load(scope, 0).await?;
            }
            let Some(next) = next else { return Ok(()) };
            after = Some(next);
        }
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
            let Some((scope, wanted)) = self.wanted.lock().pop_first() else {
                self.bell.notified().await;
                continue;
            };
            while let Err(error) = self.renew(&scope, wanted).await {
                tracing::warn!(%error, ?scope, "a list of words cannot be renewed");
                self.site.clock.sleep(PAUSE).await;
            }
        }
    }

    async fn renew(&self, scope: &Scope, wanted: Wanted) -> anyhow::Result<()> {
        let Loaded { version, is_new } = self.load(scope.clone(), wanted.version).await?;
        if is_new {
            self.memory.begin(scope, self.site.clock.mono());
        }
        if !wanted.is_told {
            let Scope { app, room } = scope.clone();
            self.site.tell(vec![Fact::Words { app, room, version }]).await?;
        }
        Ok(())
    }

    /// Reads a list, which has the version `absent` if there is none.
    async fn load(&self, scope: Scope, absent: u64) -> Result<Loaded, StoreError> {
        let list = self.site.rows.words(&scope).await?;
        let version = if list.words.is_empty() { absent } else { list.version };
        let is_new = match compile(list.words).await {
            Ok(words) => self.give(scope, version, words),
            // It was compiled before it was written, perhaps by a later version of this program.
            Err(error) => {
                tracing::error!(%error, ?scope, "a list of words does not count");
                false
            }
        };
        Ok(Loaded { version, is_new })
    }
}

/// A list that is about to change.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    lists: &'a Lists,
    /// None: it is done.
    scope: Option<Scope>,
    version: u64,
}

impl Change<'_> {
    /// It is written: lets it count here, and tells everyone.
    pub(crate) async fn done(mut self, words: Arc<Words>) -> Result<(), AnnounceError> {
        let Some(scope) = self.scope.clone() else { return Ok(()) };
        if self.lists.give(scope.clone(), self.version, words) {
            self.lists.memory.begin(&scope, self.lists.site.clock.mono());
        }
        let Scope { app, room } = scope;
        let fact = Fact::Words { app, room, version: self.version };
        self.lists.site.tell(vec![fact]).await?;
        self.scope = None;
        Ok(())
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if let Some(scope) = self.scope.take() {
            self.lists.want(scope, Wanted { version: self.version, is_told: false });
        }
    }
}

/// Compiles a list beside the turns: 100,000 words take half a second.
pub(crate) async fn compile(words: Vec<Word>) -> Result<Arc<Words>, BadList> {
    let compiled = tokio::task::spawn_blocking(move || Words::compile(&words)).await;
    compiled.unwrap_or(Err(BadList::TooLarge)).map(Arc::new)
}
