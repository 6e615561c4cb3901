//! What happens to recordings beside being written: erasures, minute files, and their end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use broadcaster_core::erase::rewrite;
use futures_util::future::BoxFuture;
use proto::head::Recording as Index;
use proto::id::{Gen, ItemId, RoomId, Term};
use proto::time::Wall;

use super::{Recorder, Tools, blocking};
use crate::archive::erased::Erased;
use crate::archive::erasing::Finding;
use crate::archive::publish::{PublishError, clear, print, publish};
use crate::archive::roll::Erasure;
use crate::archive::shelves::{Published, files_of, remove};
use crate::archive::{Archive, Recording};
use crate::store::{Ext, File, Replaced, Stamp, StoreError};

/// How often what is too old is looked for.
const SWEEP: Duration = Duration::from_mins(10);
/// Pause after an erasure or a publication failed; each further failure doubles it.
const PAUSE: Duration = Duration::from_secs(10);
/// How often it doubles: to five minutes.
const DOUBLINGS_MAX: u32 = 5;
/// Milliseconds of what one file of a recording holds.
const HOUR_MS: u64 = 3_600_000;

/// What is done beside recording, one at a time: it may take long.
pub(super) type Chore = BoxFuture<'static, Outcome>;

/// How a chore ended.
pub(super) enum Outcome {
    Swept(io::Result<()>),
    Sought(RoomId, io::Result<Option<Sought>>),
    Published(RoomId, Recording, Result<Index, PublishError>),
}

/// Items that are in no minute file any more, and where recordings hold them.
pub(super) struct Sought {
    /// Nobody else publishes in the room until they are there no more either.
    _lock: fs::File,
    ids: Vec<ItemId>,
    finding: Finding,
}

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
        let mut rooms: BTreeMap<RoomId, Vec<Erasure>> = BTreeMap::new();
        for erasure in std::mem::take(&mut self.noting) {
            rooms.entry(erasure.room.clone()).or_default().push(erasure);
        }
        let now = self.tools.clock.wall();
        for (room, erasures) in rooms {
            let ids: Vec<_> = erasures.iter().map(|it| it.id).collect();
            let folder = self.tools.archive.folder(&room);
            let is_recorded = self.roll.has(&room);
            let added = ids.clone();
            let noted = blocking(move || {
                if !is_recorded && !folder.exists() {
                    return Ok(false);
                }
                Erased::read(&folder)?.add(added, now)?;
                Ok(true)
            });
            match noted.await {
                // Nothing of the room is here.
                Ok(false) => {}
                Ok(true) => {
                    self.erased.entry(room.clone()).or_default().extend(ids);
                    self.add_erasing(room);
                }
                Err(error) => {
                    self.failed("erase", &error);
                    self.noting.extend(erasures);
                    continue;
                }
            }
            for erasure in erasures {
                erasure.noted.send_replace(true);
            }
        }
    }

    fn add_erasing(&mut self, room: RoomId) {
        if !self.erasing.contains(&room) {
            self.erasing.push_back(room);
        }
    }

    /// What is to be done beside recording.
    pub(super) fn next_chore(&mut self) -> Option<Chore> {
        let now = self.tools.clock.mono();
        let tools = Arc::clone(&self.tools);
        if self.swept.is_none_or(|it| now.since(it) >= SWEEP) {
            self.swept = Some(now);
            return Some(Box::pin(async move { Outcome::Swept(sweep(&tools).await) }));
        }
        if now < self.paused {
            return None;
        }
        if let Some(room) = self.erasing.pop_front() {
            return Some(Box::pin(async move {
                let sought = seek(&tools, &room).await;
                Outcome::Sought(room, sought)
            }));
        }
        let (room, recording) = self.publishing.pop_front()?;
        Some(Box::pin(async move {
            let times = (None, tools.clock.wall());
            let (archive, packing, stores) = (&tools.archive, &tools.packing, &tools.stores);
            let made = publish(archive, &room, &recording, times, packing, stores).await;
            Outcome::Published(room, recording, made)
        }))
    }

    /// What follows from a chore.
    pub(super) async fn end_chore(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Swept(Ok(())) => {}
            Outcome::Swept(Err(error)) => self.failed("remove", &error),
            // Somebody publishes in the room.
            Outcome::Sought(room, Ok(None)) => self.add_erasing(room),
            Outcome::Sought(room, Ok(Some(sought))) => match self.erase(&room, sought).await {
                Ok(()) => self.failures = 0,
                Err(error) => self.erase_later(room, &error),
            },
            Outcome::Sought(room, Err(error)) => self.erase_later(room, &error),
            Outcome::Published(room, recording, made) => {
                self.end_publication(room, recording, made).await;
            }
        }
    }

    /// Takes items out of a room's recordings.
    async fn erase(&mut self, room: &RoomId, sought: Sought) -> io::Result<()> {
        let folder = self.tools.archive.folder(room);
        blocking(move || {
            sought.finding.rewrite()?;
            Erased::read(&folder)?.done(&sought.ids)
        })
        .await?;
        if let Some(mut tape) = self.tapes.remove(room) {
            let reloaded = blocking(move || tape.reload().map(|()| tape)).await?;
            self.tapes.insert(room.clone(), reloaded);
        }
        Ok(())
    }

    fn erase_later(&mut self, room: RoomId, error: &io::Error) {
        self.failed("erase", error);
        self.add_erasing(room);
        self.pause();
    }

    async fn end_publication(
        &mut self,
        room: RoomId,
        recording: Recording,
        made: Result<Index, PublishError>,
    ) {
        match made {
            Ok(Index { items, version, left_out, .. }) => {
                self.failures = 0;
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
                self.publishing.push_back((room, recording));
                self.pause();
            }
            Err(error @ (PublishError::Recalls | PublishError::Full)) => {
                self.tools.counts.archive_error("publish");
                tracing::error!(%room, %error, "a recording gets no minute files");
            }
        }
    }

    /// Twice as long after each failure.
    fn pause(&mut self) {
        self.paused = self.tools.clock.mono() + PAUSE * (1 << self.failures);
        self.failures = (self.failures + 1).min(DOUBLINGS_MAX);
    }
}

