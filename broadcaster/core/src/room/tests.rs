//! A room driven in virtual time.

mod any_day;
mod clocks;
mod recall;
mod rest;
mod succession;
mod tempo;

use proto::control::{RoomFact, RoomSettings};
use proto::id::{AppId, ItemId, RoomId, SenderRef, Seq};
use proto::item::{Body, Lane, Repeat, Role, Style};

use super::*;
use crate::pack::crc;
use crate::settings::House;

/// A room with the answers its shell would give, and everything it said.
struct Stage {
    room: Room,
    now: Now,
    gens: u32,
    flushes: Vec<Flush>,
    seals: Vec<Sealed>,
    fates: Vec<Told>,
    deferred: Vec<ItemId>,
    erased: Vec<(ItemId, Option<(Gen, SlotNo)>)>,
    heats: Vec<(Heat, Gen, SlotNo)>,
    opened: Vec<GenInfo>,
    has_ended: bool,
}

const START: u64 = 1_800_000_000_000;

impl Stage {
    fn new(settings: &RoomSettings) -> Self {
        let mut stage = Self::without_gen(settings);
        stage.advance(0);
        stage
    }

    fn without_gen(settings: &RoomSettings) -> Self {
        Self {
            room: Room::new(limits(settings), Gen(0), Heat::Cold),
            now: Now { mono: Mono(0), wall: Wall(START) },
            gens: 0,
            flushes: Vec::new(),
            seals: Vec::new(),
            fates: Vec::new(),
            deferred: Vec::new(),
            erased: Vec::new(),
            heats: Vec::new(),
            opened: Vec::new(),
            has_ended: false,
        }
    }

    fn tell(&mut self, input: Input) {
        self.room.handle(input, self.now);
        self.drain();
    }

    fn comment(&mut self, id: u64) {
        self.tell(Input::Item(item(id, Lane::Comment, id % 5)));
    }

    fn gift(&mut self, id: u64) {
        self.tell(Input::Item(item(id, Lane::HighGift, id % 5)));
    }

    /// Lets time pass, ticking at each deadline.
    fn advance(&mut self, ms: u64) {
        let until = self.now.mono.0 + ms;
        loop {
            self.room.tick(self.now);
            self.drain();
            match self.room.deadline() {
                Some(at) if at.0 <= self.now.mono.0 => {}
                Some(at) if at.0 <= until => self.pass(at.0 - self.now.mono.0),
                Some(_) | None => break,
            }
        }
        self.pass(until - self.now.mono.0);
    }

    /// Lets time pass without a tick, as a process that stands still does.
    fn pass(&mut self, ms: u64) {
        self.now.mono.0 += ms;
        self.now.wall.0 += ms;
    }

    fn drain(&mut self) {
        while let Some(output) = self.room.poll() {
            match output {
                Output::WantGen { after, epoch_ms, interval_ms, layout } => {
                    self.gens = self.gens.max(after.0) + 1;
                    let info = GenInfo { gen_no: Gen(self.gens), epoch_ms, interval_ms, layout };
                    self.room.handle(Input::Gen(info), self.now);
                }
                Output::Opened(info) => self.opened.push(info),
                Output::Flush(flush) => self.flushes.push(flush),
                Output::Fates(told) => self.fates.extend(told),
                Output::Deferred(id, _) => self.deferred.push(id),
                Output::Erase { of, place } => self.erased.push((of, place)),
                Output::Seal(sealed) => self.seals.push(*sealed),
                Output::Heat { heat, gen_no, slot, .. } => self.heats.push((heat, gen_no, slot)),
                Output::Ended => self.has_ended = true,
            }
        }
    }

    fn shown(&self) -> Vec<u64> {
        self.flushes.iter().flat_map(|it| &it.items).map(|it| it.item.id.0).collect()
    }

    fn slots(&self) -> Vec<(u32, u64)> {
        self.seals.iter().map(|it| (it.full.header.gen_no.0, it.full.header.slot.0)).collect()
    }
}

fn limits(settings: &RoomSettings) -> Settings {
    let fact = RoomFact {
        app: AppId(1),
        room: RoomId::parse("room-1").unwrap(),
        version: 1,
        open: true,
        settings: settings.clone(),
    };
    Settings::new(&fact, House::default())
}

fn item(id: u64, lane: Lane, sender: u64) -> Item {
    let text = format!("text {id}");
    let body = match lane {
        Lane::Comment => {
            let (text, style) = (text.into(), Style::default());
            Body::Comment { text, style, media_ms: None, count: 1 }
        }
        Lane::HighGift | Lane::LowGift => Body::Gift { gift_no: 1, count: 1, text },
        Lane::Notice => Body::Notice { text },
    };
    let sender = SenderRef(sender);
    Item { id: ItemId(id), lane, sender, role: Role::Viewer, at: Wall(START), body }
}

