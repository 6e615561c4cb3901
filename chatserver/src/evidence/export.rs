//! Giving records out: lines of JSON, in the order in which they were written, and a last line that
//! says that these were all.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chatserver_core::ledger::{Erasure, Filter, Members, Record, What};
use proto::id::AppId;
use proto::time::Wall;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::files::{File, Folder};
use super::{Eraser, Witness, number};

/// Exports at a time: each holds a file in memory, and reads the disk that is written to.
const EXPORTS_MAX: usize = 1;
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
    folder: Arc<Folder>,
    witness: Arc<Witness>,
    eraser: Arc<Eraser>,
    turn: Arc<Semaphore>,
}

/// Why nothing is given out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Busy {
    #[error("another export is under way")]
    Turn,
    #[error("the ledger is about to end")]
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
    pub(super) fn new(folder: Arc<Folder>, witness: Arc<Witness>, eraser: Arc<Eraser>) -> Self {
        Self { folder, witness, eraser, turn: Arc::new(Semaphore::new(EXPORTS_MAX)) }
    }

    /// The records that `filter` takes, in parts. That they were given out is put down first, with
    /// what was asked for.
    pub(crate) async fn give(
        &self,
        app: AppId,
        mut filter: Filter,
    ) -> Result<mpsc::Receiver<Bytes>, Busy> {
        let turn = Arc::clone(&self.turn).try_acquire_owned().map_err(|_| Busy::Turn)?;
        let at = self.witness.clock.wall();
        // What is put down in this millisecond, that it was asked for with it, is in it.
        filter.until = filter.until.min(Wall(at.0.saturating_add(1)));
        let Filter { from, until, room, account } = filter.clone();
        let what = What::Exported { from, until };
        self.witness.note(vec![(app, Record { at, room, account, what })]);
        if !self.witness.seal().await {
            return Err(Busy::Ended);
        }
        let (parts, given) = mpsc::channel(PARTS_MAX);
        let giver = Giver {
            parts,
            filter,
            erasures: self.eraser.pending().into_iter().filter(|it| it.app == app).collect(),
            part: Vec::new(),
            end: End::default(),
            _turn: turn,
        };
        let folder = Arc::clone(&self.folder);
        // It ends with its last part, or when nobody takes its parts any more.
        drop(tokio::task::spawn_blocking(move || giver.give(&folder, app)));
        Ok(given)
    }
}

struct Giver {
    parts: mpsc::Sender<Bytes>,
    filter: Filter,
    erasures: Vec<Erasure>,
    part: Vec<u8>,
    end: End,
    _turn: OwnedSemaphorePermit,
}

impl Giver {
    fn give(mut self, folder: &Folder, app: AppId) {
        let files = match folder.list() {
            Ok(files) => files,
            Err(error) => {
                tracing::warn!(%error, "evidence cannot be listed");
                return;
            }
        };
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
        self.parts.blocking_send(part).map_err(|_| Gone)
    }
}

/// Whoever asked is not there any more.
#[derive(Debug)]
struct Gone;
