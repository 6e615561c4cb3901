//! The file under the store, opened again after it failed.
//!
//! redb gives up a file after the first failed write, as when the disk is full: from then on it
//! neither writes nor reads. So the file is closed then, and opened again by whoever comes next;
//! what was committed is there.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use parking_lot::{RwLock, RwLockReadGuard};
use redb::{Builder, Database, DatabaseError};

use super::schema;

/// Memory for pages of the file; redb's own default is 1 GiB.
const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Where the file is.
#[derive(Debug)]
pub(super) enum Source {
    Path(PathBuf),
    /// On a disk that can be full.
    #[cfg(test)]
    Disk(super::tests::Disk),
}

/// The file.
#[derive(Debug)]
pub(super) struct StoreFile {
    source: Source,
    /// `None` while it cannot be opened.
    database: RwLock<Option<Database>>,
    /// It failed, and is not opened again yet.
    has_failed: AtomicBool,
}

impl StoreFile {
    /// Opens it, or creates it, and brings it to this program's schema.
    pub(super) fn open(source: Source) -> anyhow::Result<Self> {
        let database = source.open().context(
            "another process has it, its disk is full, or it is damaged: then restore a backup, or \
             move it away to begin with nothing",
        )?;
        schema::settle(&database)?;
        let database = RwLock::new(Some(database));
        Ok(Self { source, database, has_failed: AtomicBool::new(false) })
    }

    /// Works with it. Several may at a time.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        let guard = self.opened()?;
        let Some(database) = &*guard else { return Err(redb::Error::DatabaseClosed) };
        let done = work(database);
        if let Err(redb::Error::Io(_) | redb::Error::PreviousIo | redb::Error::DatabaseClosed) =
            &done
        {
            self.has_failed.store(true, Ordering::Release);
        }
        done
    }

    fn opened(&self) -> Result<RwLockReadGuard<'_, Option<Database>>, redb::Error> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(self.database.read());
        }
        {
            // Whoever still works with it ends first.
            let mut database = self.database.write();
            if self.has_failed.load(Ordering::Acquire) {
                // Its lock on the file goes with it.
                drop(database.take());
                *database = Some(self.source.open()?);
                self.has_failed.store(false, Ordering::Release);
                tracing::warn!("the room store failed, and was opened again");
            }
        }
        Ok(self.database.read())
    }
}

impl Source {
    fn open(&self) -> Result<Database, DatabaseError> {
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES_MAX);
        // It reads the whole file, some 300 MB a second, and what is damaged is told.
        builder.set_check_integrity_on_open(true);
        match self {
            Self::Path(path) => builder.create(path),
            #[cfg(test)]
            Self::Disk(disk) => builder.create_with_backend(disk.backend()),
        }
    }
}
