//! Minute files made of a recording: what a player fetches that seeks in it.
//!
//! The recording is read several times instead of being held in memory, so it may be of any length.
//! All minutes are in a store before the index that names them.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use broadcaster_core::archive::minutes::{Minutes, Recorded, Survey};
use broadcaster_core::{Packed, Packing};
use bytes::Bytes;
use proto::head::Recording as Index;
use proto::id::{Gen, ItemId, RoomId, Term};
use proto::item::Item;
use proto::segment::Segment;
use proto::time::Wall;

use super::shelves::{Draft, Published, files_of, minute_files, remove};
use super::{Archive, Recording};
use crate::store::{File, SegmentStore, Stamp};

/// Recalled items that are left out, 8 bytes each.
const RECALLED_MAX: usize = 1_000_000;
/// Longest time for one call to a store.
const CALL_MAX: Duration = Duration::from_secs(10);
/// Layout of an index.
const INDEX_VERSION: u32 = 1;

/// Why no minute files were made.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Nothing was shown.
    #[error("nothing was shown in the recording")]
    Empty,
    /// Another process publishes or erases in the room now.
    #[error("another process publishes or erases in the room")]
    Busy,
    /// Too many recordings of the room are published; the oldest go with their time.
    #[error("too many recordings of the room are published")]
    Full,
    /// More was recalled than is held in memory.
    #[error("more than {RECALLED_MAX} items were recalled")]
    Recalls,
    /// No store took everything.
    #[error("no store took all minutes")]
    Stores,
    /// The archive cannot be read or written.
    #[error("the archive failed")]
    Io(#[from] io::Error),
}

/// Makes the minute files of a recording in every store. `start` is when media time 0 was, by default
/// when the recording began; `now` becomes the version.
///
/// A store that fails goes without this version, and names the one before. If all fail, the minutes
/// that some took are removed again, at the latest by the next call for the room.
///
/// # Errors
/// As the variants say.
pub async fn publish(
    archive: &Archive,
    room: &RoomId,
    recording: &Recording,
    (start, now): (Option<Wall>, Wall),
    packing: &Packing,
    stores: &[Arc<dyn SegmentStore>],
) -> Result<Index, PublishError> {
    let _lock = archive.lock(room)?.ok_or(PublishError::Busy)?;
    clear(archive, room, stores).await?;
    if Published::read(&archive.folder(room))?.is_full() {
        return Err(PublishError::Full);
    }
    let start = start.unwrap_or(recording.start);
    let recorded = Recorded { room: room.clone(), start, now };
    let erased = archive.erased(room)?;
    let reader = Reader { recording: recording.clone(), left_out: Arc::default() };
    let reader = blocking(move || reader.leave(erased)).await?;
    let (reader, survey) = blocking(move || reader.survey(start)).await?;
    let runs = survey.runs();
    if runs.is_empty() {
        return Err(PublishError::Empty);
    }
    let draft = Index {
        v: INDEX_VERSION,
        version: now.0,
        start_ms: start,
        minutes: runs,
        items: 0,
        left_out: survey.beyond(),
    };
    Draft::of(&archive.folder(room)).write(&draft)?;
    let made = fill(draft, &reader, survey, &recorded, packing, stores.to_vec()).await;
    let added = made.and_then(|index| {
        Published::read(&archive.folder(room))?.add(index.clone())?;
        Ok(index)
    });
    if let Err(error) = clear(archive, room, stores).await {
        tracing::warn!(%room, %error, "what is unfinished stays in the stores for now");
    }
    added
}

/// Takes back what an earlier call did not finish. The caller has the room's lock.
pub(super) async fn clear(
    archive: &Archive,
    room: &RoomId,
    stores: &[Arc<dyn SegmentStore>],
) -> io::Result<()> {
    let folder = archive.folder(room);
    let draft = Draft::of(&folder);
    let Some(index) = draft.read()? else { return Ok(()) };
    let published = Published::read(&folder)?;
    if !published.all().iter().any(|it| it.version == index.version) {
        remove(stores, &files_of(room, &index)).await?;
    }
    draft.remove()
}

