//! Shares of segment bases: draining, returning, and what liars and bad days cannot do.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use gslb_core::bases::{Bases, Heard, Input, Moved, Output, PERCENT_MIN, Pace, Role, Why};
use proptest::prelude::*;
use proto::head::Base;
use proto::id::NodeId;
use proto::quality::{BaseGauge, BaseGauges, StoreGauge};
use proto::time::{Mono, Wall};

const PACE: Pace = Pace { step: Duration::from_secs(3), quiet: Duration::from_secs(30) };

#[test]
fn a_bad_base_is_drained_within_five_seconds_and_keeps_a_hundredth() {
    let mut world = World::leading(&["a", "b"]);
    world.seconds(5, &[("a", 40, 0), ("b", 40, 1)]);

    world.seconds(3, &[("a", 40, 36), ("b", 40, 1)]);

    assert_eq!(world.published(), [("a", 1), ("b", 100)]);
    let fallen = world.moves.last().unwrap();
    assert_eq!((fallen.base.as_str(), fallen.from, fallen.to), ("a", 100, PERCENT_MIN));
    assert_eq!(fallen.why, Why::Reports);
}

#[test]
fn it_returns_by_steps_of_ten_percent() {
    let mut world = World::leading(&["a", "b"]);
    world.seconds(3, &[("a", 40, 40), ("b", 40, 0)]);
    world.moves.clear();

    world.seconds(60, &[("a", 1, 0), ("b", 80, 0)]);

    let steps: Vec<(u8, u8)> = world.moves.iter().map(|it| (it.from, it.to)).collect();
    let mut expected = vec![(1, 10)];
    expected.extend((1..10).map(|it| (10 * it, 10 * it + 10)));
    assert_eq!(steps, expected);
    assert!(world.moves.iter().all(|it| it.why == Why::Well));
    assert_eq!(world.published(), [("a", 100), ("b", 100)]);
}

#[test]
fn one_that_falls_again_and_again_returns_later_each_time() {
    let mut world = World::leading(&["a", "b"]);
    let mut waits = Vec::new();
    for _ in 0..5 {
        world.seconds(3, &[("a", 40, 40), ("b", 40, 0)]);
        let fell = world.now;
        while world.percent("a") == 1 {
            world.seconds(1, &[("a", 1, 0), ("b", 80, 0)]);
        }
        waits.push(world.now.since(fell).as_secs());
    }

    assert!(waits.windows(2).all(|it| it[1] >= it[0]), "{waits:?}");
    assert!(waits[4] >= 4 * waits[0].max(3), "{waits:?}");
}

#[test]
fn a_drained_base_that_nobody_reports_of_is_tried_again() {
    let mut world = World::leading(&["a", "b"]);
    world.seconds(3, &[("a", 40, 40), ("b", 40, 0)]);
    world.moves.clear();

    world.seconds(32, &[("b", 80, 0)]);

    assert_eq!(world.percent("a"), 10);
    assert_eq!(world.moves.last().unwrap().why, Why::Quiet);
}

#[test]
fn a_few_liars_do_not_keep_a_base_drained() {
    // Of 400 viewers: the honest ones of the hundredth, and liars who need no base.
    for (liars, within_s) in [(4, 340), (16, 1_000)] {
        let mut world = World::leading(&["a", "b"]);
        world.seconds(3, &[("a", 400, 400), ("b", 400, 0)]);
        world.moves.clear();

        for _ in 0..within_s {
            let honest = 4 * u32::from(world.percent("a"));
            world.seconds(1, &[("a", honest + liars, liars), ("b", 400, 0)]);
        }

        assert_eq!(world.percent("a"), 100, "{liars} liars");
        assert_eq!(world.moves[0].why, Why::Trial);
        assert!(world.moves.iter().all(|it| it.to > it.from), "{:?}", world.moves);
    }
}

#[test]
fn a_base_that_stays_bad_is_tried_for_a_moment_every_five_minutes() {
    let mut world = World::leading(&["a", "b"]);
    world.seconds(3, &[("a", 40, 40), ("b", 40, 0)]);

    let mut tried_s = 0;
    for _ in 0..1_000 {
        world.seconds(1, &[("a", 40, 40), ("b", 40, 0)]);
        tried_s += u64::from(world.percent("a") > PERCENT_MIN);
    }

    assert_eq!(world.moves.iter().filter(|it| it.why == Why::Trial).count(), 3);
    assert!((3 * 15..=3 * 16).contains(&tried_s), "{tried_s} s");
    assert!(world.moves.iter().all(|it| it.to <= 10));
}

#[test]
fn what_is_bad_everywhere_drains_nothing() {
    let mut world = World::leading(&["a", "b", "c"]);

    world.seconds(20, &[("a", 40, 40), ("b", 40, 35), ("c", 40, 38)]);

    assert_eq!(world.published(), [("a", 100), ("b", 100), ("c", 100)]);
}

