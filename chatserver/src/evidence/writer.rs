//! Who writes a ledger's files, and removes them when their time is over. Everything here blocks.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;

use chatserver_core::ledger::{MEMBER_RECORDS_MAX, Record, pack};
use proto::id::AppId;
use proto::time::Wall;

use super::config::EvidenceConfig;
use super::files::{File, Folder};
use super::number;

/// The one hand that writes.
#[derive(Debug)]
pub(super) struct Writer {
    folder: Arc<Folder>,
    config: EvidenceConfig,
    open: BTreeMap<AppId, Open>,
}

#[derive(Debug)]
struct Open {
    name: File,
    file: fs::File,
    is_synced: bool,
}

/// Files that were removed, by why.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Removed {
    /// Their time was over.
    pub(super) over: u64,
    /// The disk's bound was reached.
    pub(super) full: u64,
    /// Bytes of what is left.
    pub(super) bytes: u64,
}

impl Writer {
    pub(super) fn new(folder: Arc<Folder>, config: EvidenceConfig) -> Self {
        Self { folder, config, open: BTreeMap::new() }
    }

    /// Appends records, to each app's file.
    ///
    /// # Errors
    /// As the system says; what was written before stays.
    pub(super) fn write(&mut self, records: Vec<(AppId, Record)>, now: Wall) -> io::Result<()> {
        let mut apps: BTreeMap<AppId, Vec<Record>> = BTreeMap::new();
        for (app, record) in records {
            apps.entry(app).or_default().push(record);
        }
        for (app, records) in apps {
            for some in records.chunks(MEMBER_RECORDS_MAX) {
                self.append(app, &pack(some), now)?;
            }
        }
        Ok(())
    }

    fn append(&mut self, app: AppId, member: &[u8], now: Wall) -> io::Result<()> {
        let open = match self.open.remove(&app) {
            Some(open) if open.name.bytes < self.config.file_bytes_max => Some(open),
            Some(open) => {
                open.file.sync_all()?;
                None
            }
            None => None,
        };
        let mut open = match open {
            Some(open) => open,
            None => {
                let (name, file) = self.folder.create(app, now)?;
                Open { name, file, is_synced: true }
            }
        };
        // A file that took a part of it is left as it is; its readers pass over the torn end.
        open.file.write_all(member)?;
        open.name.bytes += number(member.len());
        open.is_synced = false;
        self.open.insert(app, open);
        Ok(())
    }

    /// Puts on the disk what was written since the last time, and closes files that are old.
    pub(super) fn sync(&mut self, now: Wall) -> io::Result<()> {
        for open in self.open.values_mut().filter(|it| !it.is_synced) {
            open.file.sync_data()?;
            open.is_synced = true;
        }
        // Also one that was opened by a clock that went back.
        self.open.retain(|_, it| it.name.opened_at <= now && now < it.name.ends_by());
        Ok(())
    }

    /// Closes all files: what was written so far can be read, and will not change.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        for (_, open) in std::mem::take(&mut self.open) {
            open.file.sync_all()?;
        }
        Ok(())
    }

    /// Removes files whose time is over, and the oldest ones beyond the disk's bound.
    pub(super) fn purge(&self, now: Wall) -> io::Result<Removed> {
        let mut removed = Removed::default();
        let mut left = Vec::new();
        for file in self.folder.list()? {
            let is_over = file.ends_by() + self.config.retention(file.app) <= now;
            if is_over && !self.is_open(&file) {
                self.folder.remove(&file)?;
                removed.over += 1;
            } else {
                removed.bytes += file.bytes;
                left.push(file);
            }
        }
        for file in left {
            if removed.bytes <= self.config.bytes_max {
                break;
            }
            if !self.is_open(&file) {
                self.folder.remove(&file)?;
                removed.full += 1;
                removed.bytes -= file.bytes;
            }
        }
        Ok(removed)
    }

    fn is_open(&self, file: &File) -> bool {
        self.open.get(&file.app).is_some_and(|it| it.name.path == file.path)
    }
}
