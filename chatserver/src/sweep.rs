//! A changed list of words counts for what was said in the last ten minutes, too: comments that
//! hold a refused word are recalled by rule.
//!
//! Every chatserver looks; a recall is one however many ask for it, and who was first counts it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use chatserver_core::sweep::{Found, Sweep};
use parking_lot::Mutex;
use proto::envelope::{RoomEntry, RoomEvent};
use proto::id::{AppId, ItemId, RoomId};
use proto::time::{Mono, millis};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Recalled};
use crate::desk::{Desk, gauge};
use crate::site::Site;
use crate::store::rows::{Record, Scope};

/// Comments looked at in one turn: about a millisecond of a core.
const COMMENTS_MAX: usize = 500;
/// Recalls asked for in one turn.
const RECALLS_MAX: usize = 50;
/// Pause between turns while something is to be done: at most a twentieth of a core.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause after the store or the bus was away.
const AWAY_PAUSE: Duration = Duration::from_secs(1);
/// Comments of one room that wait to be recalled; more are left and counted.
const WAITING_MAX: usize = 10_000;
/// Ids that the record of a sweep names.
const NAMED_MAX: usize = 100;

/// What was said lately, behind its lock.
#[derive(Debug)]
pub(crate) struct Memory {
    sweep: Mutex<Sweep>,
    bell: Notify,
}

/// Who looks and recalls.
#[derive(Debug)]
pub(crate) struct Sweeper {
    pub(crate) site: Arc<Site>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) api: Arc<Api>,
}

/// What is recalled in one room.
#[derive(Debug, Default)]
struct Waiting {
    ids: VecDeque<ItemId>,
    /// Not before then.
    due: Mono,
    comments: usize,
    recalled: usize,
    named: Vec<ItemId>,
}

type Rooms = BTreeMap<(AppId, RoomId), Waiting>;

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { sweep: Mutex::new(Sweep::new(bytes_max)), bell: Notify::new() }
    }

    /// Takes what was shown.
    pub(crate) fn see(&self, entries: &[RoomEntry], now: Mono) {
        let mut sweep = self.sweep.lock();
        sweep.expire(now);
        for RoomEntry { app, room, event } in entries {
            if let RoomEvent::Flush { items, .. } = event {
                sweep.show(*app, room, items, now);
            }
        }
    }

    /// A list has changed.
    pub(crate) fn begin(&self, scope: &Scope, now: Mono) {
        self.sweep.lock().begin(scope.app, scope.room.as_ref(), now);
        self.bell.notify_one();
    }

    /// Says how much is kept.
    pub(crate) fn gauge(&self, site: &Site) {
        let mut sweep = self.sweep.lock();
        site.counts.sweep_bytes.set(gauge(sweep.bytes()));
        site.counts.sweep_forgotten.inc_by(sweep.forgotten());
    }
}

impl Sweeper {
    /// Looks at what is to be looked at, until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = self.follow() => Ok(()),
        }
    }

    async fn follow(&self) {
        let mut rooms = Rooms::new();
        loop {
            let is_searching = self.search(&mut rooms);
            self.recall(&mut rooms).await;
            if is_searching || !rooms.is_empty() {
                self.site.clock.sleep(PAUSE).await;
            } else {
                self.rest().await;
            }
        }
    }

    /// Waits until there may be something to do.
    async fn rest(&self) {
        let deadline = self.memory.sweep.lock().deadline();
        let Some(deadline) = deadline else { return self.memory.bell.notified().await };
        tokio::select! {
            () = self.memory.bell.notified() => {}
            () = self.site.clock.sleep(deadline.since(self.site.clock.mono())) => {}
        }
    }

    /// One step of a search, if there is one.
    fn search(&self, rooms: &mut Rooms) -> bool {
        let next = {
            let mut sweep = self.memory.sweep.lock();
            sweep.tick(self.site.clock.mono());
            sweep.next()
        };
        let Some(next) = next else { return false };
        let lists = self.desk.words(next.app, &next.room);
        let lists: Vec<_> = lists.iter().map(|it| &**it).collect();
        let found = self.memory.sweep.lock().step(&next, &lists, COMMENTS_MAX);
        let Some(found) = found else { return true };
        let Found { app, room, comments, ids, .. } = found;
        let counts = &self.site.counts;
        counts.swept("kept", comments - ids.len());
        if ids.is_empty() && !rooms.contains_key(&(app, room.clone())) {
            return true;
        }
        let waiting = rooms.entry((app, room)).or_default();
        waiting.comments += comments;
        let places = WAITING_MAX - waiting.ids.len().min(WAITING_MAX);
        counts.swept("left", ids.len().saturating_sub(places));
        waiting.ids.extend(ids.into_iter().take(places));
        true
    }

    async fn recall(&self, rooms: &mut Rooms) {
        let mut over = Vec::new();
        let mut recalls = 0;
        for (key, waiting) in rooms.iter_mut() {
            while recalls < RECALLS_MAX && waiting.due <= self.site.clock.mono() {
                let Some(id) = waiting.ids.pop_front() else { break };
                recalls += 1;
                self.recall_one(key, id, waiting).await;
            }
            if waiting.ids.is_empty() && !self.memory.sweep.lock().is_searched(key) {
                over.push(key.clone());
            }
        }
        for key in over {
            if let Some(waiting) = rooms.remove(&key) {
                self.note(&key, waiting).await;
            }
        }
    }

    async fn recall_one(&self, (app, room): &(AppId, RoomId), id: ItemId, waiting: &mut Waiting) {
        let counts = &self.site.counts;
        let now = self.site.clock.mono();
        match self.api.recall_by_rule(*app, room, id).await {
            Recalled::Now => {
                counts.swept("recalled", 1);
                waiting.recalled += 1;
                if waiting.named.len() < NAMED_MAX {
                    waiting.named.push(id);
                }
            }
            Recalled::Before => counts.swept("recalled_before", 1),
            Recalled::Later { after_ms } => {
                waiting.ids.push_front(id);
                let wait = Duration::from_millis(after_ms.into()).max(PAUSE);
                waiting.due = now + wait;
            }
            Recalled::Away => {
                waiting.ids.push_front(id);
                waiting.due = now + AWAY_PAUSE;
            }
            Recalled::Never => {
                counts.swept("left", waiting.ids.len() + 1);
                waiting.ids.clear();
            }
        }
    }

    /// Puts down what was done in a room.
    async fn note(&self, (app, room): &(AppId, RoomId), waiting: Waiting) {
        let Waiting { comments, recalled, named, .. } = waiting;
        if recalled == 0 {
            return;
        }
        let value = json!({
            "by": "rule", "comments": comments, "recalled": recalled, "ids": named,
            "minutes": millis(chatserver_core::sweep::MEMORY) / 60_000,
        });
        let record = Record::new(self.site.clock.wall(), "sweep");
        let record = Record { value: Some(value), ..record }.write(*app, Some(room));
        let written = match record {
            Ok(record) => self.site.rows.write_record(record).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::warn!(%error, %room, recalled, "the record of a sweep is lost");
        }
    }
}
