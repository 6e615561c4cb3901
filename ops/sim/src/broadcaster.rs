//! The broadcaster's shell in the world, and what outlives it: `accepted`, `sealed` and the store.

use std::collections::VecDeque;
use std::time::Duration;

use broadcaster_core::Found;
use broadcaster_core::room::{Input, Output, Room, Sealed};
use broadcaster_core::settings::{House, Settings};
use broadcaster_core::timeline::Flush;
use proto::control::RoomFact;
use proto::envelope::RoomEvent;
use proto::head::GenInfo;
use proto::heat::Heat;
use proto::id::{Gen, ItemId, SlotNo};
use proto::item::Item;
use proto::time::Mono;
use proto::verdict::Fate;

use crate::network::{LifeNo, Message, Network};
use crate::store::Store;
use crate::turn::Turn;

/// Few, so that some gifts are deferred to their journal.
const PROTECTED_WAITING_MAX: usize = 12;

pub(crate) struct Broadcaster {
    settings: Settings,
    life: LifeNo,
    stage: Stage,
    /// `accepted` from the first record that is not committed, and which records are done.
    accepted: VecDeque<(Item, Done)>,
    /// `sealed`.
    ledger: Vec<RoomEvent>,
    /// Slots that are complete, until the store has them.
    pending: VecDeque<Pending>,
    pub(crate) store: Store,
}

type Done = bool;

enum Stage {
    /// It runs, and dies after so many more records, if a number is set.
    Up { room: Box<Room>, dies_after: Option<u64> },
    /// Another goes on then.
    Down { until: Mono },
}

struct Pending {
    gen_no: Gen,
    slot: SlotNo,
    ids: Vec<ItemId>,
    crc: u32,
    is_stored: bool,
}

impl Broadcaster {
    pub(crate) fn new(fact: &RoomFact, [hot_hold, cold_hold]: [Duration; 2]) -> Self {
        let protected_waiting_max = PROTECTED_WAITING_MAX;
        let house = House { protected_waiting_max, hot_hold, cold_hold, ..House::default() };
        Self {
            settings: Settings::new(fact, house),
            life: 0,
            stage: Stage::Down { until: Mono(0) },
            accepted: VecDeque::new(),
            ledger: Vec::new(),
            pending: VecDeque::new(),
            store: Store::default(),
        }
    }

    /// A record of `accepted`.
    pub(crate) fn accept(&mut self, item: Item, turn: &mut Turn<'_>) {
        turn.check.admitted(item.id);
        self.accepted.push_back((item.clone(), false));
        self.tell(Input::Item(item), turn);
    }

    /// Links counted so many sessions.
    pub(crate) fn gauge(&mut self, sessions: u32, turn: &mut Turn<'_>) {
        self.tell(Input::Gauge { people: sessions, sessions }, turn);
    }

    pub(crate) fn tick(&mut self, turn: &mut Turn<'_>) {
        match &mut self.stage {
            Stage::Down { until } if *until <= turn.now.mono => self.take_over(turn),
            Stage::Down { .. } => {}
            Stage::Up { room, .. } => {
                if room.deadline().is_some_and(|it| it <= turn.now.mono) {
                    room.tick(turn.now.broadcaster());
                }
            }
        }
        self.drain(turn);
    }

    /// A slot's files reached the store, perhaps from a broadcaster that is dead by now.
    pub(crate) fn store(&mut self, life: LifeNo, sealed: Sealed, turn: &mut Turn<'_>) {
        let (gen_no, slot) = (sealed.full.header.gen_no, sealed.full.header.slot);
        self.store.create(sealed);
        if life == self.life && self.is_up() {
            let mut pending = self.pending.iter_mut();
            if let Some(it) = pending.find(|it| (it.gen_no, it.slot) == (gen_no, slot)) {
                it.is_stored = true;
            }
        }
        while let Some(Pending { gen_no, slot, ids, crc, .. }) =
            self.pending.pop_front_if(|it| it.is_stored)
        {
            let items = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            self.publish(RoomEvent::Seal { gen_no, slot, items, crc }, turn);
            ids.into_iter().for_each(|it| self.done(it));
        }
    }

    /// Dies soon: after one of its next records is on `sealed`, and before links have it.
    pub(crate) fn kill(&mut self, network: &mut Network) {
        if let Stage::Up { dies_after, .. } = &mut self.stage {
            *dies_after = Some(network.draw(0..4));
        }
    }

