//! How often something can be done in a second of one core.

use std::time::Duration;

use crate::cpu;

/// Rounds of a measurement; the median counts.
pub(crate) const ROUNDS: usize = 5;
/// CPU time of a round.
const ROUND: Duration = Duration::from_millis(200);

/// Calls of `work` a second of this thread's CPU time: the median of five rounds of 0.2 s each.
pub(crate) fn per_second(mut work: impl FnMut()) -> f64 {
    let mut rates: Vec<f64> = (0..ROUNDS).map(|_| round(&mut work)).collect();
    median(&mut rates)
}

/// As [`per_second`], for several at once: rounds of each in turn, so that what disturbs the machine
/// for a while disturbs all alike.
pub(crate) fn interleaved(works: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut rates = vec![Vec::new(); works.len()];
    for _ in 0..ROUNDS {
        for (work, rates) in works.iter_mut().zip(&mut rates) {
            rates.push(round(work));
        }
    }
    rates.iter_mut().map(|it| median(it)).collect()
}

/// The middle of an odd number of values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn round(work: &mut impl FnMut()) -> f64 {
    const CALLS: u32 = 256;
    let start = cpu::thread();
    let mut calls = 0.0;
    loop {
        for _ in 0..CALLS {
            work();
        }
        calls += f64::from(CALLS);
        let used = cpu::thread() - start;
        if used >= ROUND {
            return calls / used.as_secs_f64();
        }
    }
}