#[test]
fn small_gifts_become_one_where_the_room_wants_combos() {
    let gift = |id| {
        let body = Body::Gift { gift_no: 1, count: 2, text: String::new() };
        Input::Item(Item { body, ..item(id, Lane::LowGift, 1) })
    };
    let shown = |combo_ms| {
        let mut stage = Stage::new(&RoomSettings { combo_ms, ..RoomSettings::default() });
        (1..=3).for_each(|id| stage.tell(gift(id)));
        stage.advance(5000);
        let items = stage.flushes.iter().flat_map(|it| &it.items);
        let count = |body: &Body| if let Body::Gift { count, .. } = body { *count } else { 0 };
        items.map(|it| (it.item.id.0, count(&it.item.body))).collect::<Vec<_>>()
    };

    assert_eq!(shown(0), [(1, 2), (2, 2), (3, 2)]);
    assert_eq!(shown(2000), [(1, 6)]);
}

#[test]
fn every_slot_is_sealed_once_also_without_items() {
    let mut stage = Stage::new(&RoomSettings::default());

    stage.advance(5000);

    assert_eq!(stage.slots(), [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]);
    assert!(stage.flushes.is_empty());
}

#[test]
fn a_second_under_a_flood_carries_exactly_its_budget() {
    let mut stage = Stage::new(&RoomSettings::default());

    let mut id = 0;
    for _ in 0..100 {
        for _ in 0..20 {
            id += 1;
            stage.comment(id);
        }
        stage.advance(50);
    }

    let counts: Vec<usize> = stage.seals.iter().map(|it| it.full.items.len()).collect();
    assert_eq!(counts, [50; 5]);
    let per_flush: Vec<usize> = stage.flushes.iter().map(|it| it.items.len()).collect();
    assert_eq!(per_flush, [10; 25]);
}

#[test]
fn a_slot_is_the_concatenation_of_its_flushes() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.comment(1);
    stage.advance(400);
    stage.gift(2);
    stage.advance(1000);

    let full = &stage.seals[0].full;
    let seqs: Vec<(u64, u64)> = full.items.iter().map(|it| (it.seq.0, it.item.id.0)).collect();
    assert_eq!(seqs, [(1, 1), (2, 2)]);
    let parts: Vec<u32> = stage.flushes.iter().map(|it| it.part).collect();
    assert_eq!(parts, [0, 1]);
    assert_eq!(stage.seals[0].crc, crc(full.items.iter().map(|it| &it.item)));
}

#[test]
fn the_next_segment_repeats_gifts_and_recalls_with_their_places() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.gift(1);
    stage.comment(2);
    let body = Body::Tombstone { of: ItemId(2) };
    stage.tell(Input::Item(Item { body, ..item(3, Lane::Notice, 0) }));

    stage.advance(3000);

    let again = |slot: usize| -> Vec<u64> {
        stage.seals[slot].full.repeats.iter().map(|it| it.placed.item.id.0).collect()
    };
    assert_eq!(again(0), [0; 0]);
    assert_eq!(again(1), [1, 3]);
    assert_eq!(again(2), [3]);
    assert_eq!(stage.seals[2].recalled, [ItemId(2)]);
    let first = stage.seals[0].full.items.iter().find(|it| it.item.id == ItemId(1)).unwrap();
    assert_eq!(&stage.seals[1].full.repeats[0].placed, first);
}

#[test]
fn an_id_that_comes_again_is_told_its_place_and_not_shown_again() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.gift(1);
    stage.gift(1);
    stage.advance(1000);

    stage.gift(1);
    stage.advance(1000);

    assert_eq!(stage.shown(), [1]);
    let fate = Fate::Sealed { gen_no: Gen(1), seq: Seq(1), slot: SlotNo(0) };
    assert_eq!(stage.fates, [Told { id: ItemId(1), lane: Lane::HighGift, fate }]);
}

#[test]
fn another_interval_is_announced_and_follows_without_a_hole() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.advance(1000);

    let changed = RoomSettings { interval_ms: 500, ..RoomSettings::default() };
    stage.tell(Input::Open(Box::new(limits(&changed))));
    stage.advance(5000);

    let next = stage.opened[1];
    assert_eq!(next.epoch_ms, Wall(START + 4000));
    assert_eq!(stage.slots()[..5], [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]);
    assert_eq!(stage.seals[2].full.header.next, Some(next));
    assert_eq!(stage.seals[2].full.header.end, Some(SlotNo(3)));
    assert_eq!(stage.seals.len(), 8);
}

