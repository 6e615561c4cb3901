//! A push breaks off near a switch to segments: what was to come by push is asked for.

use proto::frame::{Batch, Path, Resumed, Seal};
use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Role};
use proto::segment::{Header, Segment, ids_crc};
use proto::time::{Mono, Wall};
use sdk_core::merge::{Input, Limits, Merge, Output};

const GEN: Gen = Gen(1);
/// Every slot has that many items; seq and id go on by one.
const ITEMS: u64 = 3;

#[test]
fn slots_that_were_due_by_push_are_fetched_before_the_first_polled_one_is_shown() {
    let mut merge = pushed_until(38);
    merge.handle(Input::Batch(batch(38, 1)), Mono(0));
    merge.handle(hot(40), Mono(0));
    drain(&mut merge);

    // The connection breaks here, and polling goes on.
    merge.handle(segment(40), Mono(0));

    assert_eq!(drain(&mut merge), [fetch(38), fetch(39)]);
    merge.handle(segment(39), Mono(0));
    assert_eq!(drain(&mut merge), []);
    merge.handle(segment(38), Mono(0));
    assert_eq!(shown(&mut merge), (38 * ITEMS + 1..41 * ITEMS).collect::<Vec<_>>());
}

#[test]
fn a_first_polled_slot_that_is_lost_does_not_hide_those_before_it() {
    let mut merge = pushed_until(39);
    merge.handle(hot(40), Mono(0));
    drain(&mut merge);

    merge.handle(Input::Lost { gen_no: GEN, slot: SlotNo(40) }, Mono(0));

    assert_eq!(drain(&mut merge), [fetch(39)]);
    merge.handle(segment(39), Mono(0));
    merge.handle(segment(41), Mono(0));
    let outputs = drain(&mut merge);
    let gaps = outputs.iter().filter(|it| matches!(it, Output::Gap { items: Some(3), .. }));
    assert_eq!(gaps.count(), 1, "{outputs:?}");
}

#[test]
fn a_push_that_ended_with_its_seal_leaves_nothing_to_fetch() {
    let mut merge = pushed_until(40);
    merge.handle(hot(40), Mono(0));
    drain(&mut merge);

    merge.handle(segment(40), Mono(0));

    assert_eq!(shown(&mut merge), (40 * ITEMS..41 * ITEMS).collect::<Vec<_>>());
}

#[test]
fn more_than_may_be_fetched_is_a_gap() {
    let mut merge = pushed_until(10);
    let slots_max = Limits::default().fetch_slots_max as u64;
    merge.handle(Input::Joined { path: Path::Segments, resumed: Resumed::Fresh }, Mono(0));

    merge.handle(segment(10 + slots_max + 1), Mono(0));

    let outputs = drain(&mut merge);
    assert!(matches!(outputs[0], Output::Gap { .. }), "{outputs:?}");
    assert!(outputs[1..].iter().all(|it| matches!(it, Output::Show(_))), "{outputs:?}");
}

/// A merge that was pushed whole slots, from 0 up to `end`, and has shown them.
fn pushed_until(end: u64) -> Merge {
    let mut merge = Merge::new(Limits::default());
    merge.handle(Input::Joined { path: Path::Push, resumed: Resumed::Fresh }, Mono(0));
    for slot in 0..end {
        merge.handle(Input::Batch(batch(slot, ITEMS)), Mono(0));
        let items = placed(slot, ITEMS);
        let crc = ids_crc(items.iter().map(|it| it.item.id));
        let (room, items) = (room(), u32::try_from(items.len()).expect("few items"));
        let seal = Seal { room, gen_no: GEN, slot: SlotNo(slot), items, crc };
        merge.handle(Input::Seal(seal), Mono(0));
    }
    assert_eq!(shown(&mut merge).len() as u64, end * ITEMS);
    merge
}

fn drain(merge: &mut Merge) -> Vec<Output> {
    std::iter::from_fn(|| merge.poll()).collect()
}

/// The ids that are shown; anything else is a mistake.
fn shown(merge: &mut Merge) -> Vec<u64> {
    let id = |output| {
        let Output::Show(shown) = output else { panic!("{output:?}") };
        shown.item.id.0
    };
    drain(merge).into_iter().map(id).collect()
}

const fn fetch(slot: u64) -> Output {
    Output::Fetch { gen_no: GEN, slot: SlotNo(slot) }
}

const fn hot(slot: u64) -> Input {
    Input::Heat { heat: Heat::Hot, gen_no: GEN, slot: SlotNo(slot) }
}

fn batch(slot: u64, items: u64) -> Batch {
    Batch { room: room(), gen_no: GEN, slot: SlotNo(slot), part: 0, items: placed(slot, items) }
}

fn segment(slot: u64) -> Input {
    let header = Header {
        room: room(),
        gen_no: GEN,
        slot: SlotNo(slot),
        tier: Tier::Full,
        epoch_ms: Wall(0),
        interval_ms: 1_000,
        now_ms: Wall(0),
        spread_ms: 0,
        next_tier: None,
        online: 1,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    };
    Input::Segment(Segment { header, items: placed(slot, ITEMS), repeats: Vec::new() })
}

fn placed(slot: u64, items: u64) -> Vec<Placed> {
    let item = |id| Item {
        id: ItemId(id),
        lane: Lane::Comment,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: Wall(0),
        body: Body::Entry,
    };
    let first = slot * ITEMS;
    (first..first + items).map(|it| Placed { seq: Seq(it + 1), item: item(it) }).collect()
}

fn room() -> RoomId {
    RoomId::parse("room").expect("a room's name")
}
