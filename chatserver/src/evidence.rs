//! The evidence ledger: every comment with its sender and its verdict, on disk.
//!
//! The desk says what happened ([`Witness`]) and never waits; one task writes ([`Scribe`]). What
//! finds no place in the queue, or no disk, is lost and counted. After a crash the records of the
//! last second may be missing. A ledger is one chatserver's own: a room's comments are spread over
//! the ledgers of all that judged them. What links keep back of a room is in none.

mod config;
mod erase;
mod export;
mod files;
#[cfg(test)]
mod tests;
mod turns;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use chatserver_core::ledger::{Comment, Record, What};
use chatserver_core::shard::Input;
use kit::clock::Clock;
use kit::health::{Health, Part};
use kit::meter::{Meter, list};
use prometheus::{IntCounter, IntGauge};
use proto::envelope::{Act, Reply, RoomEntry, RoomEvent};
use proto::id::{AppId, NodeId};
use proto::item::Body;
use proto::time::Wall;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::files::{File, Folder};
use self::turns::{Begun, Turns};
use self::writer::{Removed, Writer};
use crate::desk::{Told, gauge};

pub use self::config::{EvidenceConfig, Retention};
pub(crate) use self::erase::{Eraser, Untaken};
pub(crate) use self::export::Export;

/// Turns that wait for the disk.
const TURNS_MAX: usize = 1024;
/// How often what was written is put on the disk.
const SYNC: Duration = Duration::from_secs(1);
/// How often files are looked at whose time may be over.
const PURGE: Duration = Duration::from_secs(20);

/// Who says what happened. Without a ledger it says nothing.
#[derive(Debug)]
pub(crate) struct Witness {
    jobs: Option<mpsc::Sender<Job>>,
    clock: Clock,
    turns: Arc<Turns>,
    /// Records in the queue.
    waiting: Arc<AtomicUsize>,
    waiting_max: usize,
    counts: Counts,
}

/// Who writes it down.
#[derive(Debug)]
pub(crate) struct Scribe {
    jobs: mpsc::Receiver<Job>,
    waiting: Arc<AtomicUsize>,
    writer: Writer,
    clock: Clock,
    counts: Counts,
    health: Part,
}

#[derive(Debug)]
enum Job {
    Write(Vec<(AppId, Record)>),
    /// Close the files of these apps, and list all; everything before is in them then.
    List {
        closed: BTreeSet<AppId>,
        files: oneshot::Sender<Vec<File>>,
    },
}

#[derive(Clone, Debug)]
struct Counts {
    written: IntCounter,
    lost_queue: IntCounter,
    lost_disk: IntCounter,
    waiting: IntGauge,
    bytes: IntGauge,
    removed_over: IntCounter,
    removed_full: IntCounter,
    damaged: IntCounter,
    erased: IntCounter,
}

/// What was sent in one turn. A number that came twice may have two texts, and the first one counts.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    said: Vec<(AppId, Record)>,
    /// Where the first of each stands, while its outcome is not known.
    open: BTreeMap<Comment, usize>,
    /// Held until it is put down.
    begun: Option<Begun>,
}

/// All parts of a ledger.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) witness: Arc<Witness>,
    /// Nobody, without a ledger.
    pub(crate) scribe: Option<Scribe>,
    pub(crate) eraser: Option<Arc<Eraser>>,
    pub(crate) export: Option<Arc<Export>>,
}

/// Opens the ledger of this node, if there is to be one.
///
/// # Errors
/// When its folder cannot be used.
pub(crate) fn open(
    config: &EvidenceConfig,
    node: NodeId,
    clock: &Clock,
    meter: &Meter,
    health: &Health,
) -> anyhow::Result<Parts> {
    let counts = Counts::new(meter);
    let waiting = Arc::<AtomicUsize>::default();
    let mut witness = Witness {
        jobs: None,
        clock: clock.clone(),
        turns: Arc::default(),
        waiting: Arc::clone(&waiting),
        waiting_max: usize::try_from(config.waiting_max).unwrap_or(usize::MAX),
        counts: counts.clone(),
    };
    if !config.enabled {
        return Ok(Parts { witness: Arc::new(witness), scribe: None, eraser: None, export: None });
    }
    let root = config.folder.join(node.to_string());
    let unusable = || format!("evidence.folder, {}, cannot be used", root.display());
    let folder = Arc::new(Folder::open(&root).with_context(unusable)?);
    let (sender, jobs) = mpsc::channel(TURNS_MAX);
    witness.jobs = Some(sender);
    let witness = Arc::new(witness);
    let eraser = Eraser::open(Arc::clone(&folder), Arc::clone(&witness), counts.clone());
    let eraser = Arc::new(eraser.with_context(unusable)?);
    let export = Export::new(Arc::clone(&witness), Arc::clone(&eraser));
    let scribe = Scribe {
        jobs,
        waiting,
        writer: Writer::new(folder, config.clone()),
        clock: clock.clone(),
        counts,
        health: health.part("chatserver_evidence"),
    };
    let export = Some(Arc::new(export));
    Ok(Parts { witness, scribe: Some(scribe), eraser: Some(eraser), export })
}

