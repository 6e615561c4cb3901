//! Which base clients ask: shares, moves, and leaving what is bad.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use proto::head::Base;
use proto::id::{Gen, RoomId, SlotNo};
use proto::time::{Mono, Wall};
use sdk_core::bases::{Bases, Fetched, LATE};

const CLIENTS: u64 = 4_000;

#[test]
fn the_base_that_enter_puts_first_comes_first() {
    let list = bases(&[("b", 1), ("a", 3), ("c", 2)]);

    let firsts = (0..CLIENTS).filter(|it| first(&client(*it, &list)) == "b").count();

    // Some draws have none near them that does.
    assert!(firsts > 3_990, "{firsts}");
}

#[test]
fn clients_are_shared_out_by_weight() {
    let crowd = crowd(&[("a", 1), ("b", 2), ("c", 5)]);

    near(share(&crowd, "a"), 0.125);
    near(share(&crowd, "b"), 0.25);
    near(share(&crowd, "c"), 0.625);
}

#[test]
fn a_change_of_weights_moves_only_as_many_clients_as_it_must() {
    let mut crowd = crowd(&[("a", 100), ("b", 100), ("c", 100)]);
    let before: Vec<String> = crowd.iter().map(first).collect();

    weigh(&mut crowd, &[("a", 1), ("b", 100), ("c", 100)], 2);

    near(share(&crowd, "a"), 1.0 / 201.0);
    near(share(&crowd, "b"), 100.0 / 201.0);
    let stayed = |it: &(&String, &Bases)| *it.0 == first(it.1);
    assert!(before.iter().zip(&crowd).filter(|it| it.0 != "a").all(|it| stayed(&it)));

    weigh(&mut crowd, &[("a", 100), ("b", 100), ("c", 100)], 3);
    assert!(before.iter().zip(&crowd).all(|it| stayed(&it)));
}

#[test]
fn weights_of_an_older_segment_are_passed_over() {
    let mut client = client(7, &bases(&[("a", 1), ("b", 1)]));
    client.weigh(&bases(&[("a", 0), ("b", 1)]), Wall(20), Wall(20));

    client.weigh(&bases(&[("a", 1), ("b", 0)]), Wall(19), Wall(19));
    client.weigh(&[], Wall(30), Wall(30));

    assert_eq!(client.order(Mono(0)), ["b", "a"]);
}

#[test]
fn weights_from_a_clock_that_is_ahead_hold_until_newer_ones_only() {
    let mut client = client(7, &bases(&[("a", 1), ("b", 1)]));

    client.weigh(&bases(&[("a", 0), ("b", 1)]), Wall(90_000), Wall(20));
    client.weigh(&bases(&[("a", 1), ("b", 0)]), Wall(21), Wall(22));

    assert_eq!(client.order(Mono(0)), ["a", "b"]);
}

#[test]
fn a_base_that_has_nothing_is_left_for_one_that_has_it() {
    let mut client = client(7, &bases(&[("a", 1), ("b", 1)]));
    let place = |slot| (RoomId::parse("r").unwrap(), Gen(1), SlotNo(slot));

    for slot in 0..3 {
        let asked = Mono(slot * 1_000);
        client.ended("a", asked, Fetched::NotThere, asked + Duration::from_millis(20));
        client.absent("a", place(slot), asked);
        // The first was not there yet.
        let sealed = if slot == 0 { Mono(10) } else { asked };
        client.found(&place(slot), sealed, asked + Duration::from_millis(50));
        client.found(&place(slot), sealed, asked + Duration::from_millis(50));
    }

    assert_eq!(client.order(Mono(2_050)), ["b", "a"]);
    let [report] = &client.report(Mono(2_050))[..] else { panic!("one base was used") };
    assert_eq!((report.fetches, report.failures, report.is_bad), (2, 2, true));
}

#[test]
fn what_is_not_there_is_no_fetch() {
    let mut client = client(7, &bases(&[("a", 1), ("b", 1)]));

    client.ended("a", Mono(0), Fetched::NotThere, Mono(20));

    assert!(client.report(Mono(30)).is_empty());
}

#[test]
fn far_bases_are_for_retries_and_for_those_whom_near_ones_cannot_serve() {
    let mut crowd: Vec<Bases> =
        (0..CLIENTS).map(|it| client(it, &bases(&[("near", 100), ("far", 0)]))).collect();
    assert!(crowd.iter().all(|it| it.order(Mono(0)) == ["near", "far"]));

    weigh(&mut crowd, &[("near", 100), ("far", 100)], 2);
    near(share(&crowd, "near"), 1.0);

    weigh(&mut crowd, &[("near", 30), ("far", 100)], 3);
    near(share(&crowd, "near"), 0.3);
}

#[test]
fn a_base_that_fails_twice_is_left_and_tried_again_later() {
    let mut client = client(7, &bases(&[("a", 1), ("b", 1)]));
    let fail = |client: &mut Bases, now| client.ended("a", now, Fetched::Failed, now);

    fail(&mut client, Mono(1_000));
    assert_eq!(client.order(Mono(1_000)), ["a", "b"]);
    fail(&mut client, Mono(2_000));
    assert_eq!(client.order(Mono(2_000)), ["b", "a"]);
    assert_eq!(client.order(Mono(7_000)), ["a", "b"]);

    // The wait is twice as long the next time, and one failure is enough.
    fail(&mut client, Mono(8_000));
    assert_eq!(client.order(Mono(17_999)), ["b", "a"]);
    assert_eq!(client.order(Mono(18_000)), ["a", "b"]);
    client.ended("a", Mono(18_000), whole(100), Mono(18_100));
    fail(&mut client, Mono(19_000));
    assert_eq!(client.order(Mono(19_000)), ["a", "b"]);
}

