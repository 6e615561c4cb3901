//! Records what is sealed: once a second it looks which slots are shown and not on tape yet.
//!
//! It follows the display instead of a queue, so a slot is late while a disk is full or hangs, and
//! lost only when it expires before. After a restart it goes on behind the last slot on tape.

mod upkeep;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use broadcaster_core::Packing;
use broadcaster_core::archive::slot_start;
use broadcaster_core::erase::take_out;
use broadcaster_core::pack::expand;
use bytes::Bytes;
use kit::clock::Clock;
use kit::task::Tasks;
use proto::head::Tier;
use proto::id::{Gen, ItemId, RoomId, SlotNo};
use proto::segment::Segment;
use proto::time::{Mono, Wall};
use tokio::sync::mpsc;

use self::upkeep::{Chore, Outcome};
use super::erased::Erased;
use super::roll::{Call, Erasure, Lines, Roll};
use super::tape::Tape;
use super::{Archive, Recording};
use crate::counts::Counts;
use crate::display::Display;
use crate::purge::Purges;
use crate::store::{Ext, File, SegmentStore, check_space};

/// How often it looks.
const PASS: Duration = Duration::from_secs(1);
/// Slots of one room recorded in one pass.
const SLOTS_MAX: usize = 256;
/// How often tapes are made to last.
const SYNC: Duration = Duration::from_secs(5);
/// A recording whose last slot is older is not gone on with: the room begins another.
const GAP: Duration = Duration::from_hours(6);

/// What the recorder needs.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) archive: Archive,
    pub(crate) display: Arc<Display>,
    pub(crate) stores: Vec<Arc<dyn SegmentStore>>,
    pub(crate) purges: Purges,
    pub(crate) packing: Packing,
    /// Recordings are kept for so long.
    pub(crate) life: Duration,
    /// Longest time for one call to a store.
    pub(crate) call_max: Duration,
    /// The archive leaves this many bytes of its disk free.
    pub(crate) free_bytes_min: u64,
}

impl Tools {
    /// Starts the recorder; it ends after what is given.
    pub(crate) fn start(self, tasks: &mut Tasks) -> Roll {
        let (roll, lines, press) = Roll::new();
        tasks.spawn("recorder", Recorder::new(self, lines).run(press));
        roll
    }
}

/// Records, erases, publishes, and removes what is too old.
struct Recorder {
    tools: Arc<Tools>,
    roll: Arc<Lines>,
    tapes: BTreeMap<RoomId, Tape>,
    /// The last slot of each room that was recorded or is lost.
    passed: BTreeMap<RoomId, (Gen, SlotNo)>,
    /// What is to be left out of slots that come, by room.
    erased: BTreeMap<RoomId, Vec<ItemId>>,
    /// Rooms whose files may hold what was erased.
    erasing: VecDeque<RoomId>,
    /// Erasures that could not be noted yet.
    noting: Vec<Erasure>,
    /// Recordings that ended and have no minute files yet.
    publishing: VecDeque<(RoomId, Recording)>,
    /// Nothing is erased or published before: something failed, and costs much to try.
    paused: Mono,
    /// How often in a row.
    failures: u32,
    synced: Mono,
    swept: Option<Mono>,
}

/// Why a slot cannot be had.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Missing {
    /// No store has it.
    Lost,
    /// A store did not answer.
    Later,
}

impl Recorder {
    fn new(tools: Tools, roll: Arc<Lines>) -> Self {
        Self {
            synced: tools.clock.mono(),
            tools: Arc::new(tools),
            roll,
            tapes: BTreeMap::new(),
            passed: BTreeMap::new(),
            erased: BTreeMap::new(),
            erasing: VecDeque::new(),
            noting: Vec::new(),
            publishing: VecDeque::new(),
            paused: Mono(0),
            failures: 0,
            swept: None,
        }
    }