impl Witness {
    /// Hears what is about to be judged.
    pub(crate) fn hear(&self, inputs: &[Input]) -> Turn {
        if self.jobs.is_none() {
            return Turn::default();
        }
        let begun = self.turns.begin(&self.clock);
        let at = begun.at;
        let mut turn = Turn { begun: Some(begun), ..Turn::default() };
        for (comment, record) in inputs.iter().filter_map(|it| said(it, at)) {
            turn.open.entry(comment).or_insert(turn.said.len());
            turn.said.push(record);
        }
        turn
    }

    /// Puts down what a turn said, with what its senders were told.
    pub(crate) fn tell(&self, turn: Turn, told: &[Told]) {
        if self.jobs.is_none() {
            return;
        }
        let Turn { mut said, mut open, begun } = turn;
        let at = self.clock.wall();
        let mut later = Vec::new();
        for Told { node, reply, whom } in told {
            let Reply::Ack { session, cid, outcome } = *reply else { continue };
            let comment = Comment { node: *node, session, cid };
            if let Some(place) = open.remove(&comment)
                && let What::Said { outcome: first, .. } = &mut said[place].1.what
            {
                *first = Some(outcome);
                continue;
            }
            let (room, account) = (Some(whom.room.clone()), Some(whom.viewer.clone()));
            let what = What::Told { comment, outcome };
            later.push((whom.app, Record { at, room, account, what }));
        }
        self.note(said.into_iter().chain(later).collect());
        drop(begun);
    }

    /// Puts down which items were taken back.
    pub(crate) fn see(&self, entries: &[RoomEntry]) {
        if self.jobs.is_none() {
            return;
        }
        let at = self.clock.wall();
        let mut recalled = Vec::new();
        for RoomEntry { app, room, event } in entries {
            let RoomEvent::Flush { items, .. } = event else { continue };
            for placed in items {
                if let Body::Tombstone { of } = placed.item.body {
                    let what = What::Recalled { id: of };
                    let room = Some(room.clone());
                    recalled.push((*app, Record { at, room, account: None, what }));
                }
            }
        }
        self.note(recalled);
    }

    /// Puts down records without waiting.
    pub(crate) fn note(&self, records: Vec<(AppId, Record)>) {
        let Some(jobs) = &self.jobs else { return };
        let count = records.len();
        if count == 0 {
            return;
        }
        let waiting = self.waiting.fetch_add(count, Ordering::Relaxed);
        if waiting + count > self.waiting_max || jobs.try_send(Job::Write(records)).is_err() {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
            self.counts.lost_queue.inc_by(number(count));
        }
    }

    /// Waits until everything that was put down so far is in files, and gives them all. Those of
    /// the apps `closed` are closed: nothing is appended to them any more. `None` after the ledger's
    /// end, or when the disk fails.
    async fn list(&self, closed: BTreeSet<AppId>) -> Option<Vec<File>> {
        let (files, listed) = oneshot::channel();
        self.jobs.as_ref()?.send(Job::List { closed, files }).await.ok()?;
        listed.await.ok()
    }
}

fn said(input: &Input, at: Wall) -> Option<(Comment, (AppId, Record))> {
    let Input::Uplink { node, entry } = input else { return None };
    let Act::Comment { cid, text, .. } = &entry.act else { return None };
    let comment = Comment { node: *node, session: entry.session, cid: *cid };
    let what = What::Said {
        comment,
        role: entry.role,
        taken_at: entry.at,
        address: entry.origin.as_ref().map(|it| it.address),
        device: entry.origin.as_ref().and_then(|it| it.device.clone()),
        text: text.clone(),
        outcome: None,
    };
    let (room, account) = (Some(entry.room.clone()), Some(entry.viewer.clone()));
    Some((comment, (entry.app, Record { at, room, account, what })))
}

