//! One room, from the first item or fact until the partition is another's.

use std::collections::VecDeque;
use std::time::Duration;

use broadcaster_core::room::{Sealed, Told};
use broadcaster_core::settings::House;
use broadcaster_core::timeline::Flush;
use broadcaster_core::{Input, Now, Output, Room, Settings};
use proto::control::{Fact, RoomFact};
use proto::envelope::RoomEvent;
use proto::id::{AppId, Gen, ItemId, RoomId, SlotNo, Term};
use proto::item::{Item, Lane};
use proto::limits::ENVELOPE_ENTRIES_MAX;
use proto::time::Mono;
use proto::verdict::{Fate, Reason};

use crate::counts::{Became, Counts};
use crate::opener::Start;
use crate::owned::Want;
use crate::press::{Job, Ticket};

/// Items that wait while a room is opened; more are left to their journal.
const PARKED_MAX: usize = 2 * ENVELOPE_ENTRIES_MAX;
/// Comments among the first of these: the rest is for what has a journal.
const PARKED_COMMENTS_MAX: usize = ENVELOPE_ENTRIES_MAX;
/// Comments beyond these whose senders are told once it is open, 8 bytes each.
const LATE_MAX: usize = 100_000;

/// How long a room that ended still knows what became of its items: journals ask within seconds.
const ENDED_LIFE: Duration = Duration::from_mins(10);

/// A room and what is between it and the outside.
#[derive(Debug)]
pub(crate) struct Driven {
    app: AppId,
    stage: Stage,
    parked: Vec<Item>,
    /// Comments that came while too many waited for the room to be opened.
    late: Vec<ItemId>,
    pending: VecDeque<Pending>,
    /// The running gen, if its segments are sealed.
    sealed: Option<Gen>,
    /// Whether guests may be in it.
    guests: bool,
    /// Others must hear again what is sealed: a former owner may not have told it, or guests are
    /// taken now, or no more.
    retells: bool,
    /// Since when nothing more can come of it.
    ended: Option<Mono>,
}

#[derive(Debug)]
enum Stage {
    Unknown { since: Mono },
    Opening,
    Running(Box<Room>),
}

/// How far a room is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Life {
    /// No fact has named it.
    Unknown { since: Mono },
    /// It is being opened, or runs.
    Known,
}

/// A slot that is complete, but perhaps not stored.
#[derive(Debug)]
struct Pending {
    gen_no: Gen,
    slot: SlotNo,
    crc: u32,
    items: Vec<(ItemId, Lane)>,
    is_stored: bool,
}

/// What a room says.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) events: Vec<RoomEvent>,
    pub(crate) jobs: Vec<Job>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) done: Vec<ItemId>,
    pub(crate) wants: Vec<Want>,
}

impl Driven {
    pub(crate) fn unknown(app: AppId, since: Mono) -> Self {
        let stage = Stage::Unknown { since };
        let (parked, late, pending) = (Vec::new(), Vec::new(), VecDeque::new());
        Self {
            app,
            stage,
            parked,
            late,
            pending,
            sealed: None,
            guests: false,
            retells: false,
            ended: None,
        }
    }

    pub(crate) const fn app(&self) -> AppId {
        self.app
    }

    pub(crate) const fn life(&self) -> Life {
        match self.stage {
            Stage::Unknown { since } => Life::Unknown { since },
            Stage::Opening | Stage::Running(_) => Life::Known,
        }
    }

    pub(crate) fn room(&self) -> Option<&Room> {
        match &self.stage {
            Stage::Running(room) => Some(room),
            Stage::Unknown { .. } | Stage::Opening => None,
        }
    }

