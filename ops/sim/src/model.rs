//! A link's machines beside a simple picture of them: whatever happens, in any order, both agree.
//!
//! Steps are drawn from a seed: viewers log in, join, leave, switch, come back, are kicked, expire
//! or read slowly, while rooms are flushed, sealed, switched and taken over. The picture says who is
//! where, who is counted, what each session must get (in order, nothing twice, nothing protected
//! left out, and as many skipped as it was told), how a session resumes, and which leaves the others
//! hear of. A run that fails is shrunk to the steps that it needs.

mod due;
mod queue;
mod step;
mod subject;
mod timeline;
mod world;

use std::collections::BTreeMap;
use std::fmt;

use proto::frame::Resumed;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use step::Step;
use world::World;

/// What happened in a run: a check of what never happens would hold for nothing.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    /// Sessions that began.
    pub logins: u64,
    /// Items that sessions got.
    pub items: u64,
    /// Items that slow sessions skipped.
    pub skipped: u64,
    /// Sessions that came back and missed nothing.
    pub recovered: u64,
    /// Sessions that came back and were told of a gap.
    pub gaps: u64,
    /// Switches of a room's heat.
    pub turns: u64,
    /// Leaves that others heard of.
    pub leaves: u64,
    /// Leaves that they did not, for want of places.
    pub untold: u64,
    /// Sessions that the node ended, by reason.
    pub closes: BTreeMap<&'static str, u64>,
}

/// A run in which node and picture differ.
#[derive(Clone, Debug)]
pub struct Differs {
    /// Seed of the run.
    pub seed: u64,
    /// What differs.
    pub what: String,
    /// Steps that lead there; no one of them can be left out.
    steps: Vec<Step>,
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, what, steps } = self;
        write!(f, "seed {seed}: {what}; after {} steps:", steps.len())?;
        steps.iter().try_for_each(|it| write!(f, "\n  {it:?}"))
    }
}

impl std::error::Error for Differs {}

impl Covered {
    fn resume(&mut self, resumed: Resumed) {
        match resumed {
            Resumed::Recovered { .. } => self.recovered += 1,
            Resumed::Gap { .. } => self.gaps += 1,
            Resumed::Fresh => {}
        }
    }

    /// Adds another run.
    pub fn add(&mut self, other: &Self) {
        self.logins += other.logins;
        self.items += other.items;
        self.skipped += other.skipped;
        self.recovered += other.recovered;
        self.gaps += other.gaps;
        self.turns += other.turns;
        self.leaves += other.leaves;
        self.untold += other.untold;
        for (code, times) in &other.closes {
            *self.closes.entry(code).or_default() += times;
        }
    }
}

/// Does so many steps drawn from a seed.
///
/// # Errors
/// When node and picture differ: with the steps that lead there.
pub fn check(seed: u64, steps: usize) -> Result<Covered, Box<Differs>> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let steps: Vec<Step> = (0..steps).map(|_| Step::draw(&mut rng)).collect();
    run(&steps).map_err(|(at, _)| {
        let steps = shrunk(steps[..steps.len().min(at + 1)].to_vec());
        let what = run(&steps).err().map(|it| it.1).unwrap_or_default();
        Box::new(Differs { seed, what, steps })
    })
}

/// Does the steps; gives the number of the one that fails, and why.
fn run(steps: &[Step]) -> Result<Covered, (usize, String)> {
    let mut world = World::new();
    for (number, step) in steps.iter().enumerate() {
        world.take(step).map_err(|why| (number, why))?;
    }
    world.finish().map_err(|why| (steps.len(), why))?;
    Ok(world.covered)
}

/// Leaves out steps, many at a time and then few, as long as the rest still fails.
fn shrunk(mut steps: Vec<Step>) -> Vec<Step> {
    let mut piece = steps.len().div_ceil(2).max(1);
    loop {
        let before = steps.len();
        let mut from = 0;
        while from < steps.len() {
            let to = (from + piece).min(steps.len());
            let rest = [&steps[..from], &steps[to..]].concat();
            if run(&rest).is_err() {
                steps = rest;
            } else {
                from = to;
            }
        }
        if piece == 1 && steps.len() == before {
            return steps;
        }
        piece = piece.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_and_picture_agree_whatever_happens() {
        let mut covered = Covered::default();
        for seed in 0..16 {
            match check(seed, 3_000) {
                Ok(it) => covered.add(&it),
                Err(differs) => panic!("{differs}"),
            }
        }

        let often = [covered.items, covered.skipped, covered.recovered, covered.gaps];
        assert!(often.iter().all(|it| *it > 100), "{covered:?}");
        let all = [covered.logins, covered.turns, covered.leaves, covered.untold];
        assert!(all.iter().all(|it| *it > 10), "{covered:?}");
        for code in ["kicked", "expired", "silent", "slow"] {
            assert!(covered.closes.contains_key(code), "none was {code}: {covered:?}");
        }
    }

    #[test]
    fn a_failing_run_is_shrunk_to_the_steps_that_it_needs() {
        let mut rng = SmallRng::seed_from_u64(1);
        let steps: Vec<Step> = (0..500).map(|_| Step::draw(&mut rng)).collect();

        assert!(run(&steps).is_ok());
        assert!(shrunk(Vec::new()).is_empty());
    }
}