impl Scribe {
    /// Writes until `settled`, when nothing more happens, and everything is written.
    pub(crate) async fn run(mut self, settled: CancellationToken) -> anyhow::Result<()> {
        let mut sync_at = self.clock.mono();
        let mut purge_at = sync_at;
        let mut jobs = Vec::new();
        loop {
            let is_over = tokio::select! {
                biased;
                // None: nobody is left who could say anything.
                count = self.jobs.recv_many(&mut jobs, TURNS_MAX) => count == 0,
                () = self.clock.sleep_until(sync_at) => false,
                () = settled.cancelled() => true,
            };
            let now = self.clock.mono();
            let due = Due { sync: is_over || now >= sync_at, purge: now >= purge_at };
            if due.sync {
                sync_at = now + SYNC;
            }
            if due.purge {
                purge_at = now + PURGE;
            }
            self = self.work(std::mem::take(&mut jobs), due).await?;
            if is_over && self.jobs.is_empty() {
                return Ok(());
            }
        }
    }

    /// Does what is due where blocking is allowed.
    async fn work(self, jobs: Vec<Job>, due: Due) -> anyhow::Result<Self> {
        let worked = move || {
            let mut scribe = self;
            scribe.do_jobs(jobs, due);
            scribe
        };
        tokio::task::spawn_blocking(worked).await.context("the ledger's writer is gone")
    }

    fn do_jobs(&mut self, jobs: Vec<Job>, due: Due) {
        let now = self.clock.wall();
        let mut failed = None;
        for job in jobs {
            match job {
                Job::Write(records) => {
                    let count = records.len();
                    self.waiting.fetch_sub(count, Ordering::Relaxed);
                    match self.writer.write(records, now) {
                        Ok(()) => self.counts.written.inc_by(number(count)),
                        Err(error) => {
                            self.counts.lost_disk.inc_by(number(count));
                            failed = Some(error);
                        }
                    }
                }
                Job::List { closed, files } => match self.writer.list(&closed) {
                    // Whoever waited may be gone.
                    Ok(listed) => drop(files.send(listed)),
                    Err(error) => failed = Some(error),
                },
            }
        }
        if due.sync {
            failed = self.writer.sync(now).err().or(failed);
            self.counts.waiting.set(gauge(self.waiting.load(Ordering::Relaxed)));
        }
        if due.purge {
            failed = self.purge(now).err().or(failed);
        }
        match failed {
            Some(error) => self.health.warn(format!("evidence is not written: {error}")),
            None if due.sync => self.health.ok(),
            None => {}
        }
    }

    fn purge(&self, now: Wall) -> io::Result<()> {
        let Removed { over, full, bytes } = self.writer.purge(now)?;
        self.counts.removed_over.inc_by(over);
        self.counts.removed_full.inc_by(full);
        self.counts.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        if full > 0 {
            tracing::error!(files = full, "evidence was removed before its time");
        }
        Ok(())
    }
}

/// What is to be done besides writing.
#[derive(Clone, Copy, Debug)]
struct Due {
    sync: bool,
    purge: bool,
}

impl Counts {
    fn new(meter: &Meter) -> Self {
        let lost = |why| meter.counter(list::CHATSERVER_EVIDENCE_LOST_TOTAL, &[why]);
        let removed = |why| meter.counter(list::CHATSERVER_EVIDENCE_FILES_REMOVED_TOTAL, &[why]);
        Self {
            written: meter.counter(list::CHATSERVER_EVIDENCE_RECORDS_TOTAL, &[]),
            lost_queue: lost("queue"),
            lost_disk: lost("disk"),
            waiting: meter.gauge(list::CHATSERVER_EVIDENCE_WAITING, &[]),
            bytes: meter.gauge(list::CHATSERVER_EVIDENCE_BYTES, &[]),
            removed_over: removed("over"),
            removed_full: removed("full"),
            damaged: meter.counter(list::CHATSERVER_EVIDENCE_DAMAGED_BYTES_TOTAL, &[]),
            erased: meter.counter(list::CHATSERVER_EVIDENCE_ERASED_TOTAL, &[]),
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
