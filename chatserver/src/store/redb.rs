//! The room store in one file, on redb: for one process.
//!
//! One thread writes. It takes all that waits, applies it in one transaction and answers after the
//! fsync, so a thousand gifts a second cost a few hundred syncs.

mod backup;
mod copies;
mod file;
mod schema;

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kit::clock::Clock;
use kit::health::Part;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use tokio::sync::{mpsc, oneshot};

pub use self::backup::backup;
use self::copies::Copies;
pub use self::copies::CopiesConfig;
use self::file::{Source, StoreFile};
use super::{
    BATCH_MAX, Change, Expect, Key, RoomStore, StoreError, Table, Value, Write, Written,
    check_writes,
};

/// How long the disk may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// Batches that wait for the writer; more wait for their place.
const JOBS_MAX: usize = 1024;
/// Batches of one transaction.
const JOBS_PER_COMMIT_MAX: usize = 256;

/// The room store in one file.
#[derive(Debug)]
pub struct RedbStore {
    file: Arc<StoreFile>,
    /// Dropped first: its file is closed when the store is.
    copies: Option<Copies>,
    /// `None` only while dropping.
    jobs: Option<mpsc::Sender<Job>>,
    /// `None` only while dropping.
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    writes: Vec<Write>,
    answer: oneshot::Sender<Result<Written, StoreError>>,
}

impl RedbStore {
    /// Opens the file at `path`, or creates it, and brings it to this program's schema. After a
    /// crash it is as of the last commit.
    ///
    /// # Errors
    /// When it cannot be created, is damaged or no redb file, was written by a newer version of this
    /// program, or another process has it open.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let file = StoreFile::open(Source::Path(path.to_owned()))
            .with_context(|| format!("cannot open the room store {}", path.display()))?;
        Self::over(file)
    }

    fn over(file: StoreFile) -> anyhow::Result<Self> {
        let file = Arc::new(file);
        let (jobs, queue) = mpsc::channel(JOBS_MAX);
        let writer = std::thread::Builder::new()
            .name("room-store".to_owned())
            .spawn({
                let file = Arc::clone(&file);
                move || write_all(&file, queue)
            })
            .context("cannot start the room store's writer")?;
        Ok(Self { file, copies: None, jobs: Some(jobs), writer: Some(writer) })
    }

    /// The same, copied while it is used if `config` names a folder; `part` says whether it is.
    ///
    /// # Errors
    /// When no thread can be started for it.
    pub fn copied(
        mut self,
        config: &CopiesConfig,
        clock: Clock,
        part: Part,
    ) -> anyhow::Result<Self> {
        part.ok();
        if !config.folder.as_os_str().is_empty() {
            let file = Arc::clone(&self.file);
            self.copies = Some(Copies::start(file, config.clone(), clock, part)?);
        }
        Ok(self)
    }
}

impl Drop for RedbStore {
    /// Waits for the writes under way, so that the file can be opened again at once.
    fn drop(&mut self) {
        drop(self.copies.take());
        drop(self.jobs.take());
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has answered nobody, which its callers have noticed.
            writer.join().ok();
        }
    }
}

impl RoomStore for RedbStore {
    fn get(&self, keys: Vec<Key>) -> BoxFuture<'_, Result<Vec<Option<Value>>, StoreError>> {
        if keys.len() > BATCH_MAX {
            return std::future::ready(Err(StoreError::TooLarge)).boxed();
        }
        self.read(move |database| {
            let transaction = database.begin_read()?;
            let mut values = Vec::with_capacity(keys.len());
            for Key { table, name } in keys {
                let table = transaction.open_table(definition(table))?;
                values.push(table.get(name.as_str())?.and_then(|it| unpack(it.value())));
            }
            Ok(values)
        })
    }

    fn list(
        &self,
        table: Table,
        prefix: String,
        after: Option<String>,
        rows_max: usize,
    ) -> BoxFuture<'_, Result<Vec<(String, Value)>, StoreError>> {
        self.read(move |database| {
            let table = database.begin_read()?.open_table(definition(table))?;
            let from = match &after {
                Some(after) if *after >= prefix => Bound::Excluded(after.as_str()),
                Some(_) | None => Bound::Included(prefix.as_str()),
            };
            let mut rows = Vec::new();
            for row in table.range::<&str>((from, Bound::Unbounded))?.take(rows_max) {
                let (name, value) = row?;
                if !name.value().starts_with(&prefix) {
                    break;
                }
                if let Some(value) = unpack(value.value()) {
                    rows.push((name.value().to_owned(), value));
                }
            }
            Ok(rows)
        })
    }

    fn write(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<Written, StoreError>> {
        async move {
            check_writes(&writes)?;
            let gone = || StoreError::Away { why: "its writer has ended".to_owned() };
            let (answer, answered) = oneshot::channel();
            let jobs = self.jobs.as_ref().ok_or_else(gone)?;
            let written = async {
                jobs.send(Job { writes, answer }).await.map_err(|_| gone())?;
                answered.await.map_err(|_| gone())?
            };
            within_deadline(written).await
        }
        .boxed()
    }
}

