//! The epochs' machine: what it draws, when, and what it never does.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::convert::Infallible;

use auth_core::epochs::{Epochs, Input, Now, Plan, PlanError};
use proptest::prelude::*;
use proto::control::EpochFact;
use proto::time::{Mono, Wall};

const T: u32 = 600;
const EPOCH: u32 = 2_975_000;

#[test]
fn only_the_leader_draws() {
    let mut world = World::new(&[1]);

    assert_eq!(world.tick(EPOCH, 0), []);

    world.epochs.handle(&Input::Lead);
    let drawn: Vec<u32> = world.tick(EPOCH, 0).iter().map(|it| it.epoch).collect();
    assert_eq!(drawn, (EPOCH - 1..=EPOCH + 6).collect::<Vec<_>>());

    world.epochs.handle(&Input::Follow);
    world.mono += 1000;
    assert_eq!(world.tick(EPOCH + 3, 0), []);
}

#[test]
fn a_follower_puts_nothing_out_that_it_drafted_as_a_leader() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Lead);
    let now = world.now(EPOCH, 0);
    world.epochs.tick(now, || Ok::<_, Infallible>([1; 32])).unwrap();

    world.epochs.handle(&Input::Follow);

    assert_eq!(world.epochs.poll(), None);
}

#[test]
fn without_masters_nothing_is_drawn() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Masters(&[]));
    world.epochs.handle(&Input::Lead);

    assert_eq!(world.tick(EPOCH, 0), []);
}

/// Compaction keeps the last fact of an epoch: it must be the one that counts.
#[test]
fn what_another_fact_hides_is_put_out_again() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Lead);
    let drawn = world.tick(EPOCH, 0);
    drawn.iter().for_each(|it| world.epochs.handle(&Input::Fact(it)));
    let other_random = EpochFact { random: "bb".repeat(32), ..drawn[3].clone() };
    let other_alg = EpochFact { alg: 2, ..drawn[4].clone() };
    let fewer_masters = EpochFact { kids: vec![], ..drawn[5].clone() };

    for hiding in [&other_random, &other_alg, &fewer_masters] {
        world.epochs.handle(&Input::Fact(hiding));
    }

    assert_eq!(world.tick(EPOCH, 1), drawn[3..=5]);
    drawn[3..=5].iter().for_each(|it| world.epochs.handle(&Input::Fact(it)));
    world.mono += 1000;
    assert_eq!(world.tick(EPOCH, 2), []);
}

#[test]
fn a_new_master_mints_where_links_have_half_an_epoch_and_is_a_reserve_before() {
    for (second, first_minted) in [(0, EPOCH + 1), (300, EPOCH + 1), (301, EPOCH + 2)] {
        let mut world = World::with_epochs(EPOCH);

        world.epochs.handle(&Input::Masters(&[1, 0]));
        let out = world.tick(EPOCH, second);

        let kids: Vec<_> = out.iter().map(|it| (it.epoch, it.kids.clone())).collect();
        let expected = |epoch| if epoch < first_minted { vec![0, 1] } else { vec![1, 0] };
        assert_eq!(kids, (EPOCH..=EPOCH + 6).map(|it| (it, expected(it))).collect::<Vec<_>>());
        let same = |it: &EpochFact| {
            let before = world.log.get(&it.epoch).unwrap();
            (&it.random, it.alg) == (&before.random, before.alg)
        };
        assert!(out.iter().all(same));
    }
}

#[test]
fn two_masters_at_once_are_both_added_and_nothing_is_added_twice() {
    let mut world = World::with_epochs(EPOCH);

    world.epochs.handle(&Input::Masters(&[2, 1, 0]));
    let out = world.turn(EPOCH, 0);
    let after = world.turn(EPOCH, 1);

    assert_eq!(out[0].kids, [0, 2, 1]);
    assert!(out[1..].iter().all(|it| it.kids == [2, 1, 0]));
    assert_eq!(after, []);
}

#[test]
fn epochs_drawn_later_name_the_newest_master_only() {
    let mut world = World::with_epochs(EPOCH);
    world.epochs.handle(&Input::Masters(&[1, 0]));
    world.turn(EPOCH, 0);

    let out = world.turn(EPOCH + 1, 0);

    assert_eq!(
        out.iter().map(|it| (it.epoch, it.kids.as_slice())).collect::<Vec<_>>(),
        [(EPOCH + 7, [1].as_slice())]
    );
}

#[test]
fn a_master_retires_an_epoch_after_the_last_that_can_be_verified_with_it() {
    let mut world = World::with_epochs(EPOCH);
    world.epochs.handle(&Input::Masters(&[1, 0]));

    for epoch in EPOCH..=EPOCH + 7 {
        world.turn(epoch, 599);
        assert!(world.retire().is_empty(), "{epoch}");
    }
    world.turn(EPOCH + 8, 0);
    assert!(world.retire().is_empty());
    world.mono += 599_999;
    world.turn(EPOCH + 8, 599);
    assert!(world.retire().is_empty());
    world.mono += 1;
    world.turn(EPOCH + 9, 0);

    assert_eq!(world.retire(), vec![0_u8]);
    assert!(world.retire().is_empty());
}

