//! What links are told, and when.

use super::*;

const LIMIT: u32 = 50;

/// What is told at a moment; all hear it at once.
fn turn(valve: &mut Valve, ms: u64) -> Option<u16> {
    let told = valve.decide(LIMIT, Mono(ms));
    if let Some(kept) = told {
        valve.heard(kept, Mono(ms));
    }
    told
}

/// What is told while one link is offered so much, and when; ten turns a second.
fn play(valve: &mut Valve, per_s: u32, ms: std::ops::Range<u64>) -> Vec<(u64, u16)> {
    let mut told = Vec::new();
    for ms in ms.step_by(100) {
        valve.offered(NodeId(1), per_s, Mono(ms));
        told.extend(turn(valve, ms).map(|it| (ms, it)));
    }
    told
}

#[test]
fn a_flood_is_told_and_lapses_once_it_is_over() {
    let mut valve = Valve::default();
    valve.offered(NodeId(1), 600, Mono(0));
    valve.offered(NodeId(2), 400, Mono(0));
    turn(&mut valve, 0);

    assert_eq!(turn(&mut valve, 300), Some(75));
    assert!(valve.is_partly_shut());
    let told: Vec<_> = (1..40).filter_map(|it| turn(&mut valve, it * 1_000 + 300)).collect();

    assert!(told.is_sorted() && told.last() == Some(&ALL), "{told:?}");
    assert!((8..=12).contains(&told.len()), "within ten seconds: {told:?}");
    assert!(valve.is_idle());
}

#[test]
fn a_burst_passes_whole_and_a_second_one_after_quiet() {
    let mut valve = Valve::default();

    let burst = play(&mut valve, 4 * LIMIT, 0..1_000);
    let quiet = play(&mut valve, 0, 1_000..4_000);
    let another = play(&mut valve, 4 * LIMIT, 4_000..5_000);

    assert_eq!([burst, quiet, another], [const { Vec::new() }; 3]);
}

#[test]
fn a_flood_is_what_two_bursts_are_too_little_for() {
    let mut valve = Valve::default();

    let told = play(&mut valve, 3 * LIMIT, 0..5_000);

    assert_eq!(told, [(2_500, 500)], "5 s of what the room shows, at two of it too much a second");
}

#[test]
fn the_share_changes_at_most_once_a_second_and_only_by_much() {
    let mut valve = Valve::default();
    assert_eq!(play(&mut valve, 1_000, 0..900), [(300, 75)]);

    assert_eq!(play(&mut valve, 2_000, 900..1_900), [(1_300, 37)]);
    assert!(play(&mut valve, 1_900, 1_900..4_000).is_empty());
}

#[test]
fn what_a_room_shows_and_half_as_much_again_passes_whole() {
    let mut valve = Valve::default();

    assert!(play(&mut valve, 75, 0..60_000).is_empty());
    assert_eq!(play(&mut valve, 100, 60_000..61_000), [(60_000, 750)]);
}

#[test]
fn what_is_wanted_tells_of_a_flood_before_links_do() {
    let mut valve = Valve::default();
    let mut told = Vec::new();

    for ms in (0..1_000).step_by(100) {
        valve.wanted(if ms < 500 { 600 } else { 1_000 }, Mono(ms));
        told.extend(turn(&mut valve, ms).map(|it| (ms, it)));
    }
    valve.offered(NodeId(1), 1_000, Mono(1_000));
    let later: Vec<_> = (1_000..3_000).filter_map(|it| turn(&mut valve, it)).collect();

    assert_eq!(told, [(700, 75)], "a flood after 500 ms, and all have said so after 200 more");
    assert!(later.is_empty(), "what passed before is no flood of its own: {later:?}");
}

#[test]
fn what_chatservers_say_no_more_is_no_flood() {
    let mut valve = Valve::default();
    valve.wanted(1_000_000, Mono(0));

    let told: Vec<_> = (0..10).filter_map(|it| turn(&mut valve, it * 1_000)).collect();

    assert!(told.is_empty(), "{told:?}");
    assert!(valve.is_idle());
}

#[test]
fn a_share_that_another_told_lapses_too() {
    let mut valve = Valve::default();
    valve.heard(10, Mono(0));

    assert_eq!(turn(&mut valve, 5_000), Some(ALL));
}

#[test]
fn who_comes_in_the_middle_of_a_flood_does_not_open_it() {
    for offered_per_s in [3_500, 150] {
        let mut valve = Valve::default();
        let kept = share(LIMIT, offered_per_s.into());
        valve.heard(kept, Mono(5_000));

        let first: Vec<_> = (5_000..6_000).filter_map(|it| turn(&mut valve, it)).collect();
        let later = play(&mut valve, offered_per_s, 6_000..12_000);

        assert_eq!((first, later), (vec![kept], vec![]), "{offered_per_s} a second");
    }
}

#[test]
fn a_share_that_lasts_is_told_every_ten_seconds() {
    let mut valve = Valve::default();

    let told = play(&mut valve, 1_000, 0..30_000);

    assert_eq!(told, [(300, 75), (10_300, 75), (20_300, 75)]);
}

#[test]
fn a_share_is_never_nothing() {
    let mut valve = Valve::default();

    let told = play(&mut valve, u32::MAX, 0..200);

    assert_eq!(told, [(100, 1)]);
}
