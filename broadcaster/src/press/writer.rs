//! Writes to one store, in the order that each room's files need.
//!
//! A room always goes to the same writer of a store, so its segments and heads stay in order while
//! rooms do not wait for each other.

mod gaps;
mod rewrite;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use broadcaster_core::pack::expand;
use bus::topic;
use bytes::Bytes;
use kit::clock::Clock;
use kit::task::Tasks;
use proto::id::RoomId;
use proto::item::Body;
use proto::segment::Segment;
use proto::time::Mono;
use tokio::sync::mpsc;

use self::gaps::Gaps;
pub(super) use self::rewrite::Erasure;
use crate::bases::Storing;
use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::press::wellness::Wellness;
use crate::store::{Created, File, SegmentStore, Stamp, StoreError};

/// Pause after a failure; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
/// See [`PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Files that could not be removed and are tried again; beyond, the oldest are left lying.
const LEFTOVERS_MAX: usize = 1024;

/// Files to be written, then those that name them, then files to be removed.
#[derive(Clone, Debug)]
pub(super) struct Work {
    files: Arc<[(File, Bytes)]>,
    heads: Vec<(File, Bytes, Stamp)>,
    removes: Arc<[File]>,
    erasure: Option<Erasure>,
    confirm: Option<mpsc::Sender<()>>,
    /// When it was put into the queues.
    since: Mono,
}

impl Work {
    /// Work, and where its first success shows; that ends empty when no store is left to do it.
    pub(super) fn new(
        files: Vec<(File, Bytes)>,
        heads: Vec<(File, Bytes, Stamp)>,
        removes: Vec<File>,
        stores: usize,
    ) -> (Self, mpsc::Receiver<()>) {
        let (confirm, first) = mpsc::channel(stores.max(1));
        let confirm = Some(confirm);
        let (files, removes) = (files.into(), removes.into());
        (Self { files, heads, removes, erasure: None, confirm, since: Mono(0) }, first)
    }

    /// Whether a gift stands in its slot, repeats aside: where tests have the process die.
    fn shows_gift(&self) -> bool {
        let shows = |bytes: &Bytes| {
            let segment = expand(bytes).ok().and_then(|it| Segment::decode(&it).ok());
            segment.is_some_and(|it| {
                it.items.iter().any(|it| matches!(it.item.body, Body::Gift { .. }))
            })
        };
        self.files.iter().any(|(_, bytes)| shows(bytes))
    }

    /// Only removes.
    pub(super) fn remove(files: Vec<File>) -> Self {
        Self { removes: files.into(), ..Self::nothing() }
    }

    /// Only takes an item out of what is written.
    pub(super) fn erase(erasure: Erasure) -> Self {
        Self { erasure: Some(erasure), ..Self::nothing() }
    }

    fn nothing() -> Self {
        let (files, removes) = (Arc::new([]), Arc::new([]));
        Self { files, heads: Vec::new(), removes, erasure: None, confirm: None, since: Mono(0) }
    }

    /// The same for a store that may have missed some: its heads do not name those.
    fn given(&self, room: &RoomId, gaps: &mut Gaps, since: Mono) -> Self {
        let mut work = Self { since, ..self.clone() };
        for (_, bytes, _) in work.heads.iter_mut().filter(|it| matches!(it.0, File::Head(_))) {
            if let Some(adapted) = gaps.adapt(room, bytes) {
                *bytes = adapted;
            }
        }
        work
    }

    /// A store goes without it.
    fn missed(&self, room: &RoomId, gaps: &mut Gaps) {
        let head = self.heads.iter().find(|it| matches!(it.0, File::Head(_)));
        if let (false, Some((_, bytes, _))) = (self.files.is_empty(), head) {
            gaps.note(room, bytes);
        }
    }
}

/// The queues of all writers, by store.
#[derive(Debug)]
pub(super) struct Writers {
    stores: Vec<Vec<mpsc::Sender<Work>>>,
    gaps: Vec<Gaps>,
    clock: Clock,
    counts: Counts,
    wellness: Arc<Wellness>,
}

impl Writers {
    /// Starts the writers of every store; beside each, how it takes slots where a base of its own
    /// serves it.
    pub(super) fn start(
        config: &Config,
        wellness: Wellness,
        stores: impl Iterator<Item = (Arc<dyn SegmentStore>, Option<Arc<Storing>>)>,
        purges: Option<&mpsc::Sender<File>>,
        tasks: &mut Tasks,
    ) -> Self {
        let (clock, counts) = (wellness.clock.clone(), wellness.counts.clone());
        let wellness = Arc::new(wellness);
        let mut queues = Vec::new();
        for (number, (store, storing)) in stores.enumerate() {
            let mut writers = Vec::new();
            for _ in 0..config.writers {
                let (sender, queue) = mpsc::channel(config.store_queue_max);
                writers.push(sender);
                let writer = Writer {
                    number,
                    store: Arc::clone(&store),
                    clock: clock.clone(),
                    counts: counts.clone(),
                    wellness: Arc::clone(&wellness),
                    call_max: millis(config.store_ms_max),
                    life: Duration::from_secs(config.retention_s.into()),
                    writes_hls: config.hls,
                    leftovers: VecDeque::new(),
                    purges: purges.cloned(),
                    storing: storing.clone(),
                    wait_max: millis(config.store_wait_ms_max),
                };
                tasks.spawn("store", writer.run(queue));
            }
            queues.push(writers);
        }
        let gaps = queues.iter().map(|_| Gaps::default()).collect();
        Self { stores: queues, gaps, clock, counts, wellness }
    }

