//! Which items of a room are to be nowhere any more.
//!
//! The list is durable before the erasure counts as done: readers leave these items out at once, and
//! a process that is killed amid rewriting files goes on with it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto::id::ItemId;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

use super::replace;

/// Items of one room, about 60 bytes each; the oldest that are done give way.
const ITEMS_MAX: usize = 10_000;
/// An item that is done with is remembered for so long: a slot that holds it may be recorded after
/// its erasure, from a store that was away.
const LIFE: Duration = Duration::from_hours(24);

/// The list.
#[derive(Debug)]
pub(super) struct Erased {
    path: PathBuf,
    items: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Entry {
    id: ItemId,
    at_ms: Wall,
    /// Whether no file holds it any more.
    is_done: bool,
}

impl Erased {
    /// The list of the room with this folder; empty if there is none.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let path = folder.join("erased.json");
        let items = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, items })
    }

    /// All of them.
    pub(super) fn ids(&self) -> impl Iterator<Item = ItemId> {
        self.items.iter().map(|it| it.id)
    }

    /// Those that some file may hold.
    pub(super) fn open(&self) -> Vec<ItemId> {
        self.items.iter().filter(|it| !it.is_done).map(|it| it.id).collect()
    }

    /// Adds items and makes the list durable.
    pub(super) fn add(
        &mut self,
        ids: impl IntoIterator<Item = ItemId>,
        now: Wall,
    ) -> io::Result<()> {
        self.items.retain(|it| !it.is_done || now.since(it.at_ms) < LIFE);
        for id in ids {
            if !self.items.iter().any(|it| it.id == id) {
                self.items.push(Entry { id, at_ms: now, is_done: false });
            }
        }
        let beyond = self.items.len().saturating_sub(ITEMS_MAX);
        let mut left = beyond;
        self.items.retain(|it| {
            let goes = it.is_done && left > 0;
            left -= usize::from(goes);
            !goes
        });
        self.write()
    }

    /// No file holds these any more.
    pub(super) fn done(&mut self, ids: &[ItemId]) -> io::Result<()> {
        for item in self.items.iter_mut().filter(|it| ids.contains(&it.id)) {
            item.is_done = true;
        }
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        replace(&self.path, &serde_json::to_vec(&self.items)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erasure_is_known_again_until_it_is_done_and_for_a_day_after() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Erased::read(folder.path()).unwrap();

        read().add([ItemId(1), ItemId(2), ItemId(1)], Wall(1000)).unwrap();
        read().done(&[ItemId(2)]).unwrap();

        assert_eq!(read().open(), [ItemId(1)]);
        assert_eq!(read().ids().collect::<Vec<_>>(), [ItemId(1), ItemId(2)]);
        let next_day = Wall(1000) + LIFE;
        read().add([ItemId(3)], next_day).unwrap();
        assert_eq!(read().ids().collect::<Vec<_>>(), [ItemId(1), ItemId(3)]);
    }
}
