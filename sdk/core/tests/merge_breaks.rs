//! Single cases of `Merge`: pushes that break off or come early near a switch, losses, gens, gifts.

use proto::frame::{Batch, Path, Place, Resumed, Seal};
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

#[test]
fn slots_are_asked_for_beyond_the_end_of_a_gen_that_is_known() {
    let mut merge = pushed_until(38);
    merge.handle(hot(42), Mono(0));
    merge.handle(Input::Ended { gen_no: GEN, slot: SlotNo(40) }, Mono(0));

    let Input::Segment(mut next) = segment(0) else { panic!("a segment") };
    next.header.gen_no = Gen(2);
    next.items.iter_mut().for_each(|it| it.item.id.0 += 1_000);
    merge.handle(Input::Segment(next), Mono(0));

    assert_eq!(drain(&mut merge), [fetch(38), fetch(39)]);
    merge.handle(segment(38), Mono(0));
    merge.handle(segment(39), Mono(0));
    let expected = (38 * ITEMS..40 * ITEMS).chain(1_000..1_000 + ITEMS);
    assert_eq!(shown(&mut merge), expected.collect::<Vec<_>>(), "and no gap");
}

#[test]
fn a_rejoin_that_recovers_shows_nothing_before_what_comes_again() {
    let mut merge = polled_until_5_then_pushed_from_7();

    let resumed = Resumed::Recovered { items: 6 };
    merge.handle(Input::Joined { path: Path::Push, resumed }, Mono(0));
    assert_eq!(drain(&mut merge), []);
    for slot in [6, 7] {
        merge.handle(Input::Batch(batch(slot, ITEMS)), Mono(0));
        merge.handle(seal(slot), Mono(0));
    }

    assert_eq!(shown(&mut merge), (6 * ITEMS..8 * ITEMS).collect::<Vec<_>>());
}

#[test]
fn a_rejoin_with_a_gap_fetches_what_the_schedule_was_to_bring() {
    let mut merge = polled_until_5_then_pushed_from_7();
    let place = |seq| Place { gen_no: GEN, seq: Seq(seq) };

    let resumed = Resumed::Gap { from: place(19), to: place(30) };
    merge.handle(Input::Joined { path: Path::Push, resumed }, Mono(0));

    assert_eq!(drain(&mut merge), [fetch(6)]);
    merge.handle(segment(6), Mono(0));
    assert_eq!(shown(&mut merge), (6 * ITEMS..8 * ITEMS).collect::<Vec<_>>());
}

#[test]
fn nothing_is_awaited_beyond_the_end_of_a_gen() {
    let mut merge = Merge::new(Limits::default());
    merge.handle(Input::Joined { path: Path::Segments, resumed: Resumed::Fresh }, Mono(0));
    merge.handle(segment(5), Mono(0));
    merge.handle(cold(8), Mono(0));

    let Input::Segment(mut last) = segment(6) else { panic!("a segment") };
    last.header.end = Some(SlotNo(6));
    merge.handle(Input::Segment(last), Mono(0));
    let next = Batch { gen_no: Gen(2), ..batch(0, ITEMS) };
    merge.handle(Input::Batch(rename(next, 100)), Mono(0));

    let expected = (5 * ITEMS..7 * ITEMS).chain(100..100 + ITEMS);
    assert_eq!(shown(&mut merge), expected.collect::<Vec<_>>());
}

#[test]
fn pushes_that_come_before_the_news_of_their_switch_are_shown_behind_the_polled_slots() {
    let mut merge = Merge::new(Limits::default());
    merge.handle(Input::Joined { path: Path::Segments, resumed: Resumed::Fresh }, Mono(0));
    merge.handle(segment(5), Mono(0));
    merge.handle(Input::Batch(batch(7, 1)), Mono(0));
    merge.handle(Input::Batch(batch(8, ITEMS)), Mono(0));

    merge.handle(cold(7), Mono(0));
    merge.handle(segment(6), Mono(0));
    merge.handle(Input::Batch(batch(7, ITEMS)), Mono(0));

    assert_eq!(shown(&mut merge), (5 * ITEMS..9 * ITEMS).collect::<Vec<_>>());
}

#[test]
fn what_was_skipped_for_a_slow_session_excuses_no_later_loss() {
    let mut merge = pushed_until(10);
    merge.handle(Input::Skipped { items: 2 }, Mono(0));
    merge.handle(Input::Batch(batch(11, ITEMS)), Mono(0));
    merge.handle(seal(11), Mono(0));
    merge.handle(Input::Batch(batch(12, 1)), Mono(0));
    drain(&mut merge);

    merge.handle(seal(12), Mono(0));

    assert_eq!(drain(&mut merge), [fetch(12)]);
}

