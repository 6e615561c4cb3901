//! What is recalled before, while and after it is shown.

use super::*;

const RECALLED: Fate = Fate::Shed { reason: Reason::Recalled };

fn recall(stage: &mut Stage, id: u64, of: u64) {
    let body = Body::Tombstone { of: ItemId(of) };
    stage.tell(Input::Item(Item { body, ..item(id, Lane::Notice, 0) }));
}

#[test]
fn what_waits_is_not_shown_and_its_sender_is_told() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.gift(1);
    stage.comment(2);

    recall(&mut stage, 3, 1);
    recall(&mut stage, 4, 2);
    stage.advance(1000);

    assert_eq!(stage.shown(), [3, 4]);
    let told = |id, lane| Told { id: ItemId(id), lane, fate: RECALLED };
    assert_eq!(stage.fates, [told(1, Lane::HighGift), told(2, Lane::Comment)]);
}

#[test]
fn what_comes_after_its_recall_is_not_shown() {
    let mut stage = Stage::new(&RoomSettings::default());
    recall(&mut stage, 3, 1);
    stage.advance(5000);

    stage.gift(1);
    stage.advance(1000);

    assert_eq!(stage.shown(), [3]);
    assert_eq!(stage.fates, [Told { id: ItemId(1), lane: Lane::HighGift, fate: RECALLED }]);
}

#[test]
fn a_shown_gift_is_not_repeated_once_it_is_recalled() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.gift(1);
    stage.advance(500);

    recall(&mut stage, 3, 1);
    stage.advance(2500);

    let again = |slot: usize| -> Vec<u64> {
        stage.seals[slot].full.repeats.iter().map(|it| it.placed.item.id.0).collect()
    };
    assert_eq!(stage.shown(), [1, 3]);
    assert_eq!((again(1), again(2)), (vec![3], vec![3]));
}

#[test]
fn a_gift_of_the_slot_before_is_not_repeated_beside_its_recall() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.gift(1);
    stage.advance(1000);

    recall(&mut stage, 3, 1);
    stage.advance(1000);

    let repeats = &stage.seals[1].full.repeats;
    assert_eq!(repeats.len(), 0, "{repeats:?}");
    assert_eq!(stage.seals[1].recalled, [ItemId(1)]);
}

#[test]
fn an_erasure_is_a_tombstone_to_viewers_and_names_the_slot_to_the_shell() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.gift(1);
    stage.advance(1500);
    let erasure =
        |id, of| Item { body: Body::Erasure { of: ItemId(of) }, ..item(id, Lane::Notice, 0) };

    stage.tell(Input::Item(erasure(3, 1)));
    stage.tell(Input::Item(erasure(4, 99)));
    stage.advance(500);
    stage.tell(Input::Item(erasure(3, 1)));

    let place = Some((Gen(1), SlotNo(0)));
    assert_eq!(stage.erased, [(ItemId(1), place), (ItemId(99), None), (ItemId(1), place)]);
    let bodies: Vec<&Body> =
        stage.flushes.iter().flat_map(|it| &it.items).map(|it| &it.item.body).skip(1).collect();
    let tombstone = |of| Body::Tombstone { of: ItemId(of) };
    assert_eq!(bodies, [&tombstone(1), &tombstone(99)]);
}

#[test]
fn a_comment_that_waits_for_a_gen_is_late_and_not_over_the_budget() {
    let mut room = Room::new(limits(&RoomSettings::default()), Gen(0), Heat::Cold);
    let now = |mono| Now { mono: Mono(mono), wall: Wall(START + mono) };
    room.handle(Input::Item(item(1, Lane::Comment, 1)), now(0));

    room.tick(now(3000));

    let told = std::iter::from_fn(|| room.poll())
        .find_map(|it| if let Output::Fates(told) = it { Some(told) } else { None });
    let fate = Fate::Shed { reason: Reason::Late };
    assert_eq!(told, Some(vec![Told { id: ItemId(1), lane: Lane::Comment, fate }]));
}

#[test]
fn what_an_earlier_gen_showed_last_is_repeated_for_a_minute_unless_it_is_recalled() {
    let mut stage = Stage::without_gen(&RoomSettings::default());
    let carried = |id, seq| Repeat {
        gen_no: Gen(1),
        placed: Placed { seq: Seq(seq), item: item(id, Lane::HighGift, 0) },
    };
    stage.tell(Input::Carry(vec![carried(1, 8), carried(2, 9)]));

    stage.advance(10_000);
    recall(&mut stage, 3, 1);
    stage.advance(55_000);

    let again = |slot: usize| -> Vec<u64> {
        stage.seals[slot].full.repeats.iter().map(|it| it.placed.item.id.0).collect()
    };
    assert_eq!((again(0), again(8), again(12)), (vec![1, 2], vec![1, 2], vec![2, 3]));
    assert_eq!(again(63), [3], "a minute is over");
}
