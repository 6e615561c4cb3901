//! Writes to one store, in the order that each room's files need.
//!
//! A room always goes to the same writer of a store, so its segments and heads stay in order while
//! rooms do not wait for each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bus::topic;
use bytes::Bytes;
use kit::clock::Clock;
use kit::health::Part;
use kit::task::Tasks;
use proto::id::RoomId;
use tokio::sync::mpsc;

use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::store::{Created, File, SegmentStore, Stamp, StoreError};

/// Pause after a failure; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
/// See [`PAUSE`].
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Files that could not be removed and are tried again; beyond, the oldest are left lying.
const LEFTOVERS_MAX: usize = 1024;

/// Files to be written, then a head, then files to be removed.
#[derive(Clone, Debug)]
pub(super) struct Work {
    files: Arc<[(File, Bytes)]>,
    head: Option<(File, Bytes, Stamp)>,
    removes: Arc<[File]>,
    confirm: Option<mpsc::Sender<()>>,
}

impl Work {
    /// Work, and where its first success shows; that ends empty when no store is left to do it.
    pub(super) fn new(
        files: Vec<(File, Bytes)>,
        head: Option<(File, Bytes, Stamp)>,
        removes: Vec<File>,
        stores: usize,
    ) -> (Self, mpsc::Receiver<()>) {
        let (confirm, first) = mpsc::channel(stores.max(1));
        let confirm = Some(confirm);
        (Self { files: files.into(), head, removes: removes.into(), confirm }, first)
    }

    /// Only removes.
    pub(super) fn remove(files: Vec<File>) -> Self {
        Self { files: Arc::new([]), head: None, removes: files.into(), confirm: None }
    }
}

/// The queues of all writers, by store.
#[derive(Debug)]
pub(super) struct Writers {
    stores: Vec<Vec<mpsc::Sender<Work>>>,
    counts: Counts,
}

/// Which stores work: the part is well while one does.
#[derive(Debug)]
struct Wellness {
    part: Part,
    well: Vec<AtomicUsize>,
}

impl Writers {
    pub(super) fn start(
        config: &Config,
        clock: &Clock,
        counts: &Counts,
        health: Part,
        stores: Vec<Arc<dyn SegmentStore>>,
        tasks: &mut Tasks,
    ) -> Self {
        health.ok();
        let well = stores.iter().map(|_| AtomicUsize::new(0)).collect();
        let wellness = Arc::new(Wellness { part: health, well });
        let mut queues = Vec::new();
        for (number, store) in stores.into_iter().enumerate() {
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
                    leftovers: VecDeque::new(),
                };
                tasks.spawn("store", writer.run(queue));
            }
            queues.push(writers);
        }
        Self { stores: queues, counts: counts.clone() }
    }

    /// How many stores there are.
    pub(super) fn stores(&self) -> usize {
        self.stores.len()
    }

    /// Puts work into the queue of the room's writer of every store. A store whose queue is full
    /// goes without it.
    pub(super) fn send(&self, room: &RoomId, work: &Work) {
        let partition = topic::sealed().partition_of_room(room).0 as usize;
        for (number, writers) in self.stores.iter().enumerate() {
            let queue = &writers[partition % writers.len()];
            if queue.try_send(work.clone()).is_err() {
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
    leftovers: VecDeque<File>,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Work>) -> anyhow::Result<()> {
        while let Some(work) = queue.recv().await {
            self.write(&work, &queue).await;
            self.remove(&work.removes).await;
        }
        Ok(())
    }

    /// Tries until it is done, or the slot's life is over; when the process ends, only once.
    async fn write(&self, work: &Work, queue: &mpsc::Receiver<Work>) {
        let started = self.clock.mono();
        let mut pause = PAUSE;
        loop {
            let error = match self.attempt(work).await {
                Ok(()) => break,
                Err(error) => error,
            };
            self.wellness.note(self.number, false);
            tracing::warn!(store = self.number, %error, "a slot could not be stored");
            if queue.is_closed() || self.clock.mono().since(started) >= self.life {
                return;
            }
            self.clock.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.wellness.note(self.number, true);
        if let Some(confirm) = &work.confirm {
            confirm.try_send(()).ok();
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
        if let Some((file, bytes, stamp)) = work.head.clone() {
            let replaced = self.in_time("replace", self.store.replace(file, bytes, stamp)).await?;
            replaced.map_err(|error| self.failed("replace", error))?;
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

impl Wellness {
    /// Notes how the newest call of a store went.
    fn note(&self, number: usize, is_well: bool) {
        self.well[number].store(usize::from(!is_well), Ordering::Relaxed);
        if self.well.iter().any(|it| it.load(Ordering::Relaxed) == 0) {
            self.part.ok();
        } else {
            self.part.fail("no store takes segments");
        }
    }
}