/// Takes what was erased out of the minute files of a room, and looks where its recordings hold it.
/// `None` while another process has the room.
async fn seek(tools: &Tools, room: &RoomId) -> io::Result<Option<Sought>> {
    let (archive, name) = (tools.archive.clone(), room.clone());
    let Some(lock) = tools.archive.lock(room)? else { return Ok(None) };
    clear(&archive, room, &tools.stores).await?;
    let looked = blocking(move || {
        let folder = archive.folder(&name);
        let ids = Erased::read(&folder)?.open();
        let finding = Finding::of(&archive.recordings(&name)?, &ids)?;
        let published = Published::read(&folder)?.all().to_vec();
        Ok((ids, finding, published))
    });
    let (ids, finding, published) = looked.await?;
    for index in &published {
        for minute in finding.minutes(index) {
            let erased = erase_minute(tools, room, index, minute, &ids).await;
            erased.map_err(io::Error::other)?;
        }
    }
    Ok(Some(Sought { _lock: lock, ids, finding }))
}

async fn erase_minute(
    tools: &Tools,
    room: &RoomId,
    index: &Index,
    minute: u64,
    ids: &[ItemId],
) -> Result<(), StoreError> {
    let version = tools.clock.wall().0;
    let stamp = Stamp { gen_no: Gen(0), term: Term(0), version };
    let looked = File::Minute { room: room.clone(), version: index.version, minute, ext: Ext::Bin };
    for store in &tools.stores {
        let Some(bytes) = call(tools, store.get(looked.clone())).await? else {
            continue;
        };
        let Some(segment) = rewrite(&bytes, ids).ok().flatten() else {
            continue;
        };
        let files = print(room, index.version, minute, &segment, &tools.packing);
        for (file, bytes) in files {
            if call(tools, store.replace(file.clone(), bytes, stamp)).await? == Replaced::Stale {
                let why = "the clock was set back since a minute was written";
                return Err(StoreError::Away(why.to_owned()));
            }
            tools.purges.forget(&file);
        }
    }
    Ok(())
}

async fn call<R>(
    tools: &Tools,
    call: impl Future<Output = Result<R, StoreError>>,
) -> Result<R, StoreError> {
    let late = |_| StoreError::Away("it did not answer in time".to_owned());
    tokio::time::timeout(tools.call_max, call).await.map_err(late)?
}

/// Removes what is too old, and what was published by halves.
async fn sweep(tools: &Tools) -> io::Result<()> {
    let (archive, life, now) = (tools.archive.clone(), tools.life, tools.clock.wall());
    let rooms = blocking(move || {
        let rooms = archive.rooms()?;
        rooms.iter().try_for_each(|it| remove_hours(&archive, it, life, now))?;
        Ok(rooms)
    });
    for room in rooms.await? {
        // Who has it now sweeps it, or this process does the next time.
        let Some(_lock) = tools.archive.lock(&room)? else { continue };
        clear(&tools.archive, &room, &tools.stores).await?;
        take_back(tools, &room, now).await?;
    }
    Ok(())
}

/// Removes minute files whose time is over from the stores. The caller has the room's lock.
async fn take_back(tools: &Tools, room: &RoomId, now: Wall) -> io::Result<()> {
    let (folder, life) = (tools.archive.folder(room), tools.life);
    let mut published = blocking(move || Published::read(&folder)).await?;
    let gone = published.over(now, life);
    if gone.is_empty() {
        return Ok(());
    }
    let mut files: Vec<_> = gone.iter().flat_map(|it| files_of(room, it)).collect();
    if published.all().iter().all(|it| gone.contains(it)) {
        files.push(File::Recording { room: room.clone(), version: None });
    }
    remove(&tools.stores, &files).await?;
    blocking(move || published.remove(&gone)).await
}

/// Removes a room's hours that are too old.
fn remove_hours(archive: &Archive, room: &RoomId, life: Duration, now: Wall) -> io::Result<()> {
    for recording in archive.recordings(room)? {
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
    Ok(())
}

/// What is not there is removed already.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
