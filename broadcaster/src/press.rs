//! Makes files of sealed slots and has them written to every store.
//!
//! Per room and store a segment is always written before the head that names it. A slot is shown by
//! the origin, and told to the driver, as soon as one store has it; when no store takes it in time,
//! it is shown from memory.

mod aside;
mod cover;
mod erasing;
mod files;
mod heads;
mod job;
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
use kit::task::Tasks;
use proto::head::{GenInfo, Head};
use proto::id::{AppId, RoomId, SlotNo, Term};
use tokio::sync::mpsc;

use crate::archive::{self, Roll};
use crate::bases::{Bases, Storing};
use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::display::{Display, Shown};
use crate::live::Live;
use crate::press::aside::{Aside, Given};
use crate::press::cover::{Cover, Step, Waiting};
use crate::press::erasing::Erased;
pub(crate) use crate::press::files::Printer;
use crate::press::files::files_of;
pub(crate) use crate::press::heads::{gen_bytes, info_of, shelf_of};
use crate::press::heads::{gen_info, head_bytes, reel_of};
pub(crate) use crate::press::job::{Job, Ticket, Tools};
use crate::press::wellness::Wellness;
use crate::press::writer::{Work, Writers};
use crate::purge::Purges;
use crate::room_keys::RoomKeys;
use crate::store::{Ext, File, Stamp};

/// Jobs that wait for the press; the driver stops flushing while more are to come.
pub(crate) const JOBS_MAX: usize = 4096;
/// Slots removed of one room at a time.
const EXPIRED_MAX: usize = 16;
/// How often the slots of rooms that write nothing are looked through.
const SWEEP: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Press {
    clock: Clock,
    counts: Counts,
    display: Arc<Display>,
    live: Arc<Live>,
    keys: Arc<RoomKeys>,
    writers: Writers,
    rooms: BTreeMap<RoomId, Printed>,
    retention_ms: u64,
    store_wait_max: Duration,
    bases: Bases,
    storing: Arc<Storing>,
    printer: Printer,
    aside: Aside,
    /// Which rooms are recorded, where that is done.
    roll: Option<Roll>,
}