    /// Whether stopping now loses nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.room().is_none_or(Room::is_idle)
    }

    /// Whether it ended so long ago that nobody asks for its items' fates again.
    pub(crate) fn is_over(&mut self, now: Mono) -> bool {
        let has_ended = self.pending.is_empty() && self.room().is_some_and(Room::is_ended);
        self.ended = has_ended.then(|| self.ended.unwrap_or(now));
        self.ended.is_some_and(|it| now.since(it) >= ENDED_LIFE)
    }

    /// When to tick it; `look` while no fact has named it.
    pub(crate) fn deadline(&self, look: Mono) -> Mono {
        match &self.stage {
            Stage::Running(room) => room.deadline().unwrap_or(Mono(u64::MAX)),
            Stage::Unknown { .. } => look,
            Stage::Opening => Mono(u64::MAX),
        }
    }

    /// Takes an item, or gives back that it was deferred: too many wait while the room is opened.
    pub(crate) fn accept(&mut self, item: Item, now: Now) -> Option<(ItemId, Lane)> {
        match &mut self.stage {
            Stage::Running(room) => room.handle(Input::Item(item), now),
            Stage::Unknown { .. } | Stage::Opening if self.parked.len() < parked_max(item.lane) => {
                self.parked.push(item);
            }
            Stage::Unknown { .. } | Stage::Opening
                if !item.lane.is_protected() && self.late.len() < LATE_MAX =>
            {
                self.late.push(item.id);
            }
            Stage::Unknown { .. } | Stage::Opening => return Some((item.id, item.lane)),
        }
        None
    }

    /// Takes a fact about the room; true if it must be opened now.
    pub(crate) fn set(&mut self, fact: &RoomFact, house: House, now: Now) -> bool {
        self.app = fact.app;
        self.retells |= self.guests != fact.settings.guests;
        self.guests = fact.settings.guests;
        match &mut self.stage {
            Stage::Unknown { .. } => {
                self.stage = Stage::Opening;
                return true;
            }
            // The newest fact is asked for when it is open.
            Stage::Opening => {}
            Stage::Running(room) if fact.open => {
                room.handle(Input::Open(Box::new(Settings::new(fact, house))), now);
            }
            Stage::Running(room) => room.handle(Input::Close, now),
        }
        false
    }

    /// Goes on; gives the flushes that links may have missed.
    pub(crate) fn start(&mut self, start: Start, settings: Settings, now: Now) -> Vec<RoomEvent> {
        let mut room = Box::new(Room::new(settings, start.newest_gen, start.heat));
        room.handle(Input::Known(start.known), now);
        room.handle(Input::Carry(start.repeats), now);
        let mut again = Vec::new();
        if let Some(resume) = start.resume {
            let gen_no = resume.info.gen_no;
            again.extend(resume.flushes.iter().cloned().map(flush_event));
            self.sealed = resume.info.is_sealed().then_some(resume.info.gen_no);
            self.retells = true;
            room.handle(Input::Resume(Box::new(resume)), now);
            // Pollers were told which gen comes next, and when.
            let next = start.head.filter(|it| it.gen_no == gen_no).and_then(|it| it.next);
            if let Some(next) = next {
                room.handle(Input::Gen(next), now);
            }
        }
        for item in self.parked.drain(..) {
            room.handle(Input::Item(item), now);
        }
        self.stage = Stage::Running(room);
        again
    }

    /// Tells the room something, if it runs.
    pub(crate) fn handle(&mut self, input: Input, now: Now) {
        if let Stage::Running(room) = &mut self.stage {
            room.handle(input, now);
        }
    }

    pub(crate) fn tick(&mut self, now: Now) {
        if let Stage::Running(room) = &mut self.stage
            && room.deadline().is_some_and(|it| it <= now.mono)
        {
            room.tick(now);
        }
    }

    /// A slot lies in a store.
    pub(crate) fn stored(&mut self, gen_no: Gen, slot: SlotNo) {
        let mut pending = self.pending.iter_mut();
        if let Some(it) = pending.find(|it| (it.gen_no, it.slot) == (gen_no, slot)) {
            it.is_stored = true;
        }
    }

    /// Gives up what waits for the room to be opened.
    pub(crate) fn take_waiting(&mut self) -> Vec<(ItemId, Lane)> {
        let parked = self.parked.drain(..).map(|it| (it.id, it.lane));
        parked.chain(self.late.drain(..).map(|it| (it, Lane::Comment))).collect()
    }

    /// Takes what the room says.
    pub(crate) fn collect(&mut self, name: &RoomId, term: Term, counts: &Counts) -> Said {
        let mut said = Said::default();
        while let Stage::Running(room) = &mut self.stage
            && let Some(output) = room.poll()
        {
            self.say(output, name, term, counts, &mut said);
        }
        if self.room().is_some() && !self.late.is_empty() {
            self.tell_late(counts, &mut said);
        }
        if self.room().is_some() && std::mem::take(&mut self.retells) {
            said.facts.extend(self.tell_sealed(self.sealed, name));
        }
        while let Some(pending) = self.pending.pop_front_if(|it| it.is_stored) {
            said.events.push(RoomEvent::Seal {
                gen_no: pending.gen_no,
                slot: pending.slot,
                items: u32::try_from(pending.items.len()).unwrap_or(u32::MAX),
                crc: pending.crc,
            });
            for same in pending.items.chunk_by(|one, other| one.1 == other.1) {
                counts.items(same[0].1, Became::Sealed, same.len());
            }
            said.done.extend(pending.items.iter().map(|it| it.0));
            counts.seals.inc();
        }
        said
    }

    fn tell_late(&mut self, counts: &Counts, said: &mut Said) {
        let (late, reason) = (std::mem::take(&mut self.late), Reason::Late);
        counts.items(Lane::Comment, Became::Shed(reason), late.len());
        for ids in late.chunks(ENVELOPE_ENTRIES_MAX) {
            let fates = ids.iter().map(|&it| (it, Fate::Shed { reason })).collect();
            said.events.push(RoomEvent::Fates { fates });
        }
        said.done.extend(late);
    }

    fn say(&mut self, output: Output, name: &RoomId, term: Term, counts: &Counts, said: &mut Said) {
        match output {
            Output::WantGen { after, epoch_ms, interval_ms, layout } => {
                let room = name.clone();
                said.wants.push(Want::Gen { room, after, epoch_ms, interval_ms, layout });
            }
            Output::Opened(info) => {
                let (gen_no, epoch_ms) = (info.gen_no, info.epoch_ms);
                let (interval_ms, layout) = (info.interval_ms, info.layout);
                said.events.push(RoomEvent::Opened { gen_no, epoch_ms, interval_ms, layout });
                let sealed = info.is_sealed().then_some(gen_no);
                said.facts.extend(self.tell_sealed(sealed, name));
                said.jobs.push(Job::Opened { room: name.clone(), info });
            }
            Output::Flush(flush) => {
                counts.flushes.inc();
                said.events.push(flush_event(flush));
            }
            Output::Fates(told) => {
                let fates = told.iter().map(|it| (it.id, it.fate)).collect();
                said.events.push(RoomEvent::Fates { fates });
                let end = |it: &Told| (it.lane, became(it.fate));
                for same in told.chunk_by(|one, other| end(one) == end(other)) {
                    let (lane, became) = end(&same[0]);
                    counts.items(lane, became, same.len());
                }
                said.done.extend(told.iter().filter(|it| self.is_done(it)).map(|it| it.id));
            }
            Output::Deferred(id, lane) => {
                counts.item(lane, Became::Deferred);
                said.done.push(id);
            }
            Output::Erase { of, place } => {
                said.jobs.push(Job::Erase { room: name.clone(), id: of, place });
            }
            Output::Seal(sealed) => self.seal(*sealed, name, term, said),
            Output::Heat { heat, gen_no, slot, online } => {
                said.events.push(RoomEvent::Heat { heat, gen_no, slot, online });
                let (app, room) = (self.app, name.clone());
                said.facts.push(Fact::Heat { app, room, heat, gen_no, slot });
                tracing::info!(room = %name, ?heat, online, "room changes its heat");
            }
            Output::Ended => {
                said.jobs.push(Job::Ended { room: name.clone() });
                said.facts.extend(self.tell_sealed(None, name));
                tracing::info!(room = %name, "room ended");
            }
        }
    }

    /// Who gives out keys must know which gen is sealed, or that none is any more.
    fn tell_sealed(&mut self, sealed: Option<Gen>, name: &RoomId) -> Option<Fact> {
        let before = std::mem::replace(&mut self.sealed, sealed);
        let (gen_no, ended) = (sealed.or(before)?, sealed.is_none());
        let (app, room, guests) = (self.app, name.clone(), self.guests);
        Some(Fact::Sealed { app, room, gen_no, ended, guests })
    }

    /// Whether nothing more is to be done for a told item. One that is told again while its slot is
    /// open is done with the slot.
    fn is_done(&self, told: &Told) -> bool {
        match told.fate {
            Fate::Sealed { gen_no, slot, .. } => {
                let is_pending = |it: &Pending| (it.gen_no, it.slot) == (gen_no, slot);
                let open = self.room().and_then(Room::open_slot);
                open.is_none_or(|it| (gen_no, slot) < it) && !self.pending.iter().any(is_pending)
            }
            Fate::Shed { .. } | Fate::Merged { .. } => true,
        }
    }

    fn seal(&mut self, sealed: Sealed, name: &RoomId, term: Term, said: &mut Said) {
        let header = &sealed.full.header;
        let (gen_no, slot) = (header.gen_no, header.slot);
        let items = sealed.full.items.iter().map(|it| (it.item.id, it.item.lane)).collect();
        let is_stored = !sealed.is_written;
        self.pending.push_back(Pending { gen_no, slot, crc: sealed.crc, items, is_stored });
        if sealed.is_written {
            let ticket = Ticket { room: name.clone(), term, gen_no, slot };
            said.jobs.push(Job::Seal { ticket, sealed: Box::new(sealed) });
        }
    }
}

const fn parked_max(lane: Lane) -> usize {
    if lane.is_protected() { PARKED_MAX } else { PARKED_COMMENTS_MAX }
}

fn flush_event(flush: Flush) -> RoomEvent {
    let Flush { gen_no, slot, part, at, items } = flush;
    RoomEvent::Flush { gen_no, slot, part, at, items }
}

const fn became(fate: Fate) -> Became {
    match fate {
        Fate::Sealed { .. } => Became::Told,
        Fate::Merged { .. } => Became::Merged,
        Fate::Shed { reason } => Became::Shed(reason),
    }
}
