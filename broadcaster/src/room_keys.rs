//! Keys of sealed rooms: what is held, what is missing, and fetching it from the auth service.
//!
//! A room that is sealed has no file in the clear: without its key, its slots wait.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::room_key::{self, RoomKey, Unopened};
use auth_core::secret::Secret;
use bytes::Bytes;
use kit::clock::Clock;
use kit::health::Part;
use kit::task::Tasks;
use parking_lot::{Mutex, RwLock};
use proto::envelope::RoomBatch;
use proto::head::GenInfo;
use proto::id::{AppId, Gen, NodeId, RoomId};
use proto::keys::{ROOM_GENS_MAX, ROOMS_MAX, RoomGens, RoomKeysAnswer, RoomKeysRequest};
use proto::sealed::is_sealed;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::counts::Counts;
use crate::store::File;

/// Time for one fetch.
const FETCH_MAX: Duration = Duration::from_secs(3);
/// Bytes of an answer: 256 rooms, 64 gens, 8 masters, 70 bytes a key, and some room for names.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Pause after a fetch that failed; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
/// See [`PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Pause after an answer without a key that is wanted.
const LACKING: Duration = Duration::from_millis(500);
/// Rooms beyond which those that are another's are forgotten, about 200 bytes each.
const KEPT_MAX: usize = 16 * 1024;
/// Keys of running gens are fetched again so often: a master may have been declared void.
const REFRESH: Duration = Duration::from_mins(1);

/// Where keys come from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) client: reqwest::Client,
    /// Empty: from nowhere.
    pub(crate) auth_url: String,
    pub(crate) node: NodeId,
    pub(crate) secret: Secret,
    pub(crate) health: Part,
}

/// The keys of the rooms that this process writes.
#[derive(Debug)]
pub(crate) struct RoomKeys {
    counts: Counts,
    rooms: RwLock<BTreeMap<RoomId, Held>>,
    /// Something is wanted.
    asked: Notify,
    /// Changes when keys came.
    came: watch::Sender<u64>,
    /// Slots that wait for a key, by room.
    waiting: Mutex<BTreeMap<RoomId, usize>>,
}

/// What is held of a room.
#[derive(Debug)]
struct Held {
    app: AppId,
    /// Whether this process drives it.
    is_owned: bool,
    /// The running gen, while it is sealed.
    running: Option<Gen>,
    /// By gen; the first key of each seals.
    keys: BTreeMap<Gen, Vec<RoomKey>>,
    wanted: BTreeSet<Gen>,
}

impl RoomKeys {
    /// None yet; they are fetched until `closing`.
    pub(crate) fn start(
        source: Source,
        (clock, counts): (&Clock, &Counts),
        closing: &CancellationToken,
        tasks: &mut Tasks,
    ) -> Arc<Self> {
        let keys = Arc::new(Self::new(counts.clone()));
        let fetch = Arc::clone(&keys).fetch(source, clock.clone(), closing.clone());
        tasks.spawn("room keys", fetch);
        keys
    }

    pub(crate) fn new(counts: Counts) -> Self {
        let (rooms, asked, came) = (RwLock::default(), Notify::new(), watch::Sender::new(0));
        Self { counts, rooms, asked, came, waiting: Mutex::default() }
    }

    /// The room is driven by this process.
    pub(crate) fn own(&self, room: &RoomId, app: AppId) {
        let held = || {
            let (keys, wanted) = (BTreeMap::new(), BTreeSet::new());
            Held { app, is_owned: true, running: None, keys, wanted }
        };
        let mut rooms = self.rooms.write();
        let known = rooms.entry(room.clone()).or_insert_with(held);
        // A name that another app had before has other keys.
        if known.app != app {
            *known = held();
        }
        known.is_owned = true;
        if rooms.len() > KEPT_MAX {
            rooms.retain(|_, it| it.is_owned);
        }
    }

    /// It is not any more. Its keys stay for what is still to be erased from its files.
    pub(crate) fn release(&self, room: &RoomId) {
        if let Some(held) = self.rooms.write().get_mut(room) {
            (held.is_owned, held.running) = (false, None);
        }
    }

    /// A gen begins, or goes on here. One that is sealed counts at once; that a room is not sealed
    /// any more is told by [`RoomKeys::unseal`], when the last flush of the sealed gen is on its way.
    pub(crate) fn begin(&self, room: &RoomId, info: &GenInfo) {
        if let Some(held) = self.rooms.write().get_mut(room).filter(|_| info.is_sealed()) {
            held.running = Some(info.gen_no);
            // The next one's key is there before the gen is.
            held.want(info.gen_no);
            held.want(Gen(info.gen_no.0.saturating_add(1)));
            self.asked.notify_one();
        }
    }