#[test]
fn a_closing_room_sheds_comments_and_shows_its_gifts() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.comment(1);
    stage.gift(2);

    stage.tell(Input::Close);
    stage.comment(3);
    stage.gift(4);
    stage.advance(3000);

    let fate = Fate::Shed { reason: Reason::RoomClosed };
    let told = |id| Told { id: ItemId(id), lane: Lane::Comment, fate };
    assert_eq!(stage.fates, [told(1), told(3)]);
    assert_eq!(stage.shown(), [2, 4]);
    assert!(stage.has_ended);
    assert_eq!(stage.slots(), [(1, 0)]);
    assert_eq!(stage.seals[0].full.header.end, Some(SlotNo(0)));
}

#[test]
fn a_room_that_opens_again_has_a_new_gen() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.tell(Input::Close);
    stage.advance(2000);

    stage.tell(Input::Open(Box::new(limits(&RoomSettings::default()))));
    stage.comment(1);
    stage.advance(1000);

    assert_eq!(stage.flushes[0].gen_no, Gen(2));
    assert_eq!(stage.flushes[0].items[0].seq, Seq(1));
}

#[test]
fn comments_wait_for_a_gen_and_are_shed_when_none_comes() {
    let mut stage = Stage::without_gen(&RoomSettings::default());
    stage.room.handle(Input::Item(item(1, Lane::Comment, 0)), stage.now);
    stage.room.handle(Input::Item(item(2, Lane::HighGift, 0)), stage.now);
    stage.room.tick(stage.now);
    assert!(matches!(stage.room.poll(), Some(Output::WantGen { after: Gen(0), .. })));
    assert_eq!(stage.room.deadline(), Some(Mono(3000)));

    stage.pass(3000);
    stage.room.tick(stage.now);
    stage.drain();
    assert_eq!(stage.fates.len(), 1);

    let info = GenInfo { gen_no: Gen(1), epoch_ms: stage.now.wall, interval_ms: 1000, layout: 1 };
    stage.tell(Input::Gen(info));
    stage.advance(200);
    assert_eq!(stage.shown(), [2]);
}

#[test]
fn heat_is_announced_two_slots_ahead_and_segments_are_written_from_then() {
    let settings = RoomSettings { hot_sessions: 100, cold_sessions: 80, ..RoomSettings::default() };
    let mut stage = Stage::new(&settings);
    for second in 0..10_u32 {
        let sessions = if second >= 3 { 100 } else { 99 };
        stage.tell(Input::Gauge { people: 50, sessions });
        stage.advance(1000);
    }

    assert_eq!(stage.heats, [(Heat::Hot, Gen(1), SlotNo(7))]);
    let written: Vec<bool> = stage.seals.iter().map(|it| it.is_written).collect();
    assert_eq!(written, [[false; 5], [true; 5]].concat());
    assert_eq!(stage.seals[6].full.header.online, 50);
}

#[test]
fn a_hot_room_says_so_again_in_every_gen() {
    let mut stage = Stage::without_gen(&RoomSettings::default());
    stage.room = Room::new(limits(&RoomSettings::default()), Gen(0), Heat::Hot);

    stage.advance(1000);

    assert_eq!(stage.heats, [(Heat::Hot, Gen(1), SlotNo(0))]);
    assert!(stage.seals[0].is_written);
}

#[test]
fn another_broadcaster_goes_on_with_seq_and_slots() {
    let mut first = Stage::new(&RoomSettings::default());
    first.gift(1);
    first.advance(1200);
    first.comment(2);
    first.advance(300);

    let info = first.opened[0];
    let mut second = Stage::without_gen(&RoomSettings::default());
    second.now = Now { mono: Mono(77), wall: Wall(first.now.wall.0 + 3000) };
    second.tell(Input::Resume(Box::new(Resume {
        info,
        slot: SlotNo(1),
        next_seq: Seq(3),
        flushes: first.flushes[1..].to_vec(),
        shown: first.flushes.clone(),
        told: Vec::new(),
    })));
    second.gift(1);
    second.comment(2);
    second.comment(3);
    second.advance(1000);

    assert!(second.opened.is_empty());
    assert_eq!(second.slots(), [(1, 1), (1, 2), (1, 3), (1, 4)]);
    let in_slot_1: Vec<u64> = second.seals[0].full.items.iter().map(|it| it.item.id.0).collect();
    assert_eq!(in_slot_1, [2]);
    assert_eq!(second.seals[0].full.repeats[0].placed.item.id, ItemId(1));
    assert_eq!(second.shown(), [3]);
    assert_eq!(second.flushes[0].items[0].seq, Seq(3));
    assert_eq!(second.fates.len(), 2);
}