#[test]
fn a_clock_that_jumps_and_comes_back_retires_nobody() {
    let mut world = World::with_epochs(EPOCH);
    world.epochs.handle(&Input::Masters(&[1, 0]));
    world.turn(EPOCH, 0);

    world.turn(EPOCH + 1000, 0);
    world.mono += 300_000;
    world.turn(EPOCH + 1000, 300);
    world.turn(EPOCH, 300);
    world.mono += 900_000;
    world.turn(EPOCH, 301);

    assert!(world.retire().is_empty());
}

#[test]
fn what_is_published_is_not_drawn() {
    let mut world = World::new(&[1]);
    for epoch in [EPOCH - 1, EPOCH + 2] {
        world.epochs.handle(&Input::Fact(&fact(epoch, T)));
    }

    world.epochs.handle(&Input::Lead);
    let drawn: Vec<u32> = world.tick(EPOCH, 0).iter().map(|it| it.epoch).collect();

    let missing = [EPOCH, EPOCH + 1, EPOCH + 3, EPOCH + 4, EPOCH + 5, EPOCH + 6];
    assert_eq!(drawn, missing);
}

#[test]
fn a_fact_of_another_interval_does_not_count() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Fact(&fact(EPOCH, 300)));

    world.epochs.handle(&Input::Lead);

    assert_eq!(world.tick(EPOCH, 0).len(), 8);
}

#[test]
fn a_draft_is_put_out_again_unchanged_until_it_comes_back() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Lead);

    let first = world.tick(EPOCH, 0);
    world.mono += 999;
    let early = world.tick(EPOCH, 0);
    world.mono += 1;
    let again = world.tick(EPOCH, 0);
    for fact in &first {
        world.epochs.handle(&Input::Fact(fact));
    }
    world.mono += 1000;
    let after = world.tick(EPOCH, 0);

    assert_eq!(early, []);
    assert_eq!(again, first);
    assert_eq!(after, []);
}

#[test]
fn another_s_epoch_ends_the_draft() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Lead);
    world.tick(EPOCH, 0);

    world.epochs.handle(&Input::Fact(&fact(EPOCH, T)));
    world.mono += 1000;

    assert!(world.tick(EPOCH, 0).iter().all(|it| it.epoch != EPOCH));
}

#[test]
fn each_new_epoch_brings_one_more_at_the_far_end() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Lead);
    for fact in world.tick(EPOCH, 0) {
        world.epochs.handle(&Input::Fact(&fact));
    }

    let within = world.tick(EPOCH, 599);
    let next = world.tick(EPOCH + 1, 0);

    assert_eq!(within, []);
    assert_eq!(next.iter().map(|it| it.epoch).collect::<Vec<_>>(), [EPOCH + 7]);
}

/// With a clock that was ahead for a while, and is right again.
#[test]
fn an_epoch_that_was_published_too_early_is_not_drawn_again() {
    let mut world = World::new(&[1]);
    let far = EPOCH + 1000;
    world.epochs.handle(&Input::Fact(&fact(far, T)));
    world.epochs.handle(&Input::Lead);
    for out in world.tick(EPOCH, 0) {
        world.epochs.handle(&Input::Fact(&out));
    }

    let ahead = world.tick(far, 0);
    let back = world.tick(EPOCH, 0);

    assert!(ahead.iter().all(|it| it.epoch != far));
    assert_eq!(back, []);
}

#[test]
fn what_was_forgotten_is_not_drawn_either() {
    let mut world = World::new(&[1]);
    for epoch in EPOCH..EPOCH + 16_385 {
        world.epochs.handle(&Input::Fact(&fact(epoch, T)));
    }
    world.epochs.handle(&Input::Lead);

    assert_eq!(world.tick(EPOCH, 0), []);
    assert_eq!(world.tick(EPOCH + 16_380, 0).len(), 2);
    assert_eq!(world.tick(EPOCH - 100, 0), []);
}

#[test]
fn all_algorithms_of_the_plan_come_up() {
    let mut world = World::new(&[1, 3]);
    world.epochs.handle(&Input::Lead);

    let algs: Vec<u8> = world.tick(EPOCH, 0).iter().map(|it| it.alg).collect();

    assert!(algs.contains(&1) && algs.contains(&3) && !algs.contains(&2), "{algs:?}");
}