    /// Runs until the press has ended, which drops the other end of `press`.
    async fn run(mut self, mut press: mpsc::Receiver<()>) -> anyhow::Result<()> {
        self.look_through().await;
        // It gets on while the recorder waits for its next pass.
        let mut chore = None;
        loop {
            let is_last = tokio::select! {
                _ = press.recv() => true,
                () = self.tools.clock.sleep(PASS) => false,
                outcome = work(&mut chore) => {
                    chore = None;
                    self.end_chore(outcome).await;
                    continue;
                }
            };
            self.note_erasures().await;
            self.record_rooms().await;
            self.sync(is_last).await;
            if is_last {
                return Ok(());
            }
            if chore.is_none() {
                chore = self.next_chore();
            }
        }
    }

    async fn record_rooms(&mut self) {
        let rooms = self.roll.rooms();
        let is_there = |room: &RoomId| rooms.binary_search_by(|it| it.0.cmp(room)).is_ok();
        self.erased.retain(|room, _| is_there(room));
        self.passed.retain(|room, _| is_there(room));
        for (room, call) in &rooms {
            if let Err(error) = self.record(room, *call).await {
                self.tools.counts.archive_error("write");
                tracing::warn!(%room, %error, "a room's slots could not be recorded");
            }
        }
        // Their next owner goes on with them.
        self.tapes.retain(|room, tape| !tape.is_synced() || is_there(room));
    }

    /// Records what is shown of a room and not on its tape.
    async fn record(&mut self, room: &RoomId, call: Call) -> io::Result<()> {
        let Some(shown) = self.tools.display.find(room).map(|it| Arc::clone(&it.borrow())) else {
            return Ok(());
        };
        let mut tape = match self.tapes.remove(room) {
            Some(tape) => Some(tape),
            None => self.find_tape(room).await?,
        };
        let last = tape.as_ref().and_then(Tape::last).max(self.passed.get(room).copied());
        let is_due = |place: &(Gen, SlotNo)| {
            last.map_or(*place >= call.from, |last| *place > last)
                && call.until.is_none_or(|until| *place < until)
        };
        let due: Vec<_> = shown.shelf.slots().filter(is_due).take(SLOTS_MAX).collect();
        let (segments, passed) = self.fetch_all(room, &due).await;
        if let Some(first) = segments.first() {
            let taken = self.append(room, tape, slot_start(&first.header), segments).await?;
            tape = Some(taken);
        }
        self.passed.extend(passed.map(|it| (room.clone(), it)));
        let newest = shown.shelf.newest().map(|it| (it.info.gen_no, it.until));
        let has_all = call.until.is_some_and(|until| newest >= Some(until));
        if due.is_empty() && has_all {
            if let Some(tape) = tape {
                self.end(room, tape).await?;
            }
            self.roll.done(room, call);
        } else if let Some(tape) = tape {
            self.tapes.insert(room.clone(), tape);
        }
        Ok(())
    }

    /// The recording that the room goes on with, and what is to be left out.
    async fn find_tape(&mut self, room: &RoomId) -> io::Result<Option<Tape>> {
        let (archive, name, now) =
            (self.tools.archive.clone(), room.clone(), self.tools.clock.wall());
        let (erased, tape, ended) = blocking(move || {
            let erased = Erased::read(&archive.folder(&name))?.ids().collect();
            let newest = archive.recordings(&name)?.pop().filter(|it| !it.has_ended());
            let Some(recording) = newest else { return Ok((erased, None, None)) };
            let mut tape = Tape::resume(recording.clone())?;
            if now.since(tape.last_at()) < GAP {
                return Ok((erased, Some(tape), None));
            }
            tape.end()?;
            Ok((erased, None, Some(recording)))
        })
        .await?;
        self.erased.insert(room.clone(), erased);
        self.publishing.extend(ended.map(|it| (room.clone(), it)));
        Ok(tape)
    }

