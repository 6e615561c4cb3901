//! Taking items out of recordings and of the minute files that were made of them.
//!
//! Minute files first: which of them hold an item is known from the recording. Minute files may outlive
//! it, so what no recording holds is looked for in all of them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use broadcaster_core::archive::{MAGIC, minutes, record};
use broadcaster_core::erase;
use proto::head::Recording as Index;
use proto::id::ItemId;
use proto::item::Item;

use super::Recording;
use super::tape::Records;

/// Items that were found, and the files of recordings in which they stand.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) items: Vec<Item>,
    files: Vec<PathBuf>,
    /// Whether no recording holds some that were looked for.
    lacks_some: bool,
}

impl Finding {
    /// Looks for items in recordings, in the newest first, until all are found.
    pub(super) fn of(recordings: &[Recording], ids: &[ItemId]) -> io::Result<Self> {
        let mut wanted: BTreeSet<ItemId> = ids.iter().copied().collect();
        let mut finding = Self::default();
        for recording in recordings.iter().rev() {
            for path in recording.files()?.into_iter().rev() {
                if wanted.is_empty() {
                    return Ok(finding);
                }
                finding.look(path, &mut wanted)?;
            }
        }
        finding.lacks_some = !wanted.is_empty();
        Ok(finding)
    }

    fn look(&mut self, path: PathBuf, wanted: &mut BTreeSet<ItemId>) -> io::Result<()> {
        let mut records = Records::open(&path)?;
        let before = self.items.len();
        while let Some(segment) = records.step()? {
            let found = segment.items.into_iter().map(|it| it.item);
            self.items.extend(found.filter(|it| wanted.remove(&it.id)));
        }
        if self.items.len() > before {
            self.files.push(path);
        }
        Ok(())
    }

    /// The minutes of a published recording that may hold them.
    pub(super) fn minutes(&self, index: &Index) -> BTreeSet<u64> {
        if self.lacks_some {
            let runs = index.minutes.iter();
            return runs.flat_map(|&[first, count]| first..first.saturating_add(count)).collect();
        }
        let minutes = self.items.iter().map(|it| minutes::minute_of(it, index.start_ms));
        let is_there = |it: &u64| {
            index.minutes.iter().any(|&[first, count]| (first..first + count).contains(it))
        };
        minutes.filter(is_there).collect()
    }

    /// Writes the recordings' files anew without the items.
    pub(super) fn rewrite(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|it| rewrite(it, &self.items))
    }
}

fn rewrite(path: &Path, items: &[Item]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let write = || {
        let mut records = Records::open(path)?;
        let mut file = BufWriter::new(fs::File::create(&unfinished)?);
        file.write_all(&MAGIC)?;
        while let Some(mut segment) = records.step()? {
            for item in items {
                erase::take_out(&mut segment, item.id);
            }
            let record = record(&segment);
            file.write_all(&record.ok_or_else(|| io::Error::other("a slot is too large"))?)?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&unfinished, path)?;
        path.parent().map_or(Ok(()), super::sync_folder)
    };
    write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
}