#[test]
fn a_draw_that_fails_is_tried_again() {
    let mut world = World::new(&[1]);
    world.epochs.handle(&Input::Lead);

    let failed = world.epochs.tick(world.now(EPOCH, 0), || Err("no randomness"));

    assert_eq!(failed, Err("no randomness"));
    assert_eq!(world.epochs.poll(), None);
    assert_eq!(world.tick(EPOCH, 0).len(), 8);
}

#[test]
fn plans_that_cannot_be_kept_are_refused() {
    let plan = |interval_s, algs: &[u8], ahead, ttl_s| {
        Plan::new(interval_s, algs, ahead, ttl_s).map(|_| ())
    };

    assert_eq!(plan(240, &[1], 1, 120), Ok(()));
    assert_eq!(plan(239, &[1], 1, 120), Err(PlanError::Interval { interval_s: 239, ttl_s: 120 }));
    assert_eq!(plan(600, &[1], 1, 121), Err(PlanError::Ttl { ttl_s: 121 }));
    assert_eq!(plan(600, &[1], 1, 0), Err(PlanError::Ttl { ttl_s: 0 }));
    assert_eq!(plan(600, &[1], 0, 60), Err(PlanError::Ahead { ahead: 0 }));
    assert_eq!(plan(600, &[1], 17, 60), Err(PlanError::Ahead { ahead: 17 }));
    assert_eq!(plan(600, &[], 6, 60), Err(PlanError::NoAlg));
    assert_eq!(plan(600, &[1, 4], 6, 60), Err(PlanError::Alg { alg: 4 }));
}

proptest! {
    /// The clock is stepped to and fro, publishing fails and others publish: an epoch that was published keeps its
    /// first fact, and once the bus works, none of the window is missing.
    #[test]
    fn no_published_epoch_is_ever_put_out_again(
        steps in proptest::collection::vec((-20..20_i32, any::<bool>(), any::<bool>()), 1..40),
    ) {
        let mut world = World::new(&[1, 2, 3]);
        let mut log: BTreeMap<u32, EpochFact> = BTreeMap::new();
        let mut epoch = EPOCH;
        world.epochs.handle(&Input::Lead);
        for (jump, is_bus_there, is_other_there) in steps {
            epoch = epoch.strict_add_signed(jump);
            world.mono += 1000;
            for out in world.tick(epoch, 1) {
                prop_assert!(!log.contains_key(&out.epoch));
                if is_bus_there {
                    world.epochs.handle(&Input::Fact(&out));
                    log.insert(out.epoch, out);
                }
            }
            if is_other_there && !log.contains_key(&(epoch + 1)) {
                let other = fact(epoch + 1, T);
                world.epochs.handle(&Input::Fact(&other));
                log.insert(other.epoch, other);
            }
        }
        world.mono += 1000;
        for out in world.tick(epoch, 2) {
            prop_assert!(!log.contains_key(&out.epoch));
            log.insert(out.epoch, out);
        }

        prop_assert!((epoch - 1..=epoch + 6).all(|it| log.contains_key(&it)));
    }
}

struct World {
    epochs: Epochs,
    mono: u64,
    draws: u8,
    log: BTreeMap<u32, EpochFact>,
}

impl World {
    fn new(algs: &[u8]) -> Self {
        let plan = Plan::new(T, algs, 6, 120).unwrap();
        let mut epochs = Epochs::new(plan);
        epochs.handle(&Input::Masters(&[0]));
        Self { epochs, mono: 0, draws: 0, log: BTreeMap::new() }
    }

    /// A leader whose epochs are published.
    fn with_epochs(epoch: u32) -> Self {
        let mut world = Self::new(&[1, 2, 3]);
        world.epochs.handle(&Input::Lead);
        world.turn(epoch, 0);
        world
    }

    /// A tick, of which everything comes back from the bus.
    fn turn(&mut self, epoch: u32, second: u32) -> Vec<EpochFact> {
        let out = self.tick(epoch, second);
        for fact in &out {
            self.epochs.handle(&Input::Fact(fact));
            self.log.insert(fact.epoch, fact.clone());
        }
        self.tick(epoch, second);
        out
    }

    fn retire(&mut self) -> Vec<u8> {
        self.epochs.retire(Mono(self.mono))
    }

    fn now(&self, epoch: u32, second: u32) -> Now {
        Now { mono: Mono(self.mono), wall: Wall(u64::from(epoch * T + second) * 1000) }
    }

    fn tick(&mut self, epoch: u32, second: u32) -> Vec<EpochFact> {
        let now = self.now(epoch, second);
        let draws = &mut self.draws;
        let draw = || {
            *draws = draws.wrapping_add(1);
            Ok::<_, Infallible>([*draws; 32])
        };
        self.epochs.tick(now, draw).unwrap();
        std::iter::from_fn(|| self.epochs.poll()).collect()
    }
}

fn fact(epoch: u32, interval_s: u32) -> EpochFact {
    EpochFact { epoch, interval_s, alg: 1, random: "a5".repeat(32), kids: vec![0] }
}
