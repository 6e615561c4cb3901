//! Makes files of sealed slots and has them written to every store.
//!
//! Per room and store a segment is always written before the head that names it. A slot is shown by
//! the origin, and told to the driver, as soon as one store has it; when no store takes it in time,
//! it is shown from memory.

mod erasing;
mod files;
mod wellness;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use broadcaster_core::room::Sealed;
use broadcaster_core::video::fragment;
use broadcaster_core::video::reel::Reel;
use broadcaster_core::{Shelf, head};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use kit::clock::Clock;
use kit::health::Part;
use kit::task::Tasks;
use proto::head::{Base, GenInfo, Head};
use proto::id::{Gen, ItemId, RoomId, SlotNo, Term};
use proto::segment::Header;
use tokio::sync::mpsc;

use crate::bases::{Bases, Storing};
use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::display::{Display, Shown};
use crate::live::Live;
use crate::press::erasing::Erased;
use crate::press::files::{files_of, print};
use crate::press::wellness::Wellness;
use crate::press::writer::{Work, Writers};
use crate::purge::Purges;
use crate::store::{Ext, File, SegmentStore, Stamp};

/// Jobs that wait for the press; the driver stops flushing while more are to come.
pub(crate) const JOBS_MAX: usize = 4096;
/// Slots removed of one room at a time.
const EXPIRED_MAX: usize = 16;
/// How often the slots of rooms that write nothing are looked through.
const SWEEP: Duration = Duration::from_secs(1);

/// What the driver wants done.
#[derive(Debug)]
pub(crate) enum Job {
    /// The room is this process's from now on; `head` is what was shown last.
    Adopt { room: RoomId, term: Term, head: Option<Box<Head>> },
    /// A gen was opened: the one before it ends.
    Opened { room: RoomId, info: GenInfo },
    /// A slot is to be written.
    Seal { ticket: Ticket, sealed: Box<Sealed> },
    /// An item is to be in no file any more; where it stands, if that is known.
    Erase { room: RoomId, id: ItemId, place: Option<(Gen, SlotNo)> },
    /// The room is another's, or is over.
    Release { room: RoomId },
    /// Segments are served from these bases now.
    Bases(Vec<Base>),
}

/// Names a slot that is being written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ticket {
    pub(crate) room: RoomId,
    pub(crate) term: Term,
    pub(crate) gen_no: Gen,
    pub(crate) slot: SlotNo,
}

/// What the press needs.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) health: Part,
    pub(crate) display: Arc<Display>,
    pub(crate) live: Arc<Live>,
    pub(crate) stores: Vec<Arc<dyn SegmentStore>>,
    pub(crate) storing: Arc<Storing>,
    /// The same of single stores, by number, where a base of its own serves one.
    pub(crate) mirrors: Vec<Option<Arc<Storing>>>,
}

#[derive(Debug)]
struct Press {
    clock: Clock,
    counts: Counts,
    display: Arc<Display>,
    live: Arc<Live>,
    writers: Writers,
    rooms: BTreeMap<RoomId, Printed>,
    retention_ms: u64,
    store_wait_max: Duration,
    bases: Bases,
    storing: Arc<Storing>,
    writes_hls: bool,
}

/// What the press knows of a room.
#[derive(Debug)]
struct Printed {
    term: Term,
    version: u64,
    shelf: Shelf,
    head: Option<Head>,
    /// The playlist, where one is written.
    reel: Option<Reel>,
    erased: Erased,
}

impl Printed {
    fn shown(&self) -> Shown {
        Shown {
            version: self.version,
            shelf: self.shelf.clone(),
            head: self.head.as_ref().map(head_bytes),
            playlist: self.reel.as_ref().map(|it| it.playlist().into()),
        }
    }
}

/// Starts the press. It ends when `jobs` is closed and everything was written or given up.
pub(crate) fn start(
    config: &Config,
    tools: Tools,
    jobs: mpsc::Receiver<Job>,
    stored: mpsc::Sender<Ticket>,
    tasks: &mut Tasks,
) {
    let Tools { clock, counts, health, display, live, stores, storing, mirrors } = tools;
    let purges = Purges::start(&config.purge, &clock, &counts, tasks);
    let retention = Duration::from_secs(config.retention_s.into());
    let wellness = Wellness::new(health, clock.clone(), counts.clone(), stores.len());
    let mirrors = mirrors.into_iter().chain(std::iter::repeat(None));
    let stores = stores.into_iter().zip(mirrors);
    let press = Press {
        writers: Writers::start(config, wellness, stores, &purges, tasks),
        clock,
        counts,
        display,
        live,
        rooms: BTreeMap::new(),
        retention_ms: proto::time::millis(retention),
        store_wait_max: millis(config.store_wait_ms_max),
        bases: Bases::default(),
        storing,
        writes_hls: config.hls,
    };
    tasks.spawn("press", press.run(jobs, stored));
}