#[test]
fn a_new_gen_goes_on_and_an_id_of_the_old_one_is_not_shown_again() {
    let mut merge = pushed_until(2);
    let mut first = batch(0, ITEMS);
    first.gen_no = Gen(2);
    let mut replayed = placed(1, 1).remove(0);
    replayed.seq = Seq(ITEMS + 1);
    first.items.push(replayed);

    merge.handle(Input::Batch(rename(first, 100)), Mono(0));
    // The last push of the old gen comes late, as after a takeover.
    merge.handle(Input::Batch(batch(1, ITEMS)), Mono(0));

    assert_eq!(shown(&mut merge), [100, 101, 102]);
    assert_eq!(merge.cursor().map(|it| (it.gen_no, it.seq)), Some((Gen(2), Seq(ITEMS + 1))));
}

#[test]
fn a_gift_that_comes_after_its_turn_is_shown_and_a_comment_is_not() {
    let mut merge = pushed_until(10);
    let mut late = batch(9, 0);
    let [mut gift, mut comment] = [placed(9, 1).remove(0), placed(9, 2).remove(1)];
    gift.item.id = ItemId(1_000);
    gift.item.lane = Lane::HighGift;
    comment.item.id = ItemId(1_001);
    late.items = vec![gift, comment];

    merge.handle(Input::Batch(late), Mono(0));

    assert_eq!(shown(&mut merge), [1_000]);
}

#[test]
fn a_slot_that_never_comes_is_waited_for_so_long_and_told() {
    let limits = Limits::default();
    let mut merge = pushed_until(10);
    merge.handle(Input::Batch(batch(10, 1)), Mono(0));
    merge.handle(seal(10), Mono(0));
    merge.handle(Input::Batch(batch(11, 1)), Mono(0));
    assert_eq!(drain(&mut merge).pop(), Some(fetch(10)));

    let deadline = merge.deadline().expect("it waits");
    merge.tick(deadline);

    assert_eq!(deadline, Mono(0) + limits.slot_wait_max);
    let outputs = drain(&mut merge);
    assert!(matches!(outputs[0], Output::Gap { items: Some(2), .. }), "{outputs:?}");
    assert!(matches!(outputs[1], Output::Show(_)), "{outputs:?}");
    assert_eq!(merge.deadline(), None);
}

/// A merge that has shown slot 5 from its segment, awaits slot 6, and was pushed slot 7.
fn polled_until_5_then_pushed_from_7() -> Merge {
    let mut merge = Merge::new(Limits::default());
    merge.handle(Input::Joined { path: Path::Segments, resumed: Resumed::Fresh }, Mono(0));
    merge.handle(segment(5), Mono(0));
    merge.handle(cold(7), Mono(0));
    merge.handle(Input::Batch(batch(7, ITEMS)), Mono(0));
    merge.handle(seal(7), Mono(0));
    assert_eq!(shown(&mut merge), (5 * ITEMS..6 * ITEMS).collect::<Vec<_>>());
    merge
}

/// A merge that was pushed whole slots, from 0 up to `end`, and has shown them.
fn pushed_until(end: u64) -> Merge {
    let mut merge = Merge::new(Limits::default());
    merge.handle(Input::Joined { path: Path::Push, resumed: Resumed::Fresh }, Mono(0));
    for slot in 0..end {
        merge.handle(Input::Batch(batch(slot, ITEMS)), Mono(0));
        merge.handle(seal(slot), Mono(0));
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

const fn cold(slot: u64) -> Input {
    Input::Heat { heat: Heat::Cold, gen_no: GEN, slot: SlotNo(slot) }
}

fn seal(slot: u64) -> Input {
    let items = placed(slot, ITEMS);
    let crc = ids_crc(items.iter().map(|it| it.item.id));
    let (room, items) = (room(), u32::try_from(items.len()).expect("few items"));
    Input::Seal(Seal { room, gen_no: GEN, slot: SlotNo(slot), items, crc })
}

/// The same flush with other ids for its first items, from `id` on.
fn rename(mut batch: Batch, id: u64) -> Batch {
    for (placed, id) in batch.items.iter_mut().zip(id..id + ITEMS) {
        placed.item.id = ItemId(id);
    }
    batch
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