    /// Whether a store works, or there is none.
    pub(super) fn are_well(&self) -> bool {
        self.wellness.is_well()
    }

    /// How many stores there are.
    pub(super) fn stores(&self) -> usize {
        self.stores.len()
    }

    /// Puts work into the queue of the room's writer of every store. A store whose queue is full
    /// goes without it.
    pub(super) fn send(&mut self, room: &RoomId, work: &Work) {
        let partition = topic::sealed().partition_of_room(room).0 as usize;
        let now = self.clock.mono();
        for (number, (writers, gaps)) in self.stores.iter().zip(&mut self.gaps).enumerate() {
            let queue = &writers[partition % writers.len()];
            if queue.try_send(work.given(room, gaps, now)).is_err() {
                work.missed(room, gaps);
                self.counts.store_error(number, "queue_full");
            }
        }
    }
}

struct Writer {
    number: usize,
    store: Arc<dyn SegmentStore>,
    clock: Clock,
    counts: Counts,
    wellness: Arc<Wellness>,
    call_max: Duration,
    life: Duration,
    writes_hls: bool,
    leftovers: VecDeque<File>,
    /// Files that caches must forget, if any are told.
    purges: Option<mpsc::Sender<File>>,
    /// How it takes slots, where a base of its own serves them.
    storing: Option<Arc<Storing>>,
    wait_max: Duration,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Work>) -> anyhow::Result<()> {
        while let Some(work) = queue.recv().await {
            self.write(&work, &queue).await;
            self.remove(&work.removes).await;
        }
        Ok(())
    }

    /// Tries until it is done; when the slot's life is over, only while there is nothing newer,
    /// so that a store that works again is noticed; when the process ends, only once.
    async fn write(&self, work: &Work, queue: &mpsc::Receiver<Work>) {
        let started = self.clock.mono();
        let mut pause = PAUSE;
        let mut is_late = false;
        loop {
            let error = match self.attempt(work).await {
                Ok(()) => break,
                Err(error) => error,
            };
            self.wellness.refused(self.number, error);
            if !is_late && self.clock.mono().since(work.since) >= self.wait_max {
                is_late = true;
                self.note(work, None);
            }
            let is_over = self.clock.mono().since(started) >= self.life;
            if queue.is_closed() || is_over && !queue.is_empty() {
                return;
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.wellness.took(self.number);
        if !is_late {
            self.note(work, Some(self.clock.mono().since(work.since)));
        }
        if let Some(confirm) = &work.confirm {
            confirm.try_send(()).ok();
        }
    }

    /// Notes how long a slot took, or that it is late.
    fn note(&self, work: &Work, took: Option<Duration>) {
        let Some(storing) = self.storing.as_ref().filter(|_| !work.files.is_empty()) else {
            return;
        };
        match took.filter(|it| *it < self.wait_max) {
            Some(took) => storing.stored(took),
            None => storing.unstored(),
        }
    }

    async fn attempt(&self, work: &Work) -> Result<(), StoreError> {
        if !work.files.is_empty() {
            let created = self.in_time("create", self.store.create(work.files.to_vec())).await?;
            for result in created {
                match result {
                    // Whoever wrote it before sealed the same slot.
                    Ok(Created::New | Created::Existed) => {}
                    Err(error) => return Err(self.failed("create", error)),
                }
            }
        }
        kit::dying::pass("created", || work.shows_gift());
        for (file, bytes, stamp) in work.heads.clone() {
            let replaced = self.in_time("replace", self.store.replace(file, bytes, stamp)).await?;
            replaced.map_err(|error| self.failed("replace", error))?;
            kit::dying::pass("head", || work.shows_gift());
        }
        if let Some(erasure) = &work.erasure {
            self.erase(erasure).await?;
        }
        Ok(())
    }

    async fn remove(&mut self, files: &[File]) {
        self.leftovers.extend(files.iter().cloned());
        while self.leftovers.len() > LEFTOVERS_MAX {
            self.leftovers.pop_front();
        }
        if self.leftovers.is_empty() {
            return;
        }
        let files: Vec<File> = self.leftovers.iter().cloned().collect();
        let Ok(results) = self.in_time("remove", self.store.remove(files)).await else {
            return;
        };
        let mut results = results.into_iter();
        self.leftovers.retain(|_| match results.next() {
            Some(Ok(())) => false,
            Some(Err(_)) | None => {
                self.counts.store_error(self.number, "remove");
                true
            }
        });
    }

    async fn in_time<R>(
        &self,
        call: &'static str,
        future: impl Future<Output = R>,
    ) -> Result<R, StoreError> {
        let late = |_| self.failed(call, StoreError::Away("it did not answer in time".to_owned()));
        tokio::time::timeout(self.call_max, future).await.map_err(late)
    }

    fn failed(&self, call: &str, error: StoreError) -> StoreError {
        self.counts.store_error(self.number, call);
        error
    }
}
