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

use super::shelves::{Published, minute_files};
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
/// A store that fails goes without this version, and names the one before.
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
    let start = start.unwrap_or(recording.start);
    let recorded = Recorded { room: room.clone(), start, now };
    let erased = archive.erased(room)?;
    let reader = Reader { recording: recording.clone(), left_out: Arc::default() };
    let reader = blocking(move || reader.leave(erased)).await?;
    let (reader, survey) = blocking(move || reader.survey(start)).await?;
    let survey = Arc::new(survey);
    let (mut items, mut left_out) = (0, survey.beyond());
    let mut targets: Vec<_> = stores.to_vec();
    for range in survey.ranges() {
        let (reader, survey, recorded) = (reader.clone(), Arc::clone(&survey), recorded.clone());
        let (segments, left) = blocking(move || {
            let mut minutes = Minutes::new(&survey, recorded.start, range);
            reader.each(|item| minutes.add(item))?;
            Ok(minutes.finish(&recorded))
        })
        .await?;
        left_out += left;
        for (minute, segment) in segments {
            items += u64::try_from(segment.items.len()).unwrap_or(u64::MAX);
            let files = print(room, now.0, minute, &segment, packing);
            create(&mut targets, &files).await;
        }
    }
    if items == 0 {
        return Err(PublishError::Empty);
    }
    let index = Index {
        v: INDEX_VERSION,
        version: now.0,
        start_ms: start,
        minutes: survey.runs(),
        items,
        left_out,
    };
    announce(&mut targets, room, &index).await;
    if targets.is_empty() {
        return Err(PublishError::Stores);
    }
    Published::read(&archive.folder(room))?.add(index.clone())?;
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