    /// The running gen is open to all.
    pub(crate) fn unseal(&self, room: &RoomId) {
        if let Some(held) = self.rooms.write().get_mut(room) {
            held.running = None;
        }
    }

    /// Whether what is shown in the room now must not leave in the clear.
    pub(crate) fn is_sealed(&self, room: &RoomId) -> bool {
        self.rooms.read().get(room).is_some_and(|it| it.running.is_some())
    }

    /// What of a record for links may leave in the clear.
    pub(crate) fn clear(&self, record: &Bytes) -> Option<Bytes> {
        let rooms = self.rooms.read();
        let is_sealed =
            |room: &RoomId| rooms.get(room).is_some_and(|it: &Held| it.running.is_some());
        if !rooms.values().any(|it| it.running.is_some()) {
            return Some(record.clone());
        }
        let mut batch = RoomBatch::decode(record).ok()?;
        if !batch.entries.iter().any(|it| is_sealed(&it.room)) {
            return Some(record.clone());
        }
        batch.entries.retain(|it| !is_sealed(&it.room));
        (!batch.entries.is_empty()).then(|| batch.encode())
    }

    /// What seals the files of a gen. When it is missing, it is fetched.
    pub(crate) fn sealing(&self, room: &RoomId, gen_no: Gen) -> Option<RoomKey> {
        let found =
            self.rooms.read().get(room).and_then(|it| it.keys.get(&gen_no)?.first().cloned());
        if found.is_none() {
            self.want(room, gen_no);
        }
        found
    }

    /// A file's bytes in the clear: what is not sealed is so already.
    ///
    /// # Errors
    /// [`Unopened`]. A key that is missing is fetched.
    pub(crate) fn open(&self, file: &File, bytes: &Bytes) -> Result<Bytes, Unopened> {
        let File::Segment { room, gen_no, .. } = file else {
            return Ok(bytes.clone());
        };
        if !is_sealed(bytes) {
            return Ok(bytes.clone());
        }
        let opened = {
            let rooms = self.rooms.read();
            let keys = rooms.get(room).and_then(|it| it.keys.get(gen_no));
            room_key::open(keys.map_or(&[], Vec::as_slice), &file.to_string(), bytes)
        };
        if matches!(opened, Err(Unopened::NoKey { .. })) {
            self.want(room, *gen_no);
        }
        opened.map(Bytes::from)
    }

    /// Waits until keys of a gen are held, at most for `wait_max`.
    pub(crate) async fn wait(&self, room: &RoomId, gen_no: Gen, wait_max: Duration) {
        let mut came = self.came();
        let held =
            async { while self.sealing(room, gen_no).is_none() && came.changed().await.is_ok() {} };
        tokio::time::timeout(wait_max, held).await.ok();
    }

    /// Changes when keys came.
    pub(crate) fn came(&self) -> watch::Receiver<u64> {
        self.came.subscribe()
    }

    /// So many slots of a room wait for a key.
    pub(crate) fn waits(&self, room: &RoomId, slots: usize) {
        let mut waiting = self.waiting.lock();
        match slots {
            0 => waiting.remove(room),
            _ => waiting.insert(room.clone(), slots),
        };
        let all: usize = waiting.values().sum();
        self.counts.unsealed.set(i64::try_from(all).unwrap_or(i64::MAX));
    }

    fn want(&self, room: &RoomId, gen_no: Gen) {
        if let Some(held) = self.rooms.write().get_mut(room) {
            held.want(gen_no);
            self.asked.notify_one();
        }
    }

    /// What to ask for: what is wanted, and perhaps what runs.
    fn question(&self, refresh: Refresh) -> Vec<RoomGens> {
        let rooms = self.rooms.read();
        let question = rooms.iter().map(|(room, held)| {
            let running = held.running.filter(|_| refresh == Refresh::Running);
            let next = running.map(|it| Gen(it.0.saturating_add(1)));
            let gens = held.wanted.iter().copied().chain(running).chain(next);
            let gens: BTreeSet<Gen> = gens.take(ROOM_GENS_MAX).collect();
            RoomGens { app: held.app, room: room.clone(), gens: gens.into_iter().collect() }
        });
        question.filter(|it| !it.gens.is_empty()).collect()
    }