#[test]
fn when_the_last_one_falls_the_least_bad_takes_over() {
    let mut world = World::leading(&["a", "b"]);
    world.seconds(3, &[("a", 40, 40), ("b", 40, 0)]);
    assert_eq!(world.published(), [("a", 1), ("b", 100)]);

    world.seconds(12, &[("a", 4, 1), ("b", 80, 80)]);

    assert_eq!(world.published(), [("a", 100), ("b", 1)]);
    assert!(world.moves.iter().any(|it| it.why == Why::LeastBad));
}

#[test]
fn an_only_base_keeps_its_weight() {
    let mut world = World::leading(&["a"]);

    world.seconds(10, &[("a", 40, 40)]);

    assert_eq!(world.published(), [("a", 100)]);
}

#[test]
fn a_broadcaster_whose_stores_take_nothing_loses_its_viewers() {
    let mut world = World::new(&[]);
    world.lead();
    for second in 0..10 {
        let failing = second >= 5;
        world.announce(1, "a", if failing { (0, 9) } else { (9, 0) });
        world.announce(2, "b", (9, 0));
        world.second();
    }

    assert_eq!(world.published(), [("a", 1), ("b", 100)]);
    assert_eq!(world.moves.last().unwrap().why, Why::Store);
}

#[test]
fn one_slot_that_no_store_took_drains_nothing_two_seconds_of_them_do() {
    let mut world = World::new(&[]);
    world.lead();
    for slots in [(1, 0), (0, 1), (1, 0), (0, 1), (0, 0)] {
        world.announce(1, "a", slots);
        world.announce(2, "b", (1, 0));
        world.second();
    }
    assert_eq!(world.published(), [("a", 100), ("b", 100)]);

    world.announce(1, "a", (0, 1));
    world.announce(2, "b", (1, 0));
    world.second();

    assert_eq!(world.published(), [("a", 1), ("b", 100)]);
}

#[test]
fn a_silent_bus_drops_no_announced_base() {
    let mut world = World::new(&[]);
    world.lead();
    world.announce(1, "a", (1, 0));
    world.announce(2, "b", (1, 0));
    for _ in 0..60 {
        world.second();
    }

    world.announce(2, "b", (1, 0));
    world.second();

    assert_eq!(world.published(), [("a", 100), ("b", 100)]);
}

#[test]
fn announced_bases_come_at_once_and_go_when_they_fall_silent() {
    let mut world = World::new(&[]);
    world.lead();
    world.announce(1, "a", (1, 0));
    world.tick();
    assert_eq!(world.published(), [("a", 100)]);
    for _ in 0..7 {
        world.announce(2, "b", (1, 0));
        world.second();
    }

    assert_eq!(world.published(), [("b", 100)]);
    world.seconds(30, &[]);
    assert_eq!(world.published(), [("b", 100)]);
}

#[test]
fn a_follower_publishes_nothing_and_goes_on_where_the_leader_ended() {
    let mut world = World::new(&["a", "b"]);
    let told = vec![base("a", 30), base("b", 100)];
    world.bases.handle(Input::Told(told), world.now);
    world.seconds(5, &[("a", 40, 40), ("b", 40, 0)]);
    assert_eq!(world.publications, 0);

    world.lead();
    world.seconds(20, &[("a", 4, 0), ("b", 80, 0)]);

    assert_eq!(world.moves[0].from, 30);
}

#[test]
fn a_new_leader_waits_before_it_tries_a_drained_base() {
    let mut world = World::new(&["a", "b"]);
    world.now = Mono(1_000_000);
    world.bases.handle(Input::Told(vec![base("a", 1), base("b", 100)]), world.now);

    world.lead();
    world.seconds(29, &[]);

    assert_eq!(world.percent("a"), 1);
    world.seconds(1, &[]);
    assert_eq!(world.percent("a"), 10);
}

#[test]
fn votes_on_unknown_bases_are_counted_and_forgotten() {
    let mut world = World::leading(&["a", "b"]);
    let gauges = gauges(1, &[("a", 3, 1), ("nonsense", 7, 7)]);

    let heard = world.bases.handle(Input::Gauges(gauges), world.now);

    assert_eq!(heard, Heard { good: 2, bad: 1, unknown: 7 });
    assert_eq!(world.bases.list().len(), 2);
}

