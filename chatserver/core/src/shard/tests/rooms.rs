//! What a shard knows of rooms, and when it forgets them.

use super::*;

#[test]
fn a_closed_room_says_so_for_an_hour_and_is_forgotten() {
    let mut shard = shard(RoomSettings::default());
    let fact = RoomFact {
        app: AppId(1),
        room: room(),
        version: 2,
        open: false,
        settings: RoomSettings::default(),
    };
    feed(&mut shard, Input::Fact(Fact::Room(fact)), 0);
    shard.tick(at(1000));

    assert_eq!(say(&mut shard, "v", 1, "x", 3_600_000), vec![ack(1, drop(Reason::RoomClosed, 0))]);
    // Sweeps go round, and one of them begins behind the last room.
    shard.tick(at(3_601_000));
    shard.tick(at(3_602_000));
    assert_eq!(shard.rooms(), 0);
    assert_eq!(say(&mut shard, "v", 2, "x", 3_603_000), vec![ack(2, drop(Reason::NoRoom, 0))]);
}

#[test]
fn older_settings_do_not_replace_newer_ones() {
    let mut shard = shard(RoomSettings { graphemes_max: 3, ..RoomSettings::default() });

    feed(&mut shard, room_fact(0, RoomSettings::default()), 0);

    assert_eq!(say(&mut shard, "v", 1, "four", 0), vec![ack(1, drop(Reason::TooLong, 0))]);
}

#[test]
fn facts_about_too_many_rooms_are_ignored_and_counted() {
    let mut shard = shard(RoomSettings::default());
    for name in ["r2", "r3", "r4"] {
        let room = RoomId::parse(name).unwrap();
        let viewer = ViewerId::parse("v").unwrap();
        feed(&mut shard, Input::Fact(Fact::Mute { app: AppId(1), room, viewer, until: START }), 0);
    }

    assert_eq!((shard.rooms(), shard.ignored()), (3, 1));
}

#[test]
fn closed_rooms_make_place_for_others_and_rooms_not_yet_heard_of_do_not() {
    let mut shard = shard(RoomSettings::default());
    let id = |name| RoomId::parse(name).unwrap();
    let viewer = ViewerId::parse("v").unwrap();
    let mute = Fact::Mute { app: AppId(1), room: id("muted"), viewer, until: Wall(u64::MAX) };
    feed(&mut shard, Input::Fact(mute), 0);
    let mut tell = |name, open| {
        let settings = RoomSettings::default();
        let fact = RoomFact { app: AppId(1), room: id(name), version: 2, open, settings };
        feed(&mut shard, Input::Fact(Fact::Room(fact)), 0);
        (shard.rooms(), shard.is_full(), shard.ignored())
    };

    assert_eq!(tell("closed", false), (3, false, 0));
    assert_eq!(tell("closed-later", false), (3, false, 0));
    assert_eq!(tell("open", true), (3, true, 0));
    assert_eq!(tell("one-more", true), (3, true, 1));
    assert_eq!(tell("open", false), (3, false, 1));
    assert_eq!(tell("one-more", true), (3, true, 1));
}

#[test]
fn nothing_is_told_of_the_share_of_a_room_that_nobody_has_told_yet() {
    let mut shard = Shard::new(LIMITS, SenderSecret::new([1; 32]), Wall(0));
    let keep = |keep_permille| Fact::Keep { app: AppId(1), room: room(), keep_permille };
    feed(&mut shard, Input::Fact(keep(10)), 0);

    shard.tick(at(5000));
    let before = drain(&mut shard);
    feed(&mut shard, room_fact(1, RoomSettings::default()), 6000);
    shard.tick(at(6000));

    assert_eq!((before, drain(&mut shard)), (vec![], vec![Output::Tell(keep(1000))]));
}