    /// Takes an answer; a gen without any key in it stays wanted.
    fn take(&self, answer: RoomKeysAnswer) -> anyhow::Result<()> {
        let mut rooms = self.rooms.write();
        for told in answer.rooms {
            let Some(held) = rooms.get_mut(&told.room) else {
                continue;
            };
            let mut keys: BTreeMap<Gen, Vec<RoomKey>> = BTreeMap::new();
            for key in &told.keys {
                let key = RoomKey::read(key).context("a key is not 16 bytes in hexadecimal")?;
                keys.entry(key.gen_no()).or_default().push(key);
            }
            for (gen_no, keys) in keys {
                held.wanted.remove(&gen_no);
                held.keys.insert(gen_no, keys);
            }
            // The oldest are fetched again if they are needed again.
            while held.keys.len() > ROOM_GENS_MAX {
                held.keys.pop_first();
            }
        }
        drop(rooms);
        self.came.send_modify(|it| *it = it.wrapping_add(1));
        Ok(())
    }

    /// Fetches what is wanted until `shutdown`.
    async fn fetch(
        self: Arc<Self>,
        source: Source,
        clock: Clock,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut pause = PAUSE;
        let mut refresh_at = clock.mono() + REFRESH;
        loop {
            let refresh = match clock.mono() >= refresh_at {
                true => Refresh::Running,
                false => Refresh::Nothing,
            };
            let fetched = self.ask(&source, refresh).await;
            let rest = match fetched {
                Ok(()) => {
                    source.health.ok();
                    pause = PAUSE;
                    let now = clock.mono();
                    if refresh == Refresh::Running {
                        refresh_at = now + REFRESH;
                    }
                    // Slots that wait for what was not in the answer ask for it again at once.
                    if !self.question(Refresh::Nothing).is_empty() {
                        clock.sleep(LACKING).await;
                    }
                    refresh_at.since(clock.mono())
                }
                Err(error) => {
                    self.warn(&source.health, &error);
                    pause = (pause * 2).min(PAUSE_MAX);
                    pause
                }
            };
            let has_failed = pause > PAUSE;
            tokio::select! {
                () = self.asked.notified(), if !has_failed => {}
                () = clock.sleep(rest) => {}
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Slots that wait are late for everybody; a key that is missing ahead only may become so.
    fn warn(&self, health: &Part, error: &anyhow::Error) {
        let rooms = self.waiting.lock().len();
        if rooms > 0 {
            health.fail(format!("no keys for {rooms} sealed rooms, whose slots wait: {error:#}"));
        } else {
            health.warn(format!("no keys for sealed rooms: {error:#}"));
        }
    }

    async fn ask(&self, source: &Source, refresh: Refresh) -> anyhow::Result<()> {
        let mut all = Ok(());
        for rooms in self.question(refresh).chunks(ROOMS_MAX) {
            let asked = self.ask_for(source, rooms.to_vec()).await;
            self.counts.key_fetch(if asked.is_ok() { "ok" } else { "failed" });
            // The rest of the rooms may fare better.
            all = all.and(asked);
        }
        all
    }

    async fn ask_for(&self, source: &Source, rooms: Vec<RoomGens>) -> anyhow::Result<()> {
        ensure!(!source.auth_url.is_empty(), "auth_url is not set");
        let sent = source
            .client
            .post(format!("{}/v1/keys/rooms", source.auth_url.trim_end_matches('/')))
            .bearer_auth(source.secret.expose())
            .header("x-barrage-node", source.node.to_string())
            .json(&RoomKeysRequest { rooms })
            .timeout(FETCH_MAX)
            .send();
        let mut response = sent.await.context("the auth service did not answer")?;
        ensure!(response.status().is_success(), "the auth service says {}", response.status());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.context("the answer broke off")? {
            ensure!(body.len() + chunk.len() <= ANSWER_BYTES_MAX, "the answer is too long");
            body.extend_from_slice(&chunk);
        }
        self.take(serde_json::from_slice(&body).context("the answer is not understood")?)
    }
}

/// What is asked for beside what is wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Refresh {
    Nothing,
    Running,
}

impl Held {
    fn want(&mut self, gen_no: Gen) {
        if !self.keys.contains_key(&gen_no) {
            self.wanted.insert(gen_no);
        }
        // What was wanted first may be over.
        while self.wanted.len() > ROOM_GENS_MAX {
            self.wanted.pop_first();
        }
    }
}
