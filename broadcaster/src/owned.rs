//! One partition of `accepted` that this process owns, and the rooms in it.

mod driven;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use broadcaster_core::room::Told;
use broadcaster_core::settings::House;
use broadcaster_core::{Found, Input, Now, Settings};
use bus::{Offset, Record};
use proto::control::RoomFact;
use proto::envelope::{AcceptedBatch, RoomEntry, RoomEvent};
use proto::head::GenInfo;
use proto::id::{Gen, RoomId, Term};
use proto::limits::ENVELOPE_ENTRIES_MAX;
use proto::time::{Mono, Wall};
use proto::verdict::{Fate, Reason};

use crate::counts::{Became, Counts};
use crate::crowd::Crowd;
use crate::ledger::Ledger;
use crate::opener::Start;
use crate::owned::driven::{Driven, Life};
use crate::parcel::Parcel;
use crate::press::{Job, Ticket};

/// Items of a room that nobody has heard of wait so long for its fact.
const UNKNOWN_MAX: Duration = Duration::from_secs(5);
/// How often such rooms are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// A partition and its rooms.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) term: Term,
    pub(crate) ledger: Ledger,
    /// What was not published yet; nothing more happens before.
    pub(crate) parcel: Parcel,
    /// What `sealed` told of rooms that are not open yet; `None` while it is being read.
    found: Option<BTreeMap<RoomId, Found>>,
    rooms: BTreeMap<RoomId, Driven>,
    next_tick: Mono,
    /// When the first of its rooms has to have its turn.
    due: Mono,
}

/// What must be read or created for a room.
#[derive(Debug)]
pub(crate) enum Want {
    /// Find out how it goes on.
    Open { room: RoomId, found: Option<Box<Found>> },
    /// Create a gen.
    Gen { room: RoomId, after: Gen, epoch_ms: Wall, interval_ms: u32, layout: u32 },
}

impl Owned {
    pub(crate) fn new(term: Term, committed: Offset) -> Self {
        Self {
            term,
            ledger: Ledger::new(committed),
            parcel: Parcel::default(),
            found: None,
            rooms: BTreeMap::new(),
            next_tick: Mono(0),
            due: Mono(u64::MAX),
        }
    }

    /// When something is due.
    pub(crate) const fn next_tick(&self) -> Mono {
        self.next_tick
    }

    /// How many rooms are running.
    pub(crate) fn running(&self) -> usize {
        self.rooms.values().filter(|it| it.room().is_some()).count()
    }

    /// Whether every item has its fate and every slot with items is sealed.
    pub(crate) fn is_idle(&self) -> bool {
        self.parcel.is_empty() && self.rooms.values().all(Driven::is_idle)
    }

    /// Whether a room is being opened, runs, or has just ended.
    pub(crate) fn drives(&self, room: &RoomId) -> bool {
        self.rooms.contains_key(room)
    }

    /// Whether a room runs whose gen is not sealed.
    pub(crate) fn shows_openly(&self, room: &RoomId) -> bool {
        self.rooms.get(room).and_then(Driven::room).is_some_and(|it| !it.is_sealed())
    }

