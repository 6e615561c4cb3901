//! What one chatserver lets pass.

use super::*;

const LIMIT: Limit = Limit { per_s: 100, nodes: 1 };
/// What passes of a burst, beyond what comes in.
const BURST_COMMENTS: usize = 250;

/// Comments that pass when one comes every millisecond.
fn pass(stream: &mut Stream, limit: Limit, ms: std::ops::Range<u64>) -> usize {
    let mut passes = |it: &u64| {
        let asked = stream.ask(limit, None, Mono(*it));
        if asked.is_ok() {
            stream.take(limit, Mono(*it));
        }
        asked.is_ok()
    };
    ms.filter(|it| passes(it)).count()
}

/// One whose burst has passed.
fn spent(limit: Limit) -> Stream {
    let mut stream = Stream::default();
    pass(&mut stream, limit, 0..1_000);
    stream
}

#[test]
fn a_burst_passes_and_then_the_rate() {
    let mut stream = Stream::default();

    assert_eq!(pass(&mut stream, LIMIT, 0..1_000), BURST_COMMENTS + 99);
    assert_eq!(pass(&mut stream, LIMIT, 1_000..2_000), 100);
}

#[test]
fn a_burst_is_saved_by_quiet_alone() {
    let mut stream = spent(LIMIT);

    // One comes every ten milliseconds: exactly what may.
    let steady = (100..600).filter(|it| pass(&mut stream, LIMIT, it * 10..it * 10 + 1) == 1);
    assert_eq!(steady.count(), 500);
    let after_none = pass(&mut stream, LIMIT, 6_000..7_000);
    let after_a_second = pass(&mut stream, LIMIT, 8_000..9_000);
    let after_long = pass(&mut stream, LIMIT, 20_000..21_000);

    assert_eq!(after_none, 100);
    assert_eq!(after_a_second, 200);
    assert_eq!(after_long, BURST_COMMENTS + 99);
}

#[test]
fn a_flood_that_lasts_makes_up_for_its_burst() {
    let mut stream = Stream::default();

    let seconds: Vec<_> =
        (0..60).map(|it| pass(&mut stream, LIMIT, it * 1_000..(it + 1) * 1_000)).collect();

    let twenty = seconds[..20].iter().sum::<usize>();
    assert!(twenty <= 2_200, "{twenty} in twenty seconds: {seconds:?}");
    assert!(seconds[1..10].iter().all(|it| *it == 100), "{seconds:?}");
    assert!(seconds[11..20].iter().all(|it| (91..=92).contains(it)), "{seconds:?}");
    assert!(seconds[45..].iter().all(|it| *it == 100), "{seconds:?}");
    // The rate, and a batch.
    let all = seconds.iter().sum::<usize>();
    assert!((6_020..=6_025).contains(&all), "{all}: {seconds:?}");
}

#[test]
fn a_burst_is_shared_by_all() {
    let limit = Limit { nodes: 3, ..LIMIT };
    let mut stream = Stream::default();
    stream.hear(Seen::default(), limit, Mono(0));

    // What the others leave in a batch, and a third of what is saved.
    assert_eq!(pass(&mut stream, limit, 0..200), 25 + 75 + 19);
}

#[test]
fn the_refused_get_one_turn_each_up_to_a_bound() {
    let mut stream = Stream::default();
    while stream.ask(LIMIT, None, Mono(5)).is_ok() {
        stream.take(LIMIT, Mono(5));
    }

    let mut turn = || stream.ask(LIMIT, None, Mono(5)).unwrap_err();
    let turns: Vec<_> = (0..3).map(|_| turn()).collect();
    let later: Vec<_> = (0..5_000).map(|_| turn()).collect();

    assert_eq!(turns, [20, 30, 40].map(|it| Held::Turn(Duration::from_millis(it))));
    assert_eq!(later.last(), Some(&Held::Turn(WAIT_MAX)));
}

#[test]
fn what_the_others_leave_may_pass() {
    let mut stream = spent(LIMIT);

    stream.hear(Seen { wanted_per_s: 90, own_per_s: 10, passed: 90 }, LIMIT, Mono(1_000));

    assert_eq!(pass(&mut stream, LIMIT, 1_000..2_000), 20);
}

#[test]
fn a_part_of_what_is_wanted_is_a_part_of_what_passes() {
    let mut stream = spent(LIMIT);

    stream.hear(Seen { wanted_per_s: 1_000, own_per_s: 250, passed: 100 }, LIMIT, Mono(1_000));
    let fair = pass(&mut stream, LIMIT, 1_000..2_000);
    stream.hear(Seen { wanted_per_s: 1_000, own_per_s: 250, passed: 140 }, LIMIT, Mono(2_000));
    let less = pass(&mut stream, LIMIT, 2_000..3_000);

    assert_eq!((fair, less), (25, 20));
}

#[test]
fn what_was_heard_is_forgotten_when_it_is_old() {
    let limit = Limit { nodes: 4, ..LIMIT };
    let mut stream = spent(limit);
    stream.hear(Seen { wanted_per_s: 4_000, own_per_s: 0, passed: 100 }, limit, Mono(1_000));

    assert_eq!(pass(&mut stream, limit, 1_000..2_000), 0);
    assert_eq!(pass(&mut stream, limit, 2_001..4_001), 50, "a quarter of the whole");
}

#[test]
fn who_always_passes_is_counted_and_owed() {
    let mut stream = spent(LIMIT);
    let told = stream.tell(Mono(1_000)).map(|it| it.1);
    for _ in 0..1_000 {
        stream.take(LIMIT, Mono(1_000));
    }

    assert_eq!(told, Some(25 + 99), "what was saved is not told");
    assert_eq!(pass(&mut stream, LIMIT, 1_001..1_251), 0);
    assert_eq!(stream.tell(Mono(1_251)).map(|it| it.1), Some(1_000));
}

#[test]
fn lots_are_drawn_only_when_a_burst_has_passed_and_as_many_are_heard_as_may_pass() {
    let mut stream = Stream::default();
    let heard = |stream: &mut Stream, lot: u64, ms: u64| {
        let lot = Some(u16::try_from(lot).unwrap());
        stream.ask(LIMIT, lot, Mono(ms)) != Err(Held::Lot)
    };

    assert!(heard(&mut stream, 999, 0), "a burst");
    pass(&mut stream, LIMIT, 1..1_000);
    stream.tell(Mono(1_000));
    let lots = (0..1_000).filter(|it| heard(&mut stream, *it, 1_000)).count();

    // A thousand are wanted a second, and a hundred may pass.
    assert_eq!(lots, 100);
    assert!(heard(&mut stream, 99, 1_000) && !heard(&mut stream, 100, 1_000));
}

#[test]
fn a_quiet_room_has_nothing_to_tell() {
    let mut stream = Stream::default();
    assert!(!stream.is_used());
    pass(&mut stream, LIMIT, 0..1);

    assert_eq!(stream.tell(Mono(100)), Some((10, 1)));
    assert_eq!(stream.tell(Mono(200)), Some((5, 0)));
    assert_eq!(stream.tell(Mono(2_000)), None);
    assert!(!stream.is_used());
}
