//! Which minute files of a room lie in the stores.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proto::head::Recording;
use proto::id::RoomId;
use proto::time::Wall;

use super::replace;
use crate::store::{Ext, File, SegmentStore};

/// Recordings of one room that have minute files.
const PUBLISHED_MAX: usize = 1_000;
/// Files removed with one call to a store.
const REMOVED_MAX: usize = 512;
/// Longest time for such a call.
const CALL_MAX: Duration = Duration::from_secs(10);

/// What is published of a room, oldest first.
#[derive(Debug)]
pub(super) struct Published {
    path: PathBuf,
    recordings: Vec<Recording>,
}

impl Published {
    /// What is published of the room with this folder.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let path = folder.join("published.json");
        let recordings = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, recordings })
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Recording] {
        &self.recordings
    }

    /// Whether no more may be added.
    pub(super) const fn is_full(&self) -> bool {
        self.recordings.len() >= PUBLISHED_MAX
    }

    /// One more.
    pub(super) fn add(&mut self, recording: Recording) -> io::Result<()> {
        self.recordings.push(recording);
        self.write()
    }

    /// Those whose time is over.
    pub(super) fn over(&self, now: Wall, life: Duration) -> Vec<Recording> {
        let is_over = |it: &&Recording| now.since(Wall(it.version)) >= life;
        self.recordings.iter().filter(is_over).cloned().collect()
    }

    /// They lie in no store any more.
    pub(super) fn remove(&mut self, gone: &[Recording]) -> io::Result<()> {
        self.recordings.retain(|it| !gone.contains(it));
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        replace(&self.path, &serde_json::to_vec(&self.recordings)?)
    }
}

/// What is being published of a room. It is noted before the first minute, so that what a process
/// that is killed leaves in the stores is found again.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
}

impl Draft {
    /// The draft of the room with this folder.
    pub(super) fn of(folder: &Path) -> Self {
        Self { path: folder.join("publishing.json") }
    }

    pub(super) fn read(&self) -> io::Result<Option<Recording>> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&self, recording: &Recording) -> io::Result<()> {
        replace(&self.path, &serde_json::to_vec(recording)?)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Removes files from all stores.
pub(super) async fn remove(stores: &[Arc<dyn SegmentStore>], files: &[File]) -> io::Result<()> {
    for files in files.chunks(REMOVED_MAX) {
        for store in stores {
            let removed = tokio::time::timeout(CALL_MAX, store.remove(files.to_vec())).await;
            removed?.into_iter().collect::<Result<(), _>>().map_err(io::Error::other)?;
        }
    }
    Ok(())
}

/// The files of a recording, its index last.
pub(super) fn files_of(room: &RoomId, recording: &Recording) -> Vec<File> {
    let version = recording.version;
    let mut files = Vec::new();
    for &[first, count] in &recording.minutes {
        for minute in first..first.saturating_add(count) {
            files.extend(minute_files(room, version, minute));
        }
    }
    files.push(File::Recording { room: room.clone(), version: Some(version) });
    files
}

/// The files of a minute, the one that is looked at last.
pub(super) fn minute_files(room: &RoomId, version: u64, minute: u64) -> [File; 2] {
    [Ext::Json, Ext::Bin].map(|ext| File::Minute { room: room.clone(), version, minute, ext })
}
