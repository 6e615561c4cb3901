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
fn nothing_is_drawn_before_everything_was_read() {
    let mut world = World::new(&[1]);

    assert_eq!(world.tick(EPOCH, 0), []);

    world.epochs.handle(&Input::Lead);
    let drawn: Vec<u32> = world.tick(EPOCH, 0).iter().map(|it| it.epoch).collect();
    assert_eq!(drawn, (EPOCH - 1..=EPOCH + 6).collect::<Vec<_>>());
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
}

impl World {
    fn new(algs: &[u8]) -> Self {
        let plan = Plan::new(T, algs, 6, 120).unwrap();
        let mut epochs = Epochs::new(plan);
        epochs.handle(&Input::Masters(&[0]));
        Self { epochs, mono: 0, draws: 0 }
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