proptest! {
    /// Whatever links say, somebody gets viewers, and nothing is published twice a second.
    #[test]
    fn shares_are_never_all_gone(
        seconds in prop::collection::vec(prop::array::uniform3((0..60_u32, 0..60_u32)), 1..120),
    ) {
        let mut world = World::leading(&["a", "b", "c"]);
        for [a, b, c] in seconds {
            let before = world.publications;
            world.seconds(1, &[("a", a.0, a.1), ("b", b.0, b.1), ("c", c.0, c.1)]);
            prop_assert!(world.publications <= before + 1);
            let list = world.bases.list();
            prop_assert!(list.iter().all(|it| (1..=100).contains(&it.weight)));
            prop_assert!(list.iter().any(|it| it.weight > 1));
        }
    }

    /// A base that goes bad for its viewers is drained within 5 s, wherever it was.
    #[test]
    fn bad_reports_drain_within_five_seconds(
        calm_s in 0..40_u64, reports in 8..500_u32, bad_percent in 60..=100_u32, noise in 0..3_u32,
    ) {
        let mut world = World::leading(&["a", "b"]);
        let noise = reports * noise / 100;
        world.seconds(calm_s, &[("a", reports, noise), ("b", reports, noise)]);

        world.seconds(5, &[("a", reports, reports * bad_percent / 100), ("b", reports, noise)]);

        prop_assert_eq!(world.percent("a"), PERCENT_MIN);
        prop_assert_eq!(world.percent("b"), 100);
    }

    /// A quarter of the viewers who lie, in any pattern, cannot drain a base that is well.
    #[test]
    fn a_few_liars_drain_nothing(
        reports in 8..200_u32, lies in prop::collection::vec(0..=25_u32, 1..60),
    ) {
        let mut world = World::leading(&["a", "b"]);
        for lie in lies {
            world.seconds(1, &[("a", reports, reports * lie / 100), ("b", reports, 0)]);
            prop_assert_eq!(world.percent("a"), 100);
        }
    }

    /// Quality that changes all the time moves a base less and less.
    #[test]
    fn nothing_flaps(period_s in 1..20_u64) {
        let mut world = World::leading(&["a", "b"]);
        for _ in 0..600 / period_s {
            world.seconds(period_s, &[("a", 40, 40), ("b", 40, 0)]);
            world.seconds(period_s, &[("a", 40, 0), ("b", 40, 0)]);
        }

        let falls = world.moves.iter().filter(|it| it.to == PERCENT_MIN).count();
        prop_assert!(falls <= 10, "{} falls", falls);
    }
}

/// A machine, its time, and what it said.
struct World {
    bases: Bases,
    now: Mono,
    told: Vec<Base>,
    publications: usize,
    moves: Vec<Moved>,
}

impl World {
    fn new(names: &[&str]) -> Self {
        let configured: Vec<Base> = names.iter().map(|it| base(it, 1)).collect();
        let bases = Bases::new(&configured, PACE);
        Self { bases, now: Mono(1), told: Vec::new(), publications: 0, moves: Vec::new() }
    }

    fn leading(names: &[&str]) -> Self {
        let mut world = Self::new(names);
        world.lead();
        world
    }

    fn lead(&mut self) {
        self.bases.handle(Input::Role(Role::Leads), self.now);
        self.tick();
    }

    /// So many seconds, in each of which viewers report this: base, reports, bad ones.
    fn seconds(&mut self, seconds: u64, votes: &[(&str, u32, u32)]) {
        for _ in 0..seconds {
            self.bases.handle(Input::Gauges(gauges(1, votes)), self.now);
            self.second();
        }
    }

    fn announce(&mut self, node: u32, base: &str, (stored, unstored): (u32, u32)) {
        let base = base.to_owned();
        let store = StoreGauge { base, weight: 1, stored, unstored, store_ms: 5 };
        let gauges = BaseGauges { store: Some(store), ..gauges(node, &[]) };
        self.bases.handle(Input::Gauges(gauges), self.now);
    }

    fn second(&mut self) {
        self.now = self.now + Duration::from_secs(1);
        self.tick();
    }

    fn tick(&mut self) {
        self.bases.tick(self.now);
        while let Some(output) = self.bases.poll() {
            match output {
                Output::Publish(bases) => {
                    self.publications += 1;
                    self.told.clone_from(&bases);
                    self.bases.handle(Input::Told(bases), self.now);
                }
                Output::Moved(moved) => self.moves.push(moved),
            }
        }
    }

    fn published(&self) -> Vec<(&str, u32)> {
        self.told.iter().map(|it| (it.base.as_str(), it.weight)).collect()
    }

    fn percent(&self, base: &str) -> u8 {
        let list = self.bases.list();
        let weight = list.iter().find(|it| it.base == base).unwrap().weight;
        u8::try_from(weight).unwrap()
    }
}

fn gauges(node: u32, votes: &[(&str, u32, u32)]) -> BaseGauges {
    let bases = votes.iter().map(|&(base, reports, bad)| {
        let base = base.to_owned();
        BaseGauge { base, reports, bad, fetch_ms: 100 }
    });
    BaseGauges { node: NodeId(node), at: Wall(0), bases: bases.collect(), store: None }
}

fn base(base: &str, weight: u32) -> Base {
    Base { base: base.to_owned(), weight }
}
