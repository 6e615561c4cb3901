//! Giving records out: lines of JSON, in the order in which they were written, and a last line that
//! says that these were all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chatserver_core::ledger::{Erasure, Filter, Members, Record, What};
use kit::clock::Clock;
use parking_lot::Mutex;
use proto::id::AppId;
use proto::time::Wall;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::files::File;
use super::{Eraser, Witness, number};

/// Exports at a time, one of an app: each holds a file in memory, and reads the disk that is
/// written to.
const EXPORTS_MAX: usize = 4;
/// How long an export waits for whoever takes it, besides [`PART_WAIT`].
const WAIT: Duration = Duration::from_mins(1);
/// How long for each part that was taken: whoever takes less than 64 KiB a second does not get it
/// to its end.
const PART_WAIT: Duration = Duration::from_secs(1);
/// How much earlier than its file's name a record may be: as long as a turn waited for the bus, and
/// then for the disk.
const DELAY_MAX: Duration = Duration::from_hours(1);
/// Bytes of one part.
const PART_BYTES: usize = 64 * 1024;
/// Parts that wait for whoever asked.
const PARTS_MAX: usize = 4;

/// Who gives out.
#[derive(Debug)]
pub(crate) struct Export {
    witness: Arc<Witness>,
    eraser: Arc<Eraser>,
    /// Apps that have one under way.
    apps: Arc<Mutex<BTreeSet<AppId>>>,
}

/// Why nothing is given out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Busy {
    #[error("an export of this app, or several of others, are under way")]
    Turn,
    #[error("the ledger is about to end, or its disk fails")]
    Ended,
}

/// The last line. Without it something went wrong, and there may be more.
#[derive(Debug, Default, Serialize)]
struct End {
    end: Totals,
}

#[derive(Debug, Default, Serialize)]
struct Totals {
    /// Lines before this one.
    records: u64,
    /// Bytes of the files in which no record could be read.
    damaged_bytes: u64,
    /// Files that could not be read, or were removed meanwhile.
    files_missing: u64,
}

impl Export {
    pub(super) fn new(witness: Arc<Witness>, eraser: Arc<Eraser>) -> Self {
        Self { witness, eraser, apps: Arc::default() }
    }

    /// The records that `filter` takes, in parts. That they were given out is put down first, with
    /// what was asked for.
    pub(crate) async fn give(
        &self,
        app: AppId,
        mut filter: Filter,
    ) -> Result<mpsc::Receiver<Bytes>, Busy> {
        let turn = Turn::take(&self.apps, app).ok_or(Busy::Turn)?;
        let at = self.witness.clock.wall();
        // What is put down in this millisecond, that it was asked for with it, is in it.
        filter.until = filter.until.min(Wall(at.0.saturating_add(1)));
        let Filter { from, until, room, account } = filter.clone();
        let what = What::Exported { from, until };
        self.witness.note(vec![(app, Record { at, room, account, what })]);
        let files = self.witness.list(BTreeSet::new()).await.ok_or(Busy::Ended)?;
        let (parts, given) = mpsc::channel(PARTS_MAX);
        let giver = Giver {
            parts,
            filter,
            erasures: self.eraser.pending().into_iter().filter(|it| it.app == app).collect(),
            part: Vec::new(),
            end: End::default(),
            clock: self.witness.clock.clone(),
            runtime: Handle::current(),
            patience: WAIT,
            _turn: turn,
        };
        // It ends with its last part, or when nobody takes its parts any more, or too slowly.
        drop(tokio::task::spawn_blocking(move || giver.give(files, app)));
        Ok(given)
    }
}

struct Giver {
    parts: mpsc::Sender<Bytes>,
    filter: Filter,
    erasures: Vec<Erasure>,
    part: Vec<u8>,
    end: End,
    clock: Clock,
    runtime: Handle,
    /// How long it still waits for whoever takes it.
    patience: Duration,
    _turn: Turn,
}

/// The one export that an app may have under way.
#[derive(Debug)]
pub(super) struct Turn {
    apps: Arc<Mutex<BTreeSet<AppId>>>,
    app: AppId,
}

impl Turn {
    /// None while the app, or too many others, have one.
    pub(super) fn take(apps: &Arc<Mutex<BTreeSet<AppId>>>, app: AppId) -> Option<Self> {
        let mut under_way = apps.lock();
        let is_taken = under_way.len() < EXPORTS_MAX && under_way.insert(app);
        is_taken.then(|| Self { apps: Arc::clone(apps), app })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.apps.lock().remove(&self.app);
    }
}

impl Giver {
    fn give(mut self, files: Vec<File>, app: AppId) {
        let Filter { from, until, .. } = self.filter;
        let is_within = |it: &File| {
            it.app == app && it.opened_at < until + DELAY_MAX && from <= it.ends_by() + DELAY_MAX
        };
        for file in files.into_iter().filter(is_within) {
            match file.read() {
                Ok(whole) if self.put_file(&whole).is_err() => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "evidence cannot be read");
                    self.end.end.files_missing += 1;
                }
            }
        }
        let end = serde_json::to_vec(&self.end).unwrap_or_default();
        self.part.extend(end);
        self.part.push(b'\n');
        self.send().ok();
    }

    fn put_file(&mut self, whole: &[u8]) -> Result<(), Gone> {
        for member in Members::new(whole) {
            match member {
                Ok(records) => records.iter().try_for_each(|it| self.put_record(it))?,
                Err(damage) => self.end.end.damaged_bytes += number(damage.bytes),
            }
        }
        Ok(())
    }

    fn put_record(&mut self, record: &Record) -> Result<(), Gone> {
        if !self.filter.takes(record) || self.erasures.iter().any(|it| it.takes(record)) {
            return Ok(());
        }
        self.end.end.records += 1;
        self.part.extend(serde_json::to_vec(record).unwrap_or_default());
        self.part.push(b'\n');
        if self.part.len() < PART_BYTES { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> Result<(), Gone> {
        let part = Bytes::from(std::mem::take(&mut self.part));
        let begun = self.clock.mono();
        let sent = async { tokio::time::timeout(self.patience, self.parts.send(part)).await };
        let sent = self.runtime.block_on(sent);
        let waited = self.clock.mono().since(begun);
        self.patience = self.patience.saturating_sub(waited) + PART_WAIT;
        match sent {
            Ok(sent) => sent.map_err(|_| Gone),
            Err(_) => {
                tracing::warn!("an export was taken too slowly, and cut short");
                Err(Gone)
            }
        }
    }
}

/// Whoever asked is not there any more, or takes too little.
#[derive(Debug)]
struct Gone;