impl RedbStore {
    /// Runs `work` where it may wait for the disk.
    fn read<T, F>(&self, work: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: FnOnce(&Database) -> Result<T, redb::Error> + Send + 'static,
    {
        let file = Arc::clone(&self.file);
        async move {
            let read = tokio::task::spawn_blocking(move || file.with(work));
            let read =
                async { read.await.map_err(|error| away(&error))?.map_err(|error| away(&error)) };
            within_deadline(read).await
        }
        .boxed()
    }
}

async fn within_deadline<T>(
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(DEADLINE, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::Away { why: "the disk does not answer".to_owned() }),
    }
}

fn write_all(file: &StoreFile, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    while queue.blocking_recv_many(&mut jobs, JOBS_PER_COMMIT_MAX) > 0 {
        match file.with(|database| commit(database, &jobs)) {
            Ok(written) => {
                for (job, written) in jobs.drain(..).zip(written) {
                    // A caller that no longer waits has lost nothing.
                    job.answer.send(Ok(written)).ok();
                }
            }
            Err(error) => {
                tracing::error!(%error, "the room store cannot be written");
                for job in jobs.drain(..) {
                    job.answer.send(Err(away(&error))).ok();
                }
            }
        }
    }
}

/// Applies the jobs in order, each whole or not at all; durable when it returns.
fn commit(database: &Database, jobs: &[Job]) -> Result<Vec<Written>, redb::Error> {
    let transaction = database.begin_write()?;
    let mut written = Vec::with_capacity(jobs.len());
    for job in jobs {
        written.push(apply(&transaction, &job.writes)?);
    }
    transaction.commit()?;
    Ok(written)
}

fn apply(transaction: &WriteTransaction, writes: &[Write]) -> Result<Written, redb::Error> {
    let mut versions = Vec::with_capacity(writes.len());
    for (index, write) in writes.iter().enumerate() {
        let table = transaction.open_table(definition(write.key.table))?;
        let version = table.get(write.key.name.as_str())?.and_then(|it| unpack(it.value()));
        let version = version.map_or(0, |it| it.version);
        let holds = match write.expect {
            Expect::Any => true,
            Expect::Absent => version == 0,
            Expect::Version(expected) => version == expected,
        };
        if !holds {
            return Ok(Written::Conflict { index });
        }
        versions.push(version);
    }
    for (write, version) in writes.iter().zip(versions) {
        let mut table = transaction.open_table(definition(write.key.table))?;
        match &write.change {
            Change::Put(bytes) => {
                table.insert(write.key.name.as_str(), &*pack(version + 1, bytes))?;
            }
            Change::Remove => {
                table.remove(write.key.name.as_str())?;
            }
            Change::Keep => {}
        }
    }
    Ok(Written::Done)
}

const fn definition(table: Table) -> TableDefinition<'static, &'static str, &'static [u8]> {
    TableDefinition::new(table.name())
}

/// `version u64, big-endian | bytes`.
fn pack(version: u64, bytes: &[u8]) -> Vec<u8> {
    [&version.to_be_bytes(), bytes].concat()
}

fn unpack(packed: &[u8]) -> Option<Value> {
    let (version, bytes) = packed.split_first_chunk()?;
    Some(Value { version: u64::from_be_bytes(*version), bytes: Bytes::copy_from_slice(bytes) })
}

fn away(error: &dyn std::error::Error) -> StoreError {
    StoreError::Away { why: error.to_string() }
}

#[cfg(test)]
#[path = "redb/tests.rs"]
mod tests;
