//! What one node lets pass.

use super::*;

const LIMITS: Limits =
    Limits { room_per_s: 100, node: Rate { burst: 1000, per_s: 1000 }, nodes_min: 1, rooms_max: 2 };

#[test]
fn the_refused_get_one_turn_each() {
    let mut turnstile = Turnstile::new(LIMITS);
    while turnstile.pass(&room("r"), Mono(0)).is_ok() {}

    let turns: Vec<_> = (0..3).map(|_| turnstile.look(&[room("r")], Mono(0))).collect();

    assert_eq!(turns, [20, 30, 40].map(|it| Err(Duration::from_millis(it))));
    assert_eq!(turnstile.look(&[room("r")], Mono(20)), Ok(()));
}

#[test]
fn what_is_owed_is_paid_within_a_second_of_the_nodes_own_rate() {
    let mut turnstile = Turnstile::new(LIMITS);
    turnstile.pass(&room("r"), Mono(0)).unwrap();

    turnstile.owe(&room("r"), 1_000_000, Mono(0));

    assert!(turnstile.pass(&room("r"), Mono(1_000)).is_err());
    assert_eq!(turnstile.pass(&room("r"), Mono(1_010)), Ok(()));
}

#[test]
fn what_was_heard_is_forgotten_when_it_is_old_and_the_nodes_are_not() {
    let mut turnstile = Turnstile::new(LIMITS);
    turnstile.pass(&room("r"), Mono(0)).unwrap();
    let seen = Seen { wanted_per_s: 50, own_per_s: 0, passed: 0 };
    turnstile.hear(10, &[(room("r"), seen)], Mono(0));

    let free = |turnstile: &mut Turnstile, from: u64| {
        (0..100).filter(|it| turnstile.pass(&room("r"), Mono(from + it * 10)).is_ok()).count()
    };

    assert_eq!(free(&mut turnstile, 0), 5, "a tenth of what is free");
    assert_eq!(free(&mut turnstile, 10_000), 10, "a tenth of the limit");
    assert_eq!(turnstile.nodes(), 10);
}

#[test]
fn a_node_takes_so_many_whichever_room_they_want() {
    let node = Rate { burst: 3, per_s: 10 };
    let mut turnstile = Turnstile::new(Limits { node, room_per_s: 0, ..LIMITS });

    let passed: Vec<_> = ["a", "b", "c", "d"].map(|it| turnstile.pass(&room(it), Mono(0))).into();

    let wait = Duration::from_millis(100);
    assert_eq!(passed, [Ok(()), Ok(()), Ok(()), Err(Refusal::Node { wait })]);
    let wait = Duration::from_millis(200);
    assert_eq!(turnstile.pass(&room("e"), Mono(0)), Err(Refusal::Node { wait }), "the next turn");
    assert_eq!(turnstile.tell(Mono(0)), [], "rooms without a limit are not told");
}

#[test]
fn quiet_rooms_give_way_and_are_bounded() {
    let mut turnstile = Turnstile::new(LIMITS);
    for name in ["a", "b", "c"] {
        turnstile.pass(&room(name), Mono(0)).unwrap();
    }

    let rooms = |tallies: Vec<Tally>| tallies.into_iter().map(|it| it.room).collect::<Vec<_>>();
    assert_eq!(rooms(turnstile.tell(Mono(100))), [room("a"), room("b")]);
    assert_eq!(rooms(turnstile.tell(Mono(2_000))), []);
    turnstile.pass(&room("c"), Mono(2_000)).unwrap();
    assert_eq!(rooms(turnstile.tell(Mono(2_100))), [room("c")]);
}

#[test]
fn a_login_is_refused_once_in_the_room_that_is_free_first() {
    let mut turnstile = Turnstile::new(LIMITS);
    for name in ["a", "b"] {
        while turnstile.pass(&room(name), Mono(0)).is_ok() {}
    }
    let both = [room("a"), room("b")];
    turnstile.pass(&room("a"), Mono(0)).unwrap_err();

    let looked = [(); 4].map(|()| turnstile.look(&both, Mono(0)));

    assert_eq!(looked, [20, 30, 30, 40].map(|it| Err(Duration::from_millis(it))));
    assert_eq!(turnstile.look(&[room("a"), room("c")], Mono(0)), Ok(()), "nobody wants into c");
    assert_eq!(turnstile.look(&[], Mono(0)), Ok(()));
}

#[test]
fn forged_logins_keep_nobody_away_for_long_and_want_no_more_than_a_bound() {
    let mut turnstile = Turnstile::new(LIMITS);
    while turnstile.pass(&room("r"), Mono(0)).is_ok() {}
    turnstile.tell(Mono(0));

    for _ in 0..1_000_000 {
        turnstile.look(&[room("r")], Mono(0)).unwrap_err();
    }

    let Err(Refusal::Room { wait }) = turnstile.pass(&room("r"), Mono(0)) else { panic!() };
    assert!(wait <= UNCHECKED_WAIT_MAX + Duration::from_millis(10), "{wait:?}");
    turnstile.tell(Mono(100));
    let wanted: Vec<_> = turnstile.tell(Mono(200)).iter().map(|it| it.wanted_per_s).collect();
    assert!(wanted[0] <= WANTED_MAX * LIMITS.room_per_s, "{wanted:?}");
}

#[test]
fn a_centre_that_heard_of_too_few_nodes_is_not_believed() {
    let mut turnstile = Turnstile::new(Limits { nodes_min: 10, ..LIMITS });
    turnstile.pass(&room("r"), Mono(0)).unwrap();
    let seen = Seen { wanted_per_s: 50, own_per_s: 50, passed: 0 };
    let free = |turnstile: &mut Turnstile, from: u64| {
        (1..=100).filter(|it| turnstile.pass(&room("r"), Mono(from + it * 10)).is_ok()).count()
    };

    turnstile.hear(9, &[(room("r"), seen)], Mono(0));
    let of_nine = free(&mut turnstile, 0);
    turnstile.hear(10, &[(room("r"), seen)], Mono(1_000));
    let of_ten = free(&mut turnstile, 1_000);

    assert_eq!((of_nine, of_ten), (10, 55));
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
