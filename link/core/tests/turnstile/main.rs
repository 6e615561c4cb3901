//! Many nodes let viewers into one room, in virtual time: together they keep its limit, whatever
//! happens to what they tell each other.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]

mod world;

use proptest::prelude::*;

use world::{Crowd, Faults, LIMIT, World};

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn five_times_the_limit_is_let_in_within_five_percent(
        seed: u64,
        weights in prop::collection::vec(1..10_u32, 1..12),
        delay_ms_max in 1..60_u64,
        lost_percent in 0..20_u64,
    ) {
        let faults = Faults { delay_ms_max, lost_percent, away_from_ms: u64::MAX };
        let mut world = World::new(seed, &weights, faults);

        let passed = world.run(&Crowd::steady(5 * LIMIT), 10_000);

        let percent = passed.iter().sum::<u32>() * 100 / (LIMIT * 10);
        prop_assert!((95..=105).contains(&percent), "{percent} % of the limit: {passed:?}");
        let most = passed.iter().max().unwrap();
        prop_assert!(*most <= LIMIT / 2 * 3, "{most} in one second");
    }

    #[test]
    fn less_than_the_limit_comes_in(
        seed: u64,
        weights in prop::collection::vec(1..10_u32, 1..12),
        delay_ms_max in 1..60_u64,
        lost_percent in 0..20_u64,
    ) {
        let faults = Faults { delay_ms_max, lost_percent, away_from_ms: u64::MAX };
        let mut world = World::new(seed, &weights, faults);

        let passed = world.run(&Crowd::steady(LIMIT / 5 * 4), 10_000);

        let percent = passed.iter().sum::<u32>() * 100 / world.asked();
        prop_assert!(percent >= 96, "{percent} % of those who came: {passed:?}");
    }

    #[test]
    fn without_the_centre_each_node_keeps_to_its_part(
        seed: u64,
        weights in prop::collection::vec(1..10_u32, 2..12),
        away_from_ms in prop_oneof![Just(0_u64), 2_000..4_000_u64],
    ) {
        let faults = Faults { delay_ms_max: 20, lost_percent: 0, away_from_ms };
        let mut world = World::new(seed, &weights, faults);

        let passed = world.run(&Crowd::steady(20 * LIMIT), 10_000);

        for second in &passed[1..] {
            prop_assert!((LIMIT / 10 * 8..=LIMIT / 10 * 13).contains(second), "{passed:?}");
        }
    }

    #[test]
    fn the_refused_come_back_at_the_rate_at_which_they_come_in(
        seed: u64,
        weights in prop::collection::vec(1..10_u32, 1..12),
    ) {
        come_back(seed, &weights)?;
    }
}

#[test]
fn the_refused_of_a_busy_node_come_back_as_soon() {
    come_back(8_101_071_542_671_614_600, &[4, 3, 2, 4, 1, 7, 9]).unwrap();
}

#[test]
fn a_flood_at_one_node_takes_no_more_than_its_part_from_the_others() {
    let faults = Faults { delay_ms_max: 20, lost_percent: 0, away_from_ms: u64::MAX };
    let mut world = World::new(7, &[1, 1, 1, 1, 1], faults);

    // Forged logins only look; they never pass.
    let passed = world.run(&Crowd { forged_at_first: 200 * LIMIT, ..Crowd::steady(LIMIT) }, 10_000);

    let percent = passed.iter().sum::<u32>() * 100 / world.asked();
    assert!(percent >= 85, "{percent} %: {passed:?}");
}

/// Many come at once; the refused come back when they are told to.
fn come_back(seed: u64, weights: &[u32]) -> Result<(), TestCaseError> {
    let faults = Faults { delay_ms_max: 20, lost_percent: 5, away_from_ms: u64::MAX };
    let mut world = World::new(seed, weights, faults);

    let passed = world.run(&Crowd::rush(5 * LIMIT), 12_000);

    prop_assert_eq!(passed.iter().sum::<u32>(), world.viewers(), "all came in: {:?}", passed);
    let soon = passed[..6].iter().sum::<u32>() * 100 / world.viewers();
    prop_assert!(soon >= 95, "{} % within six seconds: {:?}", soon, passed);
    prop_assert!(world.asked() < 4 * world.viewers(), "{} attempts", world.asked());
    Ok(())
}