impl Press {
    async fn run(
        mut self,
        mut jobs: mpsc::Receiver<Job>,
        stored: mpsc::Sender<Ticket>,
    ) -> anyhow::Result<()> {
        let mut writing = FuturesUnordered::new();
        let mut sweep = self.clock.mono() + SWEEP;
        loop {
            tokio::select! {
                Some(ticket) = writing.next() => {
                    if let Some(ticket) = ticket {
                        stored.send(ticket).await.ok();
                    }
                }
                job = jobs.recv() => match job {
                    Some(job) => writing.extend(self.take(job)),
                    None => break,
                },
                () = self.clock.sleep_until(sweep) => {
                    self.sweep();
                    sweep = self.clock.mono() + SWEEP;
                }
            }
        }
        while writing.next().await.is_some() {}
        Ok(())
    }

    fn take(&mut self, job: Job) -> Option<BoxFuture<'static, Option<Ticket>>> {
        match job {
            Job::Adopt { room, term, head } => {
                self.adopt(room, term, head.map(|it| *it));
                None
            }
            Job::Opened { room, info } => self.open(&room, info),
            Job::Seal { ticket, sealed } => self.seal(ticket, *sealed),
            Job::Erase { room, id, place } => {
                self.erase(&room, id, place);
                None
            }
            Job::Release { room } => {
                self.rooms.remove(&room);
                self.writers.forget(&room);
                self.display.release(&room);
                self.live.end(&room);
                None
            }
            Job::Bases(bases) => {
                self.bases.learn(bases, self.clock.mono());
                None
            }
        }
    }

    fn adopt(&mut self, room: RoomId, term: Term, head: Option<Head>) {
        let shelf = head.as_ref().map(shelf_of).unwrap_or_default();
        let reel = self.writes_hls.then(|| head.as_ref().map(reel_of).unwrap_or_default());
        let erased = Erased::default();
        let printed = Printed { term, version: 0, shelf, head, reel, erased };
        self.display.release(&room);
        self.display.show(&room, printed.shown());
        self.rooms.insert(room, printed);
    }

    fn open(&mut self, room: &RoomId, info: GenInfo) -> Option<BoxFuture<'static, Option<Ticket>>> {
        let printed = self.rooms.get_mut(room)?;
        printed.shelf.open(info, SlotNo(0));
        if let Some(head) = printed.head.as_mut().filter(|it| it.gen_no < info.gen_no) {
            head::end(head, Some(info));
        }
        // It lies there already, unless no store took it when it was opened.
        let mut files = vec![(File::Gen(room.clone(), info.gen_no), gen_bytes(&info))];
        if printed.reel.is_some() {
            files.push((File::Init(room.clone()), fragment::init()));
        }
        Some(self.publish(room, files, Vec::new(), None))
    }

    fn seal(
        &mut self,
        ticket: Ticket,
        mut sealed: Sealed,
    ) -> Option<BoxFuture<'static, Option<Ticket>>> {
        let bases = self.bases.recent(self.clock.mono());
        let room = ticket.room.clone();
        let printed = self.rooms.get_mut(&room)?;
        for segment in [&mut sealed.full, &mut sealed.lite] {
            segment.header.bases = bases.to_vec();
            printed.erased.leave(segment);
        }
        let header = &sealed.full.header;
        printed.shelf.put(gen_info(header), header.slot, header.end);
        let expired = printed.shelf.expire(self.retention_ms, header.now_ms, EXPIRED_MAX);
        let oldest = printed.shelf.newest().map_or(header.slot, |it| it.oldest.min(header.slot));
        let mut head = head::build(header, oldest, sealed.recalled);
        head.bases = self.bases.all().to_vec();
        head.past = printed.shelf.past();
        if let Some(reel) = &mut printed.reel {
            reel.put(&gen_info(header), header.slot);
            head.hls = reel.place();
        }
        printed.head = Some(head);
        if header.end == Some(header.slot) && header.next.is_none() {
            self.live.end(&room);
        }

        let print = |it| print(it, self.writes_hls);
        let files: Vec<_> = [&sealed.full, &sealed.lite].into_iter().flat_map(print).collect();
        for (file, bytes) in &files {
            self.display.keep(file.clone(), bytes.clone());
            if let File::Segment { tier, ext: Ext::Bin, .. } = file {
                self.counts.segment_bytes(*tier, bytes.len());
            }
        }
        let erasing = printed.erased.of(&sealed.full);
        let (removes, erasing_max) = (files_of(&room, &expired), self.store_wait_max);
        let published = self.publish(&room, files, removes, Some(ticket));
        let published = async move {
            let ticket = published.await;
            tokio::time::timeout(erasing_max, erasing).await.ok();
            ticket
        };
        Some(published.boxed())
    }

    /// Removes slots of rooms whether they write or not.
    fn sweep(&mut self) {
        self.writers.hand_on();
        let now = self.clock.wall();
        for (room, printed) in &mut self.rooms {
            let expired = printed.shelf.expire(self.retention_ms, now, EXPIRED_MAX);
            if expired.is_empty() {
                continue;
            }
            printed.version += 1;
            self.display.show(room, printed.shown());
            self.writers.send(room, &Work::remove(files_of(room, &expired)));
        }
    }

    /// Has files and the room's head written, then shows them.
    fn publish(
        &mut self,
        room: &RoomId,
        files: Vec<(File, Bytes)>,
        removes: Vec<File>,
        ticket: Option<Ticket>,
    ) -> BoxFuture<'static, Option<Ticket>> {
        let Some(printed) = self.rooms.get_mut(room) else {
            return std::future::ready(ticket).boxed();
        };
        printed.version += 1;
        let shown = printed.shown();
        let stamp = printed.head.as_ref().map(|it| Stamp {
            gen_no: it.next.map_or(it.gen_no, |next| it.gen_no.max(next.gen_no)),
            term: printed.term,
            version: printed.version,
        });
        let named = [
            (File::Head(room.clone()), shown.head.clone()),
            (File::Playlist(room.clone()), shown.playlist.clone()),
        ];
        let heads = named.into_iter().filter_map(|(file, bytes)| Some((file, bytes?, stamp?)));
        let (work, mut first) = Work::new(files, heads.collect(), removes, self.writers.stores());
        self.writers.send(room, &work);
        drop(work);

        let display = Arc::clone(&self.display);
        // Where none works, the next slots need not wait for what the first one showed.
        let is_hopeful = self.writers.are_well();
        let wait_max = if is_hopeful { self.store_wait_max } else { Duration::ZERO };
        let room = room.clone();
        let (clock, storing) = (self.clock.clone(), Arc::clone(&self.storing));
        let sealed = clock.mono();
        async move {
            // Without a store, and when all refuse, nobody is left who could confirm.
            match tokio::time::timeout(wait_max, first.recv()).await {
                Ok(Some(())) => storing.stored(clock.mono().since(sealed)),
                Ok(None) => {}
                Err(_) => {
                    storing.unstored();
                    tracing::debug!(%room, "no store took a slot in time");
                }
            }
            display.show(&room, shown);
            ticket
        }
        .boxed()
    }
}

const fn gen_info(header: &Header) -> GenInfo {
    GenInfo {
        gen_no: header.gen_no,
        epoch_ms: header.epoch_ms,
        interval_ms: header.interval_ms,
        layout: 1,
    }
}

/// The slots that a head names.
pub(crate) fn shelf_of(head: &Head) -> Shelf {
    Shelf::found(info_of(head), head.oldest, head.slot, head.end).behind(&head.past)
}

/// The playlist that a head describes; empty if it names no place.
fn reel_of(head: &Head) -> Reel {
    let found = |place| Reel::found(&info_of(head), head.oldest, head.slot, place);
    head.hls.map(found).unwrap_or_default()
}

const fn info_of(head: &Head) -> GenInfo {
    let Head { gen_no, epoch_ms, interval_ms, .. } = *head;
    GenInfo { gen_no, epoch_ms, interval_ms, layout: 1 }
}

fn head_bytes(head: &Head) -> Bytes {
    serde_json::to_vec(head).expect("a head has string keys only").into()
}

/// What lies in a gen's own file.
pub(crate) fn gen_bytes(info: &GenInfo) -> Bytes {
    serde_json::to_vec(info).expect("a gen has string keys only").into()
}
