//! A room whose clock is set, or whose process stood still.

use super::*;

#[test]
fn a_clock_set_forward_a_little_is_filled_with_empty_slots() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.advance(1000);

    stage.now.wall.0 += 5000;
    stage.comment(1);
    stage.advance(1000);

    assert_eq!(stage.slots(), (0..7).map(|slot| (1, slot)).collect::<Vec<_>>());
    assert_eq!(stage.shown(), [1]);
}

#[test]
fn a_clock_set_far_forward_opens_a_new_gen() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.comment(1);
    stage.advance(1500);

    stage.now.wall.0 += 3_600_000;
    stage.advance(1000);

    assert_eq!(stage.slots()[..2], [(1, 0), (1, 1)]);
    assert_eq!(stage.seals[1].full.header.end, Some(SlotNo(1)));
    assert_eq!(stage.opened.len(), 2);
    assert!(stage.slots().len() <= 4, "{:?}", stage.slots());
}

#[test]
fn a_clock_set_back_a_little_stops_nothing() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.advance(5000);

    stage.now.wall.0 -= 8000;
    stage.advance(10_000);

    assert_eq!(stage.opened.len(), 1);
    assert!(stage.slots().len() >= 14, "{:?}", stage.slots());
    assert!(stage.slots().iter().enumerate().all(|(at, it)| it.1 == at as u64));
}

#[test]
fn a_clock_set_far_back_opens_a_new_gen() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.advance(5000);

    stage.now.wall.0 -= 3_600_000;
    stage.comment(1);
    stage.advance(2000);

    assert_eq!(stage.opened.len(), 2);
    assert_eq!(stage.shown(), [1]);
}

#[test]
fn a_process_that_stood_still_catches_up() {
    let mut stage = Stage::new(&RoomSettings::default());
    stage.comment(1);
    stage.pass(10_500);
    stage.advance(1000);

    assert_eq!(stage.slots(), (0..11).map(|slot| (1, slot)).collect::<Vec<_>>());
    assert_eq!(stage.shown(), [1]);
    assert_eq!(stage.flushes[0].slot, SlotNo(9));
}
