//! What happens to recordings beside being written: erasures, minute files, and their end.

use std::fs;
use std::io::{self, ErrorKind};
use std::time::Duration;

use broadcaster_core::erase::rewrite;
use proto::head::Recording as Index;
use proto::id::{Gen, ItemId, RoomId, Term};
use proto::time::Wall;

use super::{Recorder, blocking};
use crate::archive::Archive;
use crate::archive::erased::Erased;
use crate::archive::erasing::Finding;
use crate::archive::publish::{PublishError, print, publish};
use crate::archive::shelves::{Published, files_of};
use crate::store::{Ext, File, Stamp, StoreError};

/// How often what is too old is looked for.
const SWEEP: Duration = Duration::from_mins(10);
/// Pause after an erasure or a publication failed.
const PAUSE: Duration = Duration::from_secs(10);
/// Milliseconds of what one file of a recording holds.
const HOUR_MS: u64 = 3_600_000;
/// Files removed with one call to a store.
const REMOVED_MAX: usize = 512;

impl Recorder {
    /// What an earlier process left undone.
    pub(super) async fn look_through(&mut self) {
        let archive = self.tools.archive.clone();
        let found = blocking(move || {
            let (mut erasing, mut publishing) = (Vec::new(), Vec::new());
            for room in archive.rooms()? {
                let folder = archive.folder(&room);
                if !Erased::read(&folder)?.open().is_empty() {
                    erasing.push(room.clone());
                }
                let published = Published::read(&folder)?;
                for recording in archive.recordings(&room)? {
                    let has_minutes =
                        published.all().iter().any(|it| it.start_ms == recording.start);
                    if recording.has_ended() && !has_minutes {
                        publishing.push((room.clone(), recording));
                    }
                }
            }
            Ok((erasing, publishing))
        });
        match found.await {
            Ok((erasing, publishing)) => {
                self.erasing.extend(erasing);
                self.publishing.extend(publishing);
            }
            Err(error) => self.failed("read", &error),
        }
    }

    fn failed(&self, call: &str, error: &io::Error) {
        self.tools.counts.archive_error(call);
        tracing::warn!(call, %error, "the archive failed");
    }

    /// Makes new erasures durable. What cannot be noted stays with the recorder until it can.
    pub(super) async fn note_erasures(&mut self) {
        self.noting.extend(self.roll.erasures());
        let now = self.tools.clock.wall();
        let mut left = Vec::new();
        for erasure in std::mem::take(&mut self.noting) {
            let (archive, room, id) =
                (self.tools.archive.clone(), erasure.room.clone(), erasure.id);
            let is_recorded = self.roll.has(&room);
            let noted = blocking(move || {
                let folder = archive.folder(&room);
                if !is_recorded && !folder.exists() {
                    return Ok(false);
                }
                Erased::read(&folder)?.add([id], now)?;
                Ok(true)
            });
            match noted.await {
                // Nothing of the room is here.
                Ok(false) => drop(erasure.noted.send_replace(true)),
                Ok(true) => {
                    self.erased.entry(erasure.room.clone()).or_default().push(id);
                    self.erasing.insert(erasure.room);
                    erasure.noted.send_replace(true);
                }
                Err(error) => {
                    self.failed("erase", &error);
                    left.push(erasure);
                }
            }
        }
        self.noting = left;
    }

    /// Takes items out of files; a room in which that failed is tried again.
    pub(super) async fn erase(&mut self) {
        for room in self.erasing.clone() {
            match self.erase_in(&room).await {
                Ok(true) => drop(self.erasing.remove(&room)),
                // Somebody publishes in the room.
                Ok(false) => {}
                Err(error) => {
                    self.failed("erase", &error);
                    self.paused = self.tools.clock.mono() + PAUSE;
                }
            }
        }
    }

    /// False while another process has the room.
    async fn erase_in(&mut self, room: &RoomId) -> io::Result<bool> {
        let (archive, name) = (self.tools.archive.clone(), room.clone());
        let looked = blocking(move || {
            let Some(lock) = archive.lock(&name)? else { return Ok(None) };
            let folder = archive.folder(&name);
            let ids = Erased::read(&folder)?.open();
            let finding = Finding::of(&archive.recordings(&name)?, &ids)?;
            let published = Published::read(&folder)?.all().to_vec();
            Ok(Some((lock, ids, finding, published)))
        });
        let Some((_lock, ids, finding, published)) = looked.await? else {
            return Ok(false);
        };
        for index in &published {
            for minute in finding.minutes(index) {
                let erased = self.erase_minute(room, index, minute, &ids).await;
                erased.map_err(io::Error::other)?;
            }
        }
        let folder = self.tools.archive.folder(room);
        blocking(move || {
            finding.rewrite()?;
            Erased::read(&folder)?.done(&ids)
        })
        .await?;
        if let Some(mut tape) = self.tapes.remove(room) {
            let reloaded = blocking(move || tape.reload().map(|()| tape)).await?;
            self.tapes.insert(room.clone(), reloaded);
        }
        Ok(true)
    }

