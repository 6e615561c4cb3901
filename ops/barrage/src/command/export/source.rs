//! A room's slots, from its recordings and from the files that are still served, each once.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::vec;

use anyhow::{Context, ensure};
use broadcaster::archive::{Archive, Recording};
use proto::id::{Gen, ItemId, RoomId};
use proto::segment::Segment;

use super::vault::Vault;
use super::{read, slots};

/// Items that are left out, 8 bytes each.
const LEFT_OUT_MAX: usize = 1_000_000;

/// Gen and slot.
type Place = (u64, u64);

/// Where a room's slots are.
pub(super) struct Source {
    recordings: Vec<Recording>,
    files: Vec<(Place, PathBuf)>,
    /// Erased items that may still stand in a recording.
    erased: BTreeSet<ItemId>,
    vault: Vault,
}

impl Source {
    /// Looks below the data folder of a system.
    pub(super) fn find(data: &Path, room: &RoomId, vault: Vault) -> anyhow::Result<Self> {
        let archive = Archive::new(&data.join(stack::ARCHIVE));
        let cannot = "the recordings cannot be read";
        let recordings = archive.recordings(room).context(cannot)?;
        let erased = archive.erased(room).context(cannot)?;
        let folder = data.join(stack::SEGMENTS).join("dm/1").join(room.as_str());
        let files = if folder.is_dir() || recordings.is_empty() {
            slots(&folder)
                .with_context(|| format!("no slots of this room are in {}", folder.display()))?
        } else {
            Vec::new()
        };
        let files: Vec<_> = files.into_iter().filter_map(|it| Some((place(&it)?, it))).collect();
        let is_something = !(files.is_empty() && recordings.is_empty());
        ensure!(is_something, "no slots of this room are kept: see [broadcaster] retention_s");
        Ok(Self { recordings, files, erased, vault })
    }

    /// Gives every slot to `take`, in the order in which they were shown.
    pub(super) fn each(
        &self,
        mut take: impl FnMut(Segment) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut files = self.files.clone().into_iter().peekable();
        for recording in &self.recordings {
            for segment in recording.slots()? {
                let segment = segment?;
                let at = (segment.header.gen_no.0.into(), segment.header.slot.0);
                self.before(&mut files, at, &mut take)?;
                files.next_if(|it| it.0 == at);
                take(segment)?;
            }
        }
        self.before(&mut files, (u64::MAX, u64::MAX), &mut take)
    }

    /// Items that are not to be seen: recalled ones, and erased ones.
    pub(super) fn left_out(&self) -> anyhow::Result<BTreeSet<ItemId>> {
        let mut left_out = self.erased.clone();
        self.each(|segment| {
            left_out.extend(segment.items.iter().filter_map(|it| it.item.body.recalls()));
            let is_bounded = left_out.len() <= LEFT_OUT_MAX;
            ensure!(is_bounded, "more than {LEFT_OUT_MAX} items were recalled");
            Ok(())
        })?;
        Ok(left_out)
    }

    /// Gives the files of slots before this one; those whose time was over meanwhile are passed
    /// over.
    fn before(
        &self,
        files: &mut Peekable<vec::IntoIter<(Place, PathBuf)>>,
        at: Place,
        take: &mut impl FnMut(Segment) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while let Some(((gen_no, _), file)) = files.next_if(|it| it.0 < at) {
            let gen_no = Gen(u32::try_from(gen_no).context("a gen is out of range")?);
            if let Some(segment) = read(&file, gen_no, &self.vault)? {
                take(segment)?;
            }
        }
        Ok(())
    }
}

/// `…/{gen}/{tier}/{slot}.bin`.
fn place(file: &Path) -> Option<Place> {
    let number = |it: Option<&std::ffi::OsStr>| it?.to_str()?.parse().ok();
    Some((number(file.parent()?.parent()?.file_name())?, number(file.file_stem())?))
}
