//! Which minute files of a room lie in the stores.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::head::Recording;
use proto::id::RoomId;
use proto::time::Wall;

use super::replace;
use crate::store::{Ext, File};

/// Recordings of one room that have minute files.
const PUBLISHED_MAX: usize = 1_000;

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

    /// One more.
    pub(super) fn add(&mut self, recording: Recording) -> io::Result<()> {
        if self.recordings.len() >= PUBLISHED_MAX {
            return Err(io::Error::other("too many recordings of the room are published"));
        }
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
