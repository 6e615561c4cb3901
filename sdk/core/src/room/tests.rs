//! A room through its four verbs, where no other file of tests looks.

use proto::close::CloseCode;

use super::*;

#[test]
fn a_viewer_of_a_silent_room_comes_back_behind_what_was_there_before() {
    let name = RoomId::parse("room").unwrap();
    let draws = Draws { phase: 0.0, settle: 0.0 };
    let mut room = Room::new(name.clone(), Path::Auto, Tier::Full, draws, Limits::default());
    let place = |seq| Some(Place { gen_no: Gen(1), seq: Seq(seq) });

    assert_eq!(room.join().resume, None);
    let seal = Seal { room: name, gen_no: Gen(1), slot: SlotNo(5), items: 0, crc: 0 };
    room.handle(Input::Seal(seal), Mono(0));
    assert_eq!(room.join().resume, place(0));
    room.handle(Input::Joined(pushed(place(7))), Mono(0));
    assert_eq!(room.join().resume, place(7));
}

#[test]
fn those_who_are_refused_together_do_not_come_back_together() {
    let code = CloseCode::RateLimited;
    let check = |phase, retry_after_ms, expected| {
        let (name, draws) = (RoomId::parse("room").unwrap(), Draws { phase, settle: 0.0 });
        let mut room = Room::new(name, Path::Auto, Tier::Full, draws, Limits::default());
        room.handle(Input::Joined(JoinOutcome::Refused { code, retry_after_ms }), Mono(0));
        assert_eq!(room.deadline(), Some(Mono(expected)), "{phase}, {retry_after_ms}");
    };

    check(0.0, 1, 1_000);
    check(0.5, 1, 1_500);
    check(0.5, 2_000, 2_500);
}

#[test]
fn who_is_pushed_what_it_was_to_poll_keeps_the_push() {
    let check = |path, first_pushed, keeps| {
        let (name, draws) = (RoomId::parse("room").unwrap(), Draws { phase: 0.0, settle: 0.0 });
        let mut room = Room::new(name.clone(), path, Tier::Full, draws, Limits::default());
        let batch = |slot| {
            let (gen_no, items) = (Gen(1), Vec::new());
            Input::Batch(Batch { room: name.clone(), gen_no, slot: SlotNo(slot), part: 0, items })
        };
        room.handle(Input::Joined(pushed(None)), Mono(0));
        room.handle(batch(4), Mono(0));
        let (heat, gen_no, slot) = (Heat::Hot, Gen(1), SlotNo(6));
        room.handle(Input::Heat { heat, gen_no, slot }, Mono(0));

        room.handle(batch(first_pushed), Mono(0));

        assert_eq!(room.hot_from.is_none(), keeps, "{path:?}, {first_pushed}");
    };

    check(Path::Push, 6, true);
    check(Path::Push, 7, true);
    check(Path::Push, 5, false);
    check(Path::Auto, 6, false);
}

const fn pushed(latest: Option<Place>) -> JoinOutcome {
    let (heat, path, resumed) = (Heat::Cold, Path::Push, Resumed::Fresh);
    JoinOutcome::In { heat, path, resumed, latest, online: 0 }
}