    /// Its rooms.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = &RoomId> {
        self.rooms.keys()
    }

    /// Takes records of `accepted`; gives the rooms of which nothing was known.
    pub(crate) fn accept(
        &mut self,
        records: Vec<Record>,
        now: Now,
        counts: &Counts,
    ) -> Vec<RoomId> {
        let mut new = Vec::new();
        for record in records {
            let Ok(batch) = AcceptedBatch::decode(&record.value) else {
                counts.skipped("accepted");
                self.ledger.take(record.offset, std::iter::empty());
                continue;
            };
            let ids = batch.entries.iter().map(|it| it.item.id);
            self.ledger.take(record.offset, ids);
            for accepted in batch.entries {
                let driven = match self.rooms.entry(accepted.room) {
                    Entry::Occupied(there) => there.into_mut(),
                    Entry::Vacant(place) => {
                        new.push(place.key().clone());
                        place.insert(Driven::unknown(accepted.app, now.mono))
                    }
                };
                if let Some((id, lane)) = driven.accept(accepted.item, now) {
                    counts.item(lane, Became::Deferred);
                    self.ledger.done(id);
                }
                let due = driven.deadline(now.mono + LOOK);
                self.next_tick = self.next_tick.min(due);
                // What is due since before it came could not have been done before.
                self.due = self.due.min(due.max(now.mono));
            }
        }
        new
    }

    /// `sealed` has been read: rooms may open.
    pub(crate) fn know(&mut self, found: BTreeMap<RoomId, Found>) {
        self.found = Some(found);
    }

    /// Opens, changes or closes a room.
    pub(crate) fn set(&mut self, fact: &RoomFact, house: House, now: Now) -> Option<Want> {
        let found = self.found.as_mut()?;
        if !fact.open && !self.rooms.contains_key(&fact.room) && !found.contains_key(&fact.room) {
            return None;
        }
        let unknown = || Driven::unknown(fact.app, now.mono);
        let driven = self.rooms.entry(fact.room.clone()).or_insert_with(unknown);
        self.next_tick = Mono(0);
        if driven.set(fact, house, now) {
            let found = found.remove(&fact.room).map(Box::new);
            return Some(Want::Open { room: fact.room.clone(), found });
        }
        None
    }

    /// A room goes on; its segments are this process's from now on.
    pub(crate) fn start(
        &mut self,
        room: &RoomId,
        start: Start,
        fact: &RoomFact,
        house: House,
        now: Now,
    ) {
        let Some(driven) = self.rooms.get_mut(room) else {
            return;
        };
        let head = start.head.clone().map(Box::new);
        let mut entries = driven.start(start, Settings::new(fact, house), now);
        if !fact.open {
            driven.handle(Input::Close, now);
        }
        let job = Job::Adopt { room: room.clone(), app: fact.app, term: self.term, head };
        self.parcel.jobs.insert(0, job);
        let entries =
            entries.drain(..).map(|event| RoomEntry { app: fact.app, room: room.clone(), event });
        self.parcel.pack(entries.collect());
        self.next_tick = Mono(0);
    }

    /// Items of a room that were shown before `sealed` begins.
    pub(crate) fn recall(&mut self, room: &RoomId, known: Vec<Told>, now: Now) {
        if let Some(driven) = self.rooms.get_mut(room) {
            driven.handle(Input::Known(known), now);
        }
    }

    /// A gen was created.
    pub(crate) fn begin(&mut self, room: &RoomId, info: GenInfo, now: Now) {
        if let Some(driven) = self.rooms.get_mut(room) {
            driven.handle(Input::Gen(info), now);
            self.next_tick = Mono(0);
        }
    }

    /// A slot lies in a store.
    pub(crate) fn stored(&mut self, ticket: &Ticket) {
        if ticket.term == self.term
            && let Some(driven) = self.rooms.get_mut(&ticket.room)
        {
            driven.stored(ticket.gen_no, ticket.slot);
            self.next_tick = Mono(0);
        }
    }

    /// Tells every room its people and sessions.
    pub(crate) fn gauge(&mut self, crowd: &Crowd, now: Now) {
        for (room, driven) in &mut self.rooms {
            let (people, sessions) = crowd.count(room);
            driven.handle(Input::Gauge { people, sessions }, now);
        }
        self.next_tick = Mono(0);
    }

    /// Ticks the rooms that are due and collects what they say.
    pub(crate) fn turn(&mut self, now: Now, counts: &Counts) -> Vec<Want> {
        let mut entries = Vec::new();
        let mut wants = Vec::new();
        let (mut lost, mut over) = (Vec::new(), Vec::new());
        if self.due <= now.mono {
            counts.tick_late.observe(now.mono.since(self.due).as_secs_f64());
        }
        self.next_tick = Mono(u64::MAX);
        for (room, driven) in &mut self.rooms {
            if let Life::Unknown { since } = driven.life()
                && self.found.is_some()
                && now.mono.since(since) >= UNKNOWN_MAX
            {
                lost.push(room.clone());
                continue;
            }
            driven.tick(now);
            let mut said = driven.collect(room, self.term, counts);
            let app = driven.app();
            let entry = |event| RoomEntry { app, room: room.clone(), event };
            entries.extend(said.events.drain(..).map(entry));
            self.parcel.jobs.append(&mut said.jobs);
            self.parcel.facts.append(&mut said.facts);
            self.parcel.done.append(&mut said.done);
            wants.append(&mut said.wants);
            self.next_tick = self.next_tick.min(driven.deadline(now.mono + LOOK));
            if driven.is_over(now.mono) {
                over.push(room.clone());
            }
        }
        for room in lost {
            entries.extend(self.give_up(&room, counts));
        }
        for room in over {
            self.rooms.remove(&room);
            self.parcel.jobs.push(Job::Release { room });
        }
        self.due = self.next_tick;
        self.parcel.pack(entries);
        wants
    }

    /// Sheds the items of a room that does not exist.
    fn give_up(&mut self, room: &RoomId, counts: &Counts) -> Vec<RoomEntry> {
        let Some(mut driven) = self.rooms.remove(room) else { return Vec::new() };
        let reason = Reason::NoRoom;
        let mut fates = Vec::new();
        for (id, lane) in driven.take_waiting() {
            counts.item(lane, Became::Shed(reason));
            self.parcel.done.push(id);
            fates.push((id, Fate::Shed { reason }));
        }
        let entry = |fates: &[_]| RoomEntry {
            app: driven.app(),
            room: room.clone(),
            event: RoomEvent::Fates { fates: fates.to_vec() },
        };
        fates.chunks(ENVELOPE_ENTRIES_MAX).map(entry).collect()
    }
}