#[test]
fn nobody_flees_to_a_base_that_is_drained() {
    let mut client = client(7, &bases(&[("b", 100), ("a", 100)]));
    client.weigh(&bases(&[("a", 1), ("b", 100)]), Wall(2), Wall(2));

    for now in [Mono(1_000), Mono(2_000)] {
        client.ended("b", now, Fetched::Failed, now);
    }

    assert_eq!(client.order(Mono(2_000)), ["b", "a"]);
    client.weigh(&bases(&[("a", 10), ("b", 100)]), Wall(3), Wall(3));
    assert_eq!(client.order(Mono(2_000)), ["a", "b"]);
}

#[test]
fn late_is_bad_and_not_there_is_neither() {
    let mut client = client(7, &bases(&[("a", 1), ("b", 1)]));

    for asked in [Mono(0), Mono(5_000)] {
        client.ended("a", asked, Fetched::NotThere, asked + 2 * LATE);
    }
    assert_eq!(client.order(Mono(9_000)), ["a", "b"]);
    for asked in [Mono(10_000), Mono(12_000)] {
        client.ended("a", asked, whole(1_000), asked + LATE);
    }

    assert_eq!(client.order(Mono(13_000)), ["b", "a"]);
}

#[test]
fn the_base_that_served_last_stays_second_until_another_served() {
    let mut client = client(7, &bases(&[("a", 3), ("b", 0), ("c", 0)]));
    client.ended("a", Mono(0), whole(50), Mono(50));

    client.weigh(&bases(&[("a", 0), ("b", 0), ("c", 1)]), Wall(2), Wall(2));
    assert_eq!(client.order(Mono(60)), ["c", "a", "b"]);
    client.ended("c", Mono(60), whole(30), Mono(90));

    client.weigh(&bases(&[("a", 0), ("b", 1), ("c", 0)]), Wall(3), Wall(3));
    assert_eq!(client.order(Mono(100)), ["b", "c", "a"]);
}

#[test]
fn a_report_has_what_happened_since_the_last_one() {
    let mut client = client(7, &bases(&[("a", 1), ("b", 1)]));
    client.ended("a", Mono(0), whole(100), Mono(100));
    client.ended("a", Mono(1_000), Fetched::Failed, Mono(1_300));
    client.asked("b", Mono(2_000));

    let [report] = &client.report(Mono(2_500))[..] else { panic!("one base was used") };
    assert_eq!((report.base.as_str(), report.fetches, report.failures), ("a", 2, 1));
    assert_eq!((report.late, report.fetch_ms, report.is_bad), (0, 200, true));

    // A question without an answer is bad before it ends.
    let [report] = &client.report(Mono(3_000))[..] else { panic!("one base is late") };
    assert_eq!((report.base.as_str(), report.fetches, report.is_bad), ("b", 0, true));
    client.ended("b", Mono(2_000), whole(1_001), Mono(3_001));
    assert_eq!(client.report(Mono(3_500))[0].late, 1);
    assert!(client.report(Mono(4_000)).is_empty());
}

#[test]
fn no_bases_and_no_weights_are_no_trouble() {
    let mut nothing = Bases::new(1);
    nothing.entered(&[], Wall(0));
    assert_eq!(nothing.pick(0, Mono(0)), None);

    let retries = client(7, &bases(&[("a", 0), ("b", 0)]));
    assert_eq!(retries.order(Mono(0)).len(), 2);
    assert!(retries.pick(u32::MAX, Mono(0)).is_some());
    let many: Vec<String> = (0..100).map(|it| it.to_string()).collect();
    let many: Vec<(&str, u32)> = many.iter().map(|it| (it.as_str(), 1)).collect();
    assert_eq!(client(7, &bases(&many)).order(Mono(0)).len(), proto::limits::BASES_MAX);
}

fn bases(weights: &[(&str, u32)]) -> Vec<Base> {
    weights.iter().map(|&(base, weight)| Base { base: base.to_owned(), weight }).collect()
}

fn client(seed: u64, list: &[Base]) -> Bases {
    let mut client = Bases::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    client.entered(list, Wall(1));
    client
}

const fn whole(took_ms: u64) -> Fetched {
    Fetched::Whole { took: Duration::from_millis(took_ms) }
}

/// Clients to whom the bases were handed out in turn, by weight.
fn crowd(weights: &[(&str, u32)]) -> Vec<Bases> {
    let list = bases(weights);
    let turns: Vec<usize> = list
        .iter()
        .enumerate()
        .flat_map(|(index, it)| std::iter::repeat_n(index, it.weight as usize))
        .collect();
    let turned = |it: u64| {
        let mut list = list.clone();
        list.swap(0, turns[usize::try_from(it).unwrap() % turns.len()]);
        client(it, &list)
    };
    (0..CLIENTS).map(turned).collect()
}

fn weigh(crowd: &mut [Bases], weights: &[(&str, u32)], as_of: u64) {
    crowd.iter_mut().for_each(|it| it.weigh(&bases(weights), Wall(as_of), Wall(as_of)));
}

fn first(client: &Bases) -> String {
    client.pick(0, Mono(0) + Duration::ZERO).unwrap()
}

fn share(crowd: &[Bases], base: &str) -> f64 {
    let firsts = crowd.iter().filter(|it| first(it) == base).count();
    f64::from(u32::try_from(firsts).unwrap()) / f64::from(u32::try_from(crowd.len()).unwrap())
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.03, "{found} is not about {expected}");
}