    async fn erase_minute(
        &self,
        room: &RoomId,
        index: &Index,
        minute: u64,
        ids: &[ItemId],
    ) -> Result<(), StoreError> {
        let version = self.tools.clock.wall().0;
        let stamp = Stamp { gen_no: Gen(0), term: Term(0), version };
        let looked =
            File::Minute { room: room.clone(), version: index.version, minute, ext: Ext::Bin };
        for store in &self.tools.stores {
            let Some(bytes) = self.call(store.get(looked.clone())).await? else {
                continue;
            };
            let Some(segment) = rewrite(&bytes, ids).ok().flatten() else {
                continue;
            };
            let files = print(room, index.version, minute, &segment, &self.tools.packing);
            for (file, bytes) in files {
                self.call(store.replace(file.clone(), bytes, stamp)).await?;
                self.tools.purges.forget(&file);
            }
        }
        Ok(())
    }

    async fn call<R>(
        &self,
        call: impl Future<Output = Result<R, StoreError>>,
    ) -> Result<R, StoreError> {
        let late = |_| StoreError::Away("it did not answer in time".to_owned());
        tokio::time::timeout(self.tools.call_max, call).await.map_err(late)?
    }

    /// Makes the minute files of one recording that has ended.
    pub(super) async fn publish_next(&mut self) {
        let Some((room, recording)) = self.publishing.pop_front() else {
            return;
        };
        let (archive, stores) = (&self.tools.archive, &self.tools.stores);
        let times = (None, self.tools.clock.wall());
        match publish(archive, &room, &recording, times, &self.tools.packing, stores).await {
            Ok(Index { items, version, left_out, .. }) => {
                tracing::info!(%room, version, items, left_out, "a recording has minute files");
            }
            Err(PublishError::Empty) => {
                let removed = blocking(move || recording.remove()).await;
                removed.unwrap_or_else(|error| self.failed("remove", &error));
            }
            Err(PublishError::Busy) => self.publishing.push_back((room, recording)),
            Err(error @ (PublishError::Stores | PublishError::Io(_))) => {
                self.tools.counts.archive_error("publish");
                tracing::warn!(%room, %error, "a recording has no minute files yet");
                self.paused = self.tools.clock.mono() + PAUSE;
                self.publishing.push_back((room, recording));
            }
            Err(error @ PublishError::Recalls) => {
                self.tools.counts.archive_error("publish");
                tracing::error!(%room, %error, "a recording gets no minute files");
            }
        }
    }

    /// Removes what is too old.
    pub(super) async fn sweep(&mut self) {
        let now = self.tools.clock.mono();
        if self.swept.is_some_and(|it| now.since(it) < SWEEP) {
            return;
        }
        self.swept = Some(now);
        let (archive, life, now) =
            (self.tools.archive.clone(), self.tools.life, self.tools.clock.wall());
        let swept = blocking(move || sweep(&archive, life, now)).await;
        let over = match swept {
            Ok(over) => over,
            Err(error) => return self.failed("remove", &error),
        };
        for (room, gone) in over {
            if let Err(error) = self.take_back(&room, gone).await {
                self.failed("remove", &error);
            }
        }
    }

    /// Removes minute files from the stores.
    async fn take_back(&self, room: &RoomId, gone: Vec<Index>) -> io::Result<()> {
        let folder = self.tools.archive.folder(room);
        let mut files: Vec<_> = gone.iter().flat_map(|it| files_of(room, it)).collect();
        let read = folder.clone();
        let mut published = blocking(move || Published::read(&read)).await?;
        if published.all().iter().all(|it| gone.contains(it)) {
            files.push(File::Recording { room: room.clone(), version: None });
        }
        for files in files.chunks(REMOVED_MAX) {
            for store in &self.tools.stores {
                let removed = async { Ok(store.remove(files.to_vec()).await) };
                let removed = self.call(removed).await.map_err(io::Error::other)?;
                removed.into_iter().collect::<Result<(), _>>().map_err(io::Error::other)?;
            }
        }
        blocking(move || published.remove(&gone)).await
    }
}

/// Removes hours that are too old; gives what is published and too old.
fn sweep(archive: &Archive, life: Duration, now: Wall) -> io::Result<Vec<(RoomId, Vec<Index>)>> {
    let mut over = Vec::new();
    for room in archive.rooms()? {
        for recording in archive.recordings(&room)? {
            let hours = recording.hours()?;
            let is_over = |hour: u64| now.since(Wall((hour + 1).saturating_mul(HOUR_MS))) >= life;
            let old: Vec<_> = hours.iter().filter(|it| is_over(it.0)).collect();
            for (_, path) in &old {
                gone(fs::remove_file(path))?;
            }
            if !old.is_empty() && old.len() == hours.len() {
                recording.remove()?;
            }
        }
        let published = Published::read(&archive.folder(&room))?.over(now, life);
        if !published.is_empty() {
            over.push((room, published));
        }
    }
    Ok(over)
}

/// What is not there is removed already.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