    /// Slots up to the first that must be waited for, and the last of them, lost ones included.
    async fn fetch_all(
        &self,
        room: &RoomId,
        due: &[(Gen, SlotNo)],
    ) -> (Vec<Segment>, Option<(Gen, SlotNo)>) {
        let (mut segments, mut passed) = (Vec::new(), None);
        for &(gen_no, slot) in due {
            let name = room.clone();
            let file = File::Segment { room: name, gen_no, tier: Tier::Full, slot, ext: Ext::Bin };
            match self.fetch(file).await {
                Ok(mut segment) => {
                    for &id in self.erased.get(room).into_iter().flatten() {
                        take_out(&mut segment, id);
                    }
                    segments.push(segment);
                }
                Err(Missing::Lost) => self.tools.counts.archive_lost.inc(),
                Err(Missing::Later) => break,
            }
            passed = Some((gen_no, slot));
        }
        (segments, passed)
    }

    async fn fetch(&self, file: File) -> Result<Segment, Missing> {
        let read = |bytes: Bytes| {
            let segment = expand(&bytes).and_then(|it| Segment::decode(&it));
            segment.map_err(|_| Missing::Lost)
        };
        if let Some(bytes) = self.tools.display.recent(&file) {
            return read(bytes);
        }
        let mut missing = Missing::Lost;
        for store in &self.tools.stores {
            match tokio::time::timeout(self.tools.call_max, store.get(file.clone())).await {
                Ok(Ok(Some(bytes))) => return read(bytes),
                Ok(Ok(None)) => {}
                Ok(Err(_)) | Err(_) => missing = Missing::Later,
            }
        }
        Err(missing)
    }

    /// Appends slots to a tape, which is begun if there is none.
    async fn append(
        &self,
        room: &RoomId,
        tape: Option<Tape>,
        start: Wall,
        segments: Vec<Segment>,
    ) -> io::Result<Tape> {
        let (archive, room) = (self.tools.archive.clone(), room.clone());
        let free_bytes_min = self.tools.free_bytes_min;
        let count = u64::try_from(segments.len()).unwrap_or(u64::MAX);
        let tape = blocking(move || {
            let mut tape = match tape {
                Some(tape) => tape,
                None => Tape::begin(&archive.folder(&room), start)?,
            };
            check_space(archive.root(), free_bytes_min).map_err(io::Error::other)?;
            tape.append(&segments)?;
            Ok(tape)
        })
        .await?;
        self.tools.counts.archive_recorded.inc_by(count);
        Ok(tape)
    }

    async fn end(&mut self, room: &RoomId, mut tape: Tape) -> io::Result<()> {
        let recording = tape.recording().clone();
        blocking(move || tape.end()).await?;
        tracing::info!(%room, start = %recording.start, "a recording has ended");
        self.publishing.push_back((room.clone(), recording));
        Ok(())
    }

    /// Makes tapes last, now and then and in the end.
    async fn sync(&mut self, is_last: bool) {
        let now = self.tools.clock.mono();
        if now.since(self.synced) < SYNC && !is_last {
            return;
        }
        self.synced = now;
        let mut tapes = std::mem::take(&mut self.tapes);
        let synced = blocking(move || {
            let failed = tapes.values_mut().filter_map(|it| it.sync().err()).last();
            Ok((tapes, failed))
        });
        match synced.await {
            Ok((tapes, None)) => self.tapes = tapes,
            Ok((tapes, Some(error))) => {
                self.tapes = tapes;
                self.tools.counts.archive_error("sync");
                tracing::warn!(%error, "a recording could not be made to last");
            }
            Err(error) => tracing::error!(%error, "recordings were not made to last"),
        }
    }
}

/// Waits for the end of a chore.
async fn work(chore: &mut Option<Chore>) -> Outcome {
    match chore {
        Some(chore) => chore.await,
        None => std::future::pending().await,
    }
}

/// Runs `work` where blocking is allowed.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
