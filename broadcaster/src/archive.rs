//! What rooms showed, kept for days: recordings of sealed slots in a folder, and the minute files that
//! are made of them.
//!
//! `{room}/{recording}/{hour}.dma`: a recording is named by the millisecond at which its first slot
//! began, an hour by its number since 1970; a file holds the slots that began in its hour
//! ([`broadcaster_core::archive`]). A recording ends when its room closes, and has a file `ended` from
//! then on. `{room}/erased.json` names items that are to be nowhere any more, and
//! `{room}/published.json` the minute files that lie in the stores.

mod erased;
mod erasing;
mod publish;
mod recorder;
mod roll;
mod shelves;
mod tape;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::id::{ItemId, RoomId};
use proto::time::Wall;

use self::erased::Erased;
pub use self::publish::{PublishError, publish};
pub(crate) use self::recorder::Tools;
pub(crate) use self::roll::Roll;
pub use self::tape::{Records, Slots};
use self::tape::{file_in, numbered};

/// The file of a recording that has ended.
const ENDED: &str = "ended";
/// The end of the name of an hour's file.
const HOUR: &str = ".dma";

/// The folder of all recordings. It may be shared by several processes of one machine.
#[derive(Clone, Debug)]
pub struct Archive {
    root: PathBuf,
}

/// One recording of a room.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recording {
    folder: PathBuf,
    /// When its first slot began.
    pub start: Wall,
}

impl Archive {
    /// The archive in this folder, which need not be there yet.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// A room's recordings, oldest first; none if nothing was recorded.
    ///
    /// # Errors
    /// When its folder cannot be read.
    pub fn recordings(&self, room: &RoomId) -> io::Result<Vec<Recording>> {
        let found = numbered(&self.folder(room), "")?;
        Ok(found
            .into_iter()
            .map(|(start, folder)| Recording { folder, start: Wall(start) })
            .collect())
    }

    /// Items of a room that were erased lately: some may still stand in its recordings.
    ///
    /// # Errors
    /// When the list of them cannot be read.
    pub fn erased(&self, room: &RoomId) -> io::Result<BTreeSet<ItemId>> {
        Ok(Erased::read(&self.folder(room))?.ids().collect())
    }

    /// The rooms that have a folder.
    fn rooms(&self) -> io::Result<Vec<RoomId>> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut rooms = Vec::new();
        for entry in entries {
            rooms.extend(entry?.file_name().to_str().and_then(|it| RoomId::parse(it).ok()));
        }
        Ok(rooms)
    }

    /// The folder of all of them.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn folder(&self, room: &RoomId) -> PathBuf {
        self.root.join(room.as_str())
    }

    /// Keeps other processes from publishing or erasing in the room while it lives; `None` while
    /// another does.
    fn lock(&self, room: &RoomId) -> io::Result<Option<fs::File>> {
        let file = fs::File::create(self.folder(room).join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Recording {
    /// Its slots, in the order in which they were sealed. Slots in which nothing was shown are left
    /// out, but for the first one of each gen.
    ///
    /// # Errors
    /// When its folder cannot be read.
    pub fn slots(&self) -> io::Result<Slots> {
        Ok(Slots::new(self.files()?))
    }

    /// Whether its room was closed, or is not recorded any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.folder.join(ENDED).exists()
    }

    /// Its files, by hour.
    fn hours(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        numbered(&self.folder, HOUR)
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self.hours()?.into_iter().map(|(_, path)| path).collect())
    }

    /// Removes it.
    fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn file(&self, hour: u64) -> PathBuf {
        file_in(&self.folder, hour)
    }
}

/// Days as a duration.
pub(crate) fn days(days: u32) -> Duration {
    Duration::from_hours(u64::from(days) * 24)
}

/// Writes a file so that it is there as a whole or as it was before, also after the machine stops.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let write = || {
        let mut file = fs::File::create(&unfinished)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        path.parent().map_or(Ok(()), sync_folder)
    };
    write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

/// Makes new names in a folder last.
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
