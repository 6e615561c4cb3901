//! Copies of the room store while it is used: each is the store as it was at one moment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, ensure};
use kit::clock::Clock;
use kit::health::Part;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

use super::backup::write_new;
use super::file::StoreFile;

/// A copy that is not complete.
const UNFINISHED: &str = "rooms.part";

/// `[chatserver.copies]`: copies of the room store while the system runs. To restore one, stop the
/// system and put it in the place of `rooms.redb` in the data folder.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct CopiesConfig {
    /// The folder that they are put into, best on another disk; empty: none are made.
    pub folder: PathBuf,
    /// Time between two, in minutes, also over restarts. Each reads the whole store and takes as much
    /// disk.
    pub every_m: u32,
    /// So many are kept, and then the oldest goes.
    pub copies_max: u32,
}

impl Default for CopiesConfig {
    fn default() -> Self {
        Self { folder: PathBuf::new(), every_m: 60, copies_max: 24 }
    }
}

impl CopiesConfig {
    /// Checks what the types do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.every_m > 0 && self.copies_max > 0,
            "copies.every_m and copies.copies_max must be > 0"
        );
        Ok(())
    }
}

/// Who copies, until it is dropped; a copy that is being made is finished.
#[derive(Debug)]
pub(super) struct Copies {
    /// `None` only while dropping.
    end: Option<Sender<()>>,
    /// `None` only while dropping.
    thread: Option<JoinHandle<()>>,
}

impl Copies {
    pub(super) fn start(
        file: Arc<StoreFile>,
        config: CopiesConfig,
        clock: Clock,
        part: Part,
    ) -> anyhow::Result<Self> {
        let (end, ended) = channel();
        let thread = std::thread::Builder::new()
            .name("room-store-copies".to_owned())
            .spawn(move || keep(&file, &config, &clock, &part, &ended))
            .context("cannot start the room store's copies")?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked makes no copies, which health says.
            thread.join().ok();
        }
    }
}

fn keep(file: &StoreFile, config: &CopiesConfig, clock: &Clock, part: &Part, ended: &Receiver<()>) {
    let every = Duration::from_secs(60) * config.every_m;
    let mut wait = first_wait(&config.folder, every, clock.wall());
    loop {
        match ended.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
        wait = every;
        match make(file, config, clock.wall()) {
            Ok(rows) => {
                part.ok();
                tracing::info!(rows, "the room store was copied");
            }
            Err(error) => part.warn(format!("the room store is not copied: {error:#}")),
        }
    }
}

/// Until the newest copy is so old: a process that starts again and again makes no more copies than
/// one that runs, and the old ones stay.
fn first_wait(folder: &Path, every: Duration, now: Wall) -> Duration {
    // A folder that cannot be read is said by the first copy.
    let newest = copies(folder).ok().and_then(|it| it.last().and_then(|it| made_at(it)));
    newest.map_or(Duration::ZERO, |it| (it + every).since(now).min(every))
}

/// Makes one copy, and removes those that are too many. Gives the rows copied.
fn make(file: &StoreFile, config: &CopiesConfig, now: Wall) -> anyhow::Result<u64> {
    let folder = &config.folder;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let unfinished = folder.join(UNFINISHED);
    remove_if_there(&unfinished)?;
    // Writes go on meanwhile; what is copied is the store as it was when the copy began.
    let copied = file.with(|database| Ok(write_new(database, &unfinished)))?;
    if copied.is_err() {
        // It may be why the disk is full.
        remove_if_there(&unfinished)?;
    }
    let rows = copied?;
    // After those that were made while the clock was ahead, or it would be the one that goes.
    let newest = copies(folder)?.last().and_then(|it| made_at(it));
    let at = newest.map_or(now.0, |it| now.0.max(it.0.saturating_add(1)));
    std::fs::rename(&unfinished, folder.join(format!("rooms-{at:013}.redb")))?;
    std::fs::File::open(folder)?.sync_all()?;
    let mut copies = copies(folder)?;
    let kept = usize::try_from(config.copies_max).unwrap_or(usize::MAX);
    for old in copies.drain(..copies.len().saturating_sub(kept)) {
        std::fs::remove_file(old)?;
    }
    Ok(rows)
}

/// Complete copies, the oldest first.
fn copies(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut copies = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if made_at(&path).is_some() {
            copies.push(path);
        }
    }
    copies.sort();
    Ok(copies)
}

/// When a copy was made, as its name says.
fn made_at(path: &Path) -> Option<Wall> {
    let at = path.file_name()?.to_str()?.strip_prefix("rooms-")?.strip_suffix(".redb")?;
    at.parse().ok().map(Wall)
}

fn remove_if_there(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Expect, Key, RedbStore, RoomStore, Table};

    #[tokio::test]
    async fn copies_of_a_store_in_use_are_stores_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let config = CopiesConfig {
            folder: folder.path().join("copies"),
            copies_max: 2,
            ..CopiesConfig::default()
        };
        let key = || Key::new(Table::Rooms, "r");

        for at in 1..=3 {
            store.write(vec![key().put(Expect::Any, at.to_string())]).await.unwrap();
            assert!(make(&store.file, &config, Wall(at)).unwrap() > 0);
        }
        store.write(vec![key().put(Expect::Any, "later")]).await.unwrap();

        let copies = copies(&config.folder).unwrap();
        assert_eq!(copies.len(), 2);
        for (copy, expected) in copies.iter().zip(["2", "3"]) {
            let value = RedbStore::open(copy).unwrap().get(vec![key()]).await.unwrap().remove(0);
            assert_eq!(value.unwrap().bytes, expected);
        }
        assert!(!config.folder.join(UNFINISHED).exists());
    }

    #[tokio::test]
    async fn a_copy_made_after_the_clock_was_ahead_stays_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let config = CopiesConfig {
            folder: folder.path().join("copies"),
            copies_max: 2,
            ..CopiesConfig::default()
        };

        for at in [9000, 9500, 1000] {
            make(&store.file, &config, Wall(at)).unwrap();
        }

        let kept: Vec<_> =
            copies(&config.folder).unwrap().iter().filter_map(|it| made_at(it)).collect();
        assert_eq!(kept, [Wall(9500), Wall(9501)]);
    }

    #[test]
    fn the_first_copy_waits_until_the_newest_is_old_enough() {
        let folder = tempfile::tempdir().unwrap();
        let every = Duration::from_secs(60);
        let wait = |now| first_wait(folder.path(), every, Wall(now));
        assert_eq!(wait(100_000), Duration::ZERO);

        for at in [20_000, 100_000] {
            std::fs::write(folder.path().join(format!("rooms-{at:013}.redb")), "").unwrap();
        }

        assert_eq!(wait(110_000), Duration::from_secs(50));
        assert_eq!(wait(160_000), Duration::ZERO);
        assert_eq!(wait(10_000), every, "the clock was ahead");
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_made_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let taken = folder.path().join("rooms.redb");
        let config = CopiesConfig { folder: taken, ..CopiesConfig::default() };

        let error = make(&store.file, &config, Wall(1)).unwrap_err();

        assert!(format!("{error:#}").starts_with("cannot make the folder"), "{error:#}");
    }
}