    /// `sealed` is lost, and the broadcaster with it.
    pub(crate) fn lose_ledger(&mut self, turn: &mut Turn<'_>) {
        self.ledger.clear();
        turn.check.ledger_lost(self.accepted.iter().map(|(it, _)| it.id));
        self.die(turn);
    }

    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.stage, Stage::Up { .. })
    }

    /// Whether everything taken in has its fate and is sealed.
    pub(crate) fn is_idle(&self) -> bool {
        self.accepted.is_empty()
    }

    fn tell(&mut self, input: Input, turn: &mut Turn<'_>) {
        if let Stage::Up { room, .. } = &mut self.stage {
            room.handle(input, turn.now.broadcaster());
        }
        self.drain(turn);
    }

    fn die(&mut self, turn: &mut Turn<'_>) {
        let away = Duration::from_millis(turn.network.draw(200..4000));
        self.stage = Stage::Down { until: turn.now.mono + away };
        self.pending.clear();
    }

    /// Another goes on from `sealed`; if that is lost, with a new gen and what the store knows.
    fn take_over(&mut self, turn: &mut Turn<'_>) {
        self.life += 1;
        let mut found = Found::default();
        self.ledger.iter().cloned().for_each(|it| found.observe(it));
        let head = self.store.head();
        let (head_gen, head_heat) = head.map_or((Gen(0), Heat::Cold), |it| (it.gen_no, it.heat));
        let mut again = Vec::new();
        let mut room;
        if let Some(info) = found.info() {
            room = Room::new(self.settings.clone(), info.gen_no, found.heat());
            let resume = found.resume(info);
            turn.check.taken_over(resume.slot);
            again.extend(resume.flushes.iter().cloned().map(flush_event));
            room.handle(Input::Resume(Box::new(resume)), turn.now.broadcaster());
        } else {
            room = Room::new(self.settings.clone(), head_gen, head_heat);
            room.handle(Input::Known(self.store.known()), turn.now.broadcaster());
        }
        for (item, _) in &self.accepted {
            room.handle(Input::Item(item.clone()), turn.now.broadcaster());
        }
        self.stage = Stage::Up { room: Box::new(room), dies_after: None };
        again.into_iter().for_each(|it| turn.network.send(Message::Downlink(Box::new(it))));
    }

    fn drain(&mut self, turn: &mut Turn<'_>) {
        while let Stage::Up { room, .. } = &mut self.stage
            && let Some(output) = room.poll()
        {
            match output {
                Output::WantGen { after, epoch_ms, interval_ms, layout } => {
                    let gen_no = self.store.create_gen(after);
                    let info = GenInfo { gen_no, epoch_ms, interval_ms, layout };
                    room.handle(Input::Gen(info), turn.now.broadcaster());
                }
                Output::Opened(info) => {
                    let GenInfo { gen_no, epoch_ms, interval_ms, layout } = info;
                    let opened = RoomEvent::Opened { gen_no, epoch_ms, interval_ms, layout };
                    self.publish(opened, turn);
                    turn.network.send(Message::Open(self.life, info));
                }
                Output::Flush(flush) => self.publish(flush_event(flush), turn),
                Output::Fates(told) => {
                    let open = room.open_slot();
                    let fates = told.iter().map(|it| (it.id, it.fate)).collect();
                    self.publish(RoomEvent::Fates { fates }, turn);
                    for told in told {
                        if is_done(&told.fate, open, &self.pending) {
                            self.done(told.id);
                        }
                    }
                }
                Output::Seal(sealed) => {
                    let header = &sealed.full.header;
                    self.pending.push_back(Pending {
                        gen_no: header.gen_no,
                        slot: header.slot,
                        ids: sealed.full.items.iter().map(|it| it.item.id).collect(),
                        crc: sealed.crc,
                        is_stored: false,
                    });
                    turn.network.send(Message::Store(self.life, sealed));
                }
                Output::Heat { heat, gen_no, slot, online } => {
                    let heat = RoomEvent::Heat { heat, gen_no, slot, online };
                    self.publish(heat, turn);
                }
                Output::Deferred(id, _) => self.done(id),
                // The room is never closed, and nothing is erased.
                Output::Ended | Output::Erase { .. } => {}
            }
        }
    }

    /// Puts an event on `sealed`, and only then on `downlink`.
    fn publish(&mut self, event: RoomEvent, turn: &mut Turn<'_>) {
        let Stage::Up { dies_after, .. } = &mut self.stage else {
            return;
        };
        turn.check.published(&event);
        self.ledger.push(event.clone());
        // At least once: what timed out is published again.
        if turn.network.chance(5) {
            self.ledger.push(event.clone());
        }
        turn.network.send(Message::Sealed(Box::new(event.clone())));
        match dies_after {
            Some(0) => return self.die(turn),
            Some(records) => *records -= 1,
            None => {}
        }
        if turn.network.chance(10) {
            turn.network.send(Message::Downlink(Box::new(event.clone())));
        }
        turn.network.send(Message::Downlink(Box::new(event)));
    }

    /// An item has its fate; its record is committed when all before it are done, unless death
    /// comes first.
    fn done(&mut self, id: ItemId) {
        if !self.is_up() {
            return;
        }
        for (_, done) in self.accepted.iter_mut().filter(|(it, _)| it.id == id) {
            *done = true;
        }
        while self.accepted.pop_front_if(|(_, done)| *done).is_some() {}
    }
}

/// Whether an item that is told again is done with: not while its slot is open.
fn is_done(fate: &Fate, open: Option<(Gen, SlotNo)>, pending: &VecDeque<Pending>) -> bool {
    match *fate {
        Fate::Shed { .. } | Fate::Merged { .. } => true,
        Fate::Sealed { gen_no, slot, .. } => {
            let is_pending = pending.iter().any(|it| (it.gen_no, it.slot) == (gen_no, slot));
            !is_pending && open.is_none_or(|it| (gen_no, slot) < it)
        }
    }
}

fn flush_event(flush: Flush) -> RoomEvent {
    let Flush { gen_no, slot, part, at, items } = flush;
    RoomEvent::Flush { gen_no, slot, part, at, items }
}
