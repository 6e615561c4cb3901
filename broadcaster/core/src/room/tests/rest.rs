//! Rooms in which nobody is and nothing happens.

use proto::control::Segments;

use super::*;

/// Seconds of the default rest, and some.
const REST_S: u32 = 305;

#[test]
fn an_empty_and_quiet_room_rests_until_something_is_to_be_shown() {
    let mut stage = Stage::new(&RoomSettings::default());
    stay(&mut stage, 0, REST_S);
    let sealed = stage.seals.len();
    let last = &stage.seals[sealed - 1].full.header;
    assert_eq!((last.end, &last.next), (Some(last.slot), &None));

    stay(&mut stage, 0, 100);
    assert_eq!((stage.seals.len(), stage.room.deadline()), (sealed, None));

    stage.comment(1);
    stage.advance(400);
    assert_eq!(stage.shown(), [1]);
    assert_eq!(stage.opened.iter().map(|it| it.gen_no).collect::<Vec<_>>(), [Gen(1), Gen(2)]);
}

#[test]
fn a_resting_room_wakes_when_somebody_comes_and_rests_again() {
    let mut stage = Stage::new(&RoomSettings::default());
    stay(&mut stage, 0, REST_S);

    stay(&mut stage, 1, REST_S);
    assert_eq!(stage.opened.len(), 2);
    assert!(stage.room.deadline().is_some());

    stay(&mut stage, 0, REST_S);
    assert_eq!(stage.room.deadline(), None);
}

#[test]
fn a_room_that_writes_segments_does_not_rest() {
    let always = RoomSettings { segments: Segments::Always, ..RoomSettings::default() };
    let mut stage = Stage::new(&always);

    stay(&mut stage, 0, 2 * REST_S);

    assert_eq!(stage.opened.len(), 1);
    assert_eq!(stage.seals.len(), usize::try_from(2 * REST_S).unwrap());
}

#[test]
fn a_resting_room_can_be_closed_and_changed() {
    let mut stage = Stage::new(&RoomSettings::default());
    stay(&mut stage, 0, REST_S);
    let always = RoomSettings { segments: Segments::Always, ..RoomSettings::default() };

    stage.tell(Input::Open(Box::new(limits(&always))));
    stage.advance(3000);
    assert!(stage.seals.last().unwrap().is_written);

    stage.tell(Input::Open(Box::new(limits(&RoomSettings::default()))));
    stay(&mut stage, 0, REST_S);
    assert!(!stage.room.is_ended());
    stage.tell(Input::Close);
    assert!(stage.has_ended && stage.room.is_ended());
}

/// So many sessions are there for so many seconds.
fn stay(stage: &mut Stage, sessions: u32, seconds: u32) {
    for _ in 0..seconds {
        stage.tell(Input::Gauge { people: sessions, sessions });
        stage.advance(1000);
    }
}