/// What the press knows of a room.
#[derive(Debug)]
struct Printed {
    app: AppId,
    term: Term,
    version: u64,
    shelf: Shelf,
    head: Option<Head>,
    /// The playlist, where one is written.
    reel: Option<Reel>,
    erased: Erased,
    given: Given,
    waiting: Waiting,
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
    let Tools { clock, counts, health, display, live, keys, printer, .. } = tools;
    let Tools { stores, storing, archive, mirrors, .. } = tools;
    let purges = Purges::start(&config.purge, &clock, &counts, tasks);
    let retention = Duration::from_secs(config.retention_s.into());
    let wellness = Wellness::new(health, clock.clone(), counts.clone(), stores.len());
    let mirrors = mirrors.into_iter().chain(std::iter::repeat(None));
    let recorder = archive.filter(|_| config.archive_days > 0).map(|archive| archive::Tools {
        clock: clock.clone(),
        counts: counts.clone(),
        archive,
        display: Arc::clone(&display),
        stores: stores.clone(),
        purges: purges.clone(),
        packing: printer.packing.clone(),
        life: archive::days(config.archive_days),
        call_max: millis(config.store_ms_max),
        free_bytes_min: config.free_bytes_min,
    });
    let stores = stores.into_iter().zip(mirrors);
    let press = Press {
        roll: recorder.map(|it| it.start(tasks)),
        writers: Writers::start(config, wellness, stores, (&printer, &purges, &keys), tasks),
        clock,
        counts,
        display,
        live,
        keys,
        rooms: BTreeMap::new(),
        retention_ms: proto::time::millis(retention),
        store_wait_max: millis(config.store_wait_ms_max),
        bases: Bases::default(),
        storing,
        printer,
        aside: Aside::default(),
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
        let mut came = self.keys.came();
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
                Ok(()) = came.changed() => writing.extend(self.catch_up()),
                () = self.clock.sleep_until(sweep) => {
                    self.sweep();
                    sweep = self.clock.mono() + SWEEP;
                }
            }
        }
        self.end_waiting();
        while writing.next().await.is_some() {}
        Ok(())
    }

    fn take(&mut self, job: Job) -> Option<BoxFuture<'static, Option<Ticket>>> {
        match job {
            Job::Adopt { room, app, term, head } => {
                self.adopt(room, app, term, head.map(|it| *it));
                None
            }
            Job::Opened { room, info } => self.step(&room, Step::Opened(info)),
            Job::Seal { ticket, sealed } => {
                let room = ticket.room.clone();
                self.step(&room, Step::Seal(ticket, sealed))
            }
            Job::Erase { room, id, place } => {
                self.erase(&room, id, place);
                None
            }
            Job::Ended { room } => {
                let shelf = self.rooms.get(&room).and_then(|it| it.shelf.newest());
                if let (Some(roll), Some(newest)) = (&self.roll, shelf) {
                    roll.end(&room, (newest.info.gen_no, newest.until));
                }
                None
            }
            Job::Release { room } => {
                if let Some(roll) = &self.roll {
                    roll.release(&room);
                }
                self.rooms.remove(&room);
                self.writers.forget(&room);
                self.display.release(&room);
                self.live.end(&room);
                self.keys.waits(&room, 0);
                None
            }
            Job::Bases(bases) => {
                self.bases.learn(bases, self.clock.mono());
                None
            }
            Job::Catalogue(part) => {
                if !self.aside.hear(part, &self.printer) {
                    self.counts.skipped("control");
                }
                None
            }
        }
    }

    fn adopt(&mut self, room: RoomId, app: AppId, term: Term, head: Option<Head>) {
        let shelf = head.as_ref().map(shelf_of).unwrap_or_default();
        let is_sealed = head.as_ref().is_some_and(|it| it.sealed);
        let writes_hls = self.printer.writes_hls && !is_sealed;
        let reel = writes_hls.then(|| head.as_ref().map(reel_of).unwrap_or_default());
        let (erased, given) = (Erased::default(), Given::default());
        let waiting = Waiting::default();
        let printed = Printed { app, term, version: 0, shelf, head, reel, erased, given, waiting };
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
        let removes = match (info.is_sealed(), self.printer.writes_hls) {
            (true, _) => {
                self.live.end(room);
                printed.reel.take().map(|_| File::Playlist(room.clone()))
            }
            (false, false) => None,
            (false, true) => {
                printed.reel.get_or_insert_default();
                None
            }
        };
        // It lies there already, unless no store took it when it was opened.
        let mut files = vec![(File::Gen(room.clone(), info.gen_no), gen_bytes(&info))];
        if printed.reel.is_some() {
            files.push((File::Init(room.clone()), fragment::init()));
        }
        Some(self.publish(room, files, removes.into_iter().collect(), None))
    }

    fn seal(
        &mut self,
        ticket: Ticket,
        mut sealed: Sealed,
        cover: &Cover,
    ) -> Option<BoxFuture<'static, Option<Ticket>>> {
        let bases = self.bases.recent(self.clock.mono());
        let room = ticket.room.clone();
        let printed = self.rooms.get_mut(&room)?;
        for segment in [&mut sealed.full, &mut sealed.lite] {
            segment.header.bases = bases.to_vec();
            printed.erased.leave(segment);
        }
        let header = &sealed.full.header;
        let info = gen_info(header, sealed.layout);
        if let Some(roll) = &self.roll {
            let place = (header.gen_no, header.slot);
            // A recording is in the clear.
            if sealed.is_archived && !info.is_sealed() {
                roll.keep(&room, place);
            } else {
                roll.end(&room, place);
            }
        }
        printed.shelf.put(info, header.slot, header.end);
        let expired = printed.shelf.expire(self.retention_ms, header.now_ms, EXPIRED_MAX);
        let oldest = printed.shelf.newest().map_or(header.slot, |it| it.oldest.min(header.slot));
        let mut head = head::build(header, oldest, std::mem::take(&mut sealed.recalled));
        head.sealed = info.is_sealed();
        head.bases = self.bases.all().to_vec();
        head.past = printed.shelf.past();
        if let Some(reel) = &mut printed.reel {
            reel.put(&info, header.slot);
            head.hls = reel.place();
        }
        let beside = self.aside.name(printed.app, &self.printer, &mut head, &mut printed.given);
        printed.head = Some(head);
        if header.end == Some(header.slot) && header.next.is_none() {
            self.live.end(&room);
        }

        let erasing = printed.erased.of(&sealed.full);
        let files = self.files(&sealed, cover);
        for (file, bytes) in files.iter().chain(&beside) {
            self.display.keep(file.clone(), bytes.clone());
            if let File::Segment { tier, ext: Ext::Bin, .. } = file {
                self.counts.segment_bytes(*tier, bytes.len());
            }
        }
        let (removes, erasing_max) = (files_of(&room, &expired), self.store_wait_max);
        let published = self.publish(&room, [beside, files].concat(), removes, Some(ticket));
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