/// Makes the minutes and names them; gives the index.
async fn fill(
    mut index: Index,
    reader: &Reader,
    survey: Survey,
    recorded: &Recorded,
    packing: &Packing,
    mut targets: Vec<Arc<dyn SegmentStore>>,
) -> Result<Index, PublishError> {
    let survey = Arc::new(survey);
    let room = &recorded.room;
    for range in survey.ranges() {
        let (reader, survey, recorded) = (reader.clone(), Arc::clone(&survey), recorded.clone());
        let (segments, left) = blocking(move || {
            let mut minutes = Minutes::new(&survey, recorded.start, range);
            reader.each(|item| minutes.add(item))?;
            Ok(minutes.finish(&recorded))
        })
        .await?;
        index.left_out += left;
        for (minute, segment) in segments {
            index.items += u64::try_from(segment.items.len()).unwrap_or(u64::MAX);
            let files = print(room, index.version, minute, &segment, packing);
            create(&mut targets, &files).await;
            if targets.is_empty() {
                return Err(PublishError::Stores);
            }
        }
    }
    announce(&mut targets, room, &index).await;
    if targets.is_empty() {
        return Err(PublishError::Stores);
    }
    Ok(index)
}

/// The files of a minute.
pub(super) fn print(
    room: &RoomId,
    version: u64,
    minute: u64,
    segment: &Segment,
    packing: &Packing,
) -> Vec<(File, Bytes)> {
    let Packed { bin, json, .. } = Packed::of(segment, packing);
    minute_files(room, version, minute).into_iter().zip([json, bin]).collect()
}

/// Names the minutes, for good and as the room's newest.
async fn announce(targets: &mut Vec<Arc<dyn SegmentStore>>, room: &RoomId, index: &Index) {
    let bytes = Bytes::from(serde_json::to_vec(index).expect("an index has string keys only"));
    let file = |version| File::Recording { room: room.clone(), version };
    create(targets, &[(file(Some(index.version)), bytes.clone())]).await;
    let stamp = Stamp { gen_no: Gen(0), term: Term(0), version: index.version };
    let mut left = Vec::new();
    for store in targets.drain(..) {
        let replace = store.replace(file(None), bytes.clone(), stamp);
        if matches!(tokio::time::timeout(CALL_MAX, replace).await, Ok(Ok(_))) {
            left.push(store);
        }
    }
    *targets = left;
}

/// Writes files to every store; one that does not take them gets no more.
async fn create(targets: &mut Vec<Arc<dyn SegmentStore>>, files: &[(File, Bytes)]) {
    let mut left = Vec::new();
    for store in targets.drain(..) {
        match tokio::time::timeout(CALL_MAX, store.create(files.to_vec())).await {
            Ok(results) if results.iter().all(Result::is_ok) => left.push(store),
            Ok(_) | Err(_) => tracing::warn!("a store does not take a recording's minutes"),
        }
    }
    *targets = left;
}

/// Runs `work` where blocking is allowed.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, PublishError> + Send + 'static,
) -> Result<R, PublishError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| PublishError::Io(io::Error::other(error)))?
}

/// Goes through the items of a recording that are to be seen.
#[derive(Clone, Debug)]
struct Reader {
    recording: Recording,
    left_out: Arc<BTreeSet<ItemId>>,
}

impl Reader {
    /// Leaves out these items, those that were recalled, and what recalled them.
    fn leave(self, mut ids: BTreeSet<ItemId>) -> Result<Self, PublishError> {
        for segment in self.recording.slots()? {
            for placed in segment?.items {
                if let Some(of) = placed.item.body.recalls() {
                    ids.extend([of, placed.item.id]);
                }
            }
            if ids.len() > RECALLED_MAX {
                return Err(PublishError::Recalls);
            }
        }
        Ok(Self { left_out: Arc::new(ids), ..self })
    }

    fn each(&self, mut take: impl FnMut(Item)) -> Result<(), PublishError> {
        for segment in self.recording.slots()? {
            for placed in segment?.items {
                if !self.left_out.contains(&placed.item.id) {
                    take(placed.item);
                }
            }
        }
        Ok(())
    }

    fn survey(self, start: Wall) -> Result<(Self, Survey), PublishError> {
        let mut survey = Survey::default();
        self.each(|item| survey.add(&item, start))?;
        Ok((self, survey))
    }
}
