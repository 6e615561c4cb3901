//! Who writes a ledger's files, and removes them when their time is over. Everything here blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::sync::Arc;

use chatserver_core::ledger::{MEMBER_RECORDS_MAX, Record, pack};
use proto::id::AppId;
use proto::time::Wall;

use super::config::EvidenceConfig;
use super::files::{File, Folder};
use super::number;

/// What even an empty file takes of the disk.
const FILE_BYTES_MIN: u64 = 4096;

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
        if let Err(error) = open.file.write_all(member) {
            // A disk that is full would get a new file with each try. One that cannot be cut back is
            // left as it is; its readers pass over the torn end.
            if open.file.set_len(open.name.bytes).is_ok() {
                self.open.insert(app, open);
            }
            return Err(error);
        }
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

    /// All files with what was written so far, after those of `closed` were closed: they will not
    /// change any more.
    pub(super) fn list(&mut self, closed: &BTreeSet<AppId>) -> io::Result<Vec<File>> {
        for app in closed {
            if let Some(open) = self.open.remove(app) {
                open.file.sync_all()?;
            }
        }
        self.folder.list()
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
                removed.bytes += on_disk(&file);
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
                removed.bytes -= on_disk(&file);
            }
        }
        Ok(removed)
    }

    fn is_open(&self, file: &File) -> bool {
        self.open.get(&file.app).is_some_and(|it| it.name.path == file.path)
    }
}

/// Bytes that a file takes, at least.
fn on_disk(file: &File) -> u64 {
    file.bytes.max(FILE_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use tempfile::TempDir;

    use super::*;

    const APP: AppId = AppId(1);
    const NOW: Wall = Wall(1_800_000_000_000);

    fn record(account: &str) -> Vec<(AppId, Record)> {
        let account = proto::id::ViewerId::parse(account).ok();
        let what = chatserver_core::ledger::What::Erased { until: NOW };
        vec![(APP, Record { at: NOW, room: None, account, what })]
    }

    /// A file of so many bytes that takes no more.
    fn full(bytes: u64) -> fs::File {
        let file = memfd_create("full", MemfdFlags::ALLOW_SEALING).unwrap();
        let mut file = fs::File::from(file);
        file.set_len(bytes).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        file
    }

    #[test]
    fn a_disk_that_is_full_gets_no_new_file_with_each_try() {
        let root = TempDir::new().unwrap();
        let folder = Arc::new(Folder::open(root.path()).unwrap());
        let mut writer = Writer::new(Arc::clone(&folder), EvidenceConfig::default());
        writer.write(record("one"), NOW).unwrap();
        let open = writer.open.get_mut(&APP).unwrap();
        open.file = full(open.name.bytes);

        for account in ["two", "three"] {
            assert!(writer.write(record(account), NOW).is_err(), "{account}");
        }

        assert_eq!(folder.list().unwrap().len(), 1);
    }
}
