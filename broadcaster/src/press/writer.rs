//! Writes to one store, in the order that each room's files need.
//!
//! A room always goes to the same writer of a store, so its segments and heads stay in order while
//! rooms do not wait for each other.

mod calls;
mod gaps;
mod leftovers;
mod rewrite;
#[cfg(test)]
mod tests;

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

use self::calls::Calls;
use self::gaps::Gaps;
use self::leftovers::Leftovers;
use self::rewrite::Eraser;
pub(super) use self::rewrite::Erasure;
use crate::bases::Storing;
use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::press::files::Printer;
use crate::press::wellness::Wellness;
use crate::purge::Purges;
use crate::room_keys::RoomKeys;
use crate::store::{File, SegmentStore, Stamp, StoreError};

/// Pause after a failure; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
/// See [`PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Erasures in the queue of a store's eraser.
const ERASURES_MAX: usize = 256;
/// Erasures that wait for a place in that queue, ten kilobytes each at most; beyond, an erasure is
/// lost for this store, and the log says so.
const ERASURES_KEPT_MAX: usize = 1_000;

/// Files to be written, then those that name them, then files to be removed.
#[derive(Clone, Debug)]
pub(super) struct Work {
    files: Arc<[(File, Bytes)]>,
    heads: Vec<(File, Bytes, Stamp)>,
    removes: Arc<[File]>,
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
        (Self { files, heads, removes, confirm, since: Mono(0) }, first)
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
        let (nothing, removes) = (Arc::new([]), files.into());
        Self { files: nothing, heads: Vec::new(), removes, confirm: None, since: Mono(0) }
    }

    /// The same for a store that may have missed some: its heads do not name those.
    fn given(&self, room: &RoomId, gaps: &mut Gaps, since: Mono) -> Self {
        let mut work = Self { since, ..self.clone() };
        gaps.adapt(room, &mut work.heads);
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

/// The queues of all stores.
#[derive(Debug)]
pub(super) struct Writers {
    stores: Vec<Queues>,
    clock: Clock,
    counts: Counts,
    wellness: Arc<Wellness>,
}

/// The queues of one store.
#[derive(Debug)]
struct Queues {
    writers: Vec<(mpsc::Sender<Work>, Arc<Leftovers>)>,
    gaps: Gaps,
    storing: Option<Arc<Storing>>,
    eraser: mpsc::Sender<Erasure>,
    /// Erasures that found no place in the eraser's queue.
    kept: VecDeque<Erasure>,
}

impl Writers {
    /// Starts the writers of every store; beside each, how it takes slots where a base of its own
    /// serves it.
    pub(super) fn start(
        config: &Config,
        wellness: Wellness,
        stores: impl Iterator<Item = (Arc<dyn SegmentStore>, Option<Arc<Storing>>)>,
        (printer, purges, keys): (&Printer, &Purges, &Arc<RoomKeys>),
        tasks: &mut Tasks,
    ) -> Self {
        let (clock, counts) = (wellness.clock.clone(), wellness.counts.clone());
        let wellness = Arc::new(wellness);
        let mut queues = Vec::new();
        for (number, (store, storing)) in stores.enumerate() {
            let call_max = millis(config.store_ms_max);
            let calls = Calls { number, store, counts: counts.clone(), call_max };
            let life = Duration::from_secs(config.retention_s.into());
            let mut writers = Vec::new();
            for _ in 0..config.writers {
                let (sender, queue) = mpsc::channel(config.store_queue_max);
                let leftovers = Arc::new(Leftovers::default());
                writers.push((sender, Arc::clone(&leftovers)));
                let writer = Writer {
                    calls: calls.clone(),
                    clock: clock.clone(),
                    wellness: Arc::clone(&wellness),
                    life,
                    leftovers,
                    storing: storing.clone(),
                    wait_max: millis(config.store_wait_ms_max),
                };
                tasks.spawn("store", writer.run(queue));
            }
            let (eraser, queue) = mpsc::channel(ERASURES_MAX);
            let (printer, purges, keys) = (printer.clone(), purges.clone(), Arc::clone(keys));
            let task = Eraser { calls, clock: clock.clone(), life, printer, keys, purges };
            tasks.spawn("eraser", task.run(queue));
            let (gaps, kept) = (Gaps::default(), VecDeque::new());
            queues.push(Queues { writers, gaps, storing, eraser, kept });
        }
        Self { stores: queues, clock, counts, wellness }
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
    /// goes without what was to be written; what was to be removed is removed all the same.
    pub(super) fn send(&mut self, room: &RoomId, work: &Work) {
        let partition = topic::sealed().partition_of_room(room).0 as usize;
        let now = self.clock.mono();
        for (number, store) in self.stores.iter_mut().enumerate() {
            let (queue, leftovers) = &store.writers[partition % store.writers.len()];
            if queue.try_send(work.given(room, &mut store.gaps, now)).is_err() {
                work.missed(room, &mut store.gaps);
                leftovers.add(work.removes.iter().cloned());
                self.counts.store_error(number, "queue_full");
                if let Some(storing) = store.storing.as_ref().filter(|_| !work.files.is_empty()) {
                    storing.unstored();
                }
            }
        }
    }

    /// Has every store's eraser take items out.
    pub(super) fn erase(&mut self, erasure: &Erasure) {
        for (number, store) in self.stores.iter_mut().enumerate() {
            if store.kept.len() < ERASURES_KEPT_MAX {
                store.kept.push_back(erasure.clone());
            } else {
                self.counts.store_error(number, "erasure_lost");
                let room = &erasure.room;
                tracing::error!(%room, store = number, "too many erasures: one is lost");
            }
        }
        self.hand_on();
    }

    /// Hands on erasures that found no place before.
    pub(super) fn hand_on(&mut self) {
        for store in &mut self.stores {
            while let Some(erasure) = store.kept.pop_front() {
                if let Err(refused) = store.eraser.try_send(erasure) {
                    store.kept.push_front(refused.into_inner());
                    break;
                }
            }
        }
    }

    /// The room is no longer written by this process.
    pub(super) fn forget(&mut self, room: &RoomId) {
        for store in &mut self.stores {
            store.gaps.forget(room);
        }
    }
}

struct Writer {
    calls: Calls,
    clock: Clock,
    wellness: Arc<Wellness>,
    life: Duration,
    leftovers: Arc<Leftovers>,
    /// How it takes slots, where a base of its own serves them.
    storing: Option<Arc<Storing>>,
    wait_max: Duration,
}

impl Writer {
    async fn run(self, mut queue: mpsc::Receiver<Work>) -> anyhow::Result<()> {
        while let Some(work) = queue.recv().await {
            self.leftovers.add(work.removes.iter().cloned());
            if !work.files.is_empty() || !work.heads.is_empty() {
                let is_written = self.write(&work, &queue).await;
                // A store that is away or slow now would hold up the end with each of the rest.
                if !is_written && queue.is_closed() {
                    return Ok(());
                }
            }
            self.remove().await;
        }
        Ok(())
    }

    /// Tries until it is done; when the slot's life is over, only while there is nothing newer,
    /// so that a store that works again is noticed; when the process ends, only once. Tells whether
    /// it was done.
    async fn write(&self, work: &Work, queue: &mpsc::Receiver<Work>) -> bool {
        let started = self.clock.mono();
        let mut pause = PAUSE;
        let mut late_from = work.since + self.wait_max;
        let mut is_late = false;
        loop {
            let error = match self.attempt(work).await {
                Ok(()) => break,
                Err(error) => error,
            };
            // What fills the disk may be what was to be removed afterwards.
            if matches!(error, StoreError::Full { .. }) {
                self.remove().await;
            }
            self.wellness.refused(self.calls.number, error);
            let now = self.clock.mono();
            if now >= late_from {
                is_late = true;
                late_from = now + self.wait_max;
                self.note(work, None);
            }
            let is_over = now.since(started) >= self.life;
            if queue.is_closed() || is_over && !queue.is_empty() {
                return false;
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.wellness.took(self.calls.number);
        if !is_late {
            self.note(work, Some(self.clock.mono().since(work.since)));
        }
        if let Some(confirm) = &work.confirm {
            confirm.try_send(()).ok();
        }
        true
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
            self.calls.create(work.files.to_vec()).await?;
        }
        kit::dying::pass("created", || work.shows_gift());
        for (file, bytes, stamp) in work.heads.clone() {
            self.calls.replace(file, bytes, stamp).await?;
            kit::dying::pass("head", || work.shows_gift());
        }
        Ok(())
    }

    /// Removes what is left, each file once.
    async fn remove(&self) {
        let mut failed = Vec::new();
        loop {
            let files = self.leftovers.take();
            if files.is_empty() {
                break;
            }
            match self.calls.remove(files.clone()).await {
                Ok(left) => failed.extend(left),
                Err(_) => {
                    failed.extend(files);
                    break;
                }
            }
        }
        self.leftovers.add(failed);
    }
}
