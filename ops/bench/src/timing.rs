//! How often something can be done in a second of one core.

use kit::clock::Clock;

/// Rounds of a measurement; the median counts.
const ROUNDS: usize = 5;
/// Length of a round.
const ROUND_US: u64 = 200_000;

/// Calls of `work` a second, on this thread: the median of five rounds of 0.2 s each.
pub(crate) fn per_second(clock: &Clock, mut work: impl FnMut()) -> f64 {
    let mut rates: Vec<f64> = (0..ROUNDS).map(|_| round(clock, &mut work)).collect();
    median(&mut rates)
}

/// The middle of an odd number of values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn round(clock: &Clock, work: &mut impl FnMut()) -> f64 {
    const CALLS: u32 = 256;
    let start = clock.micros();
    let mut calls = 0.0;
    loop {
        for _ in 0..CALLS {
            work();
        }
        calls += f64::from(CALLS);
        let elapsed = clock.micros() - start;
        if elapsed >= ROUND_US {
            return calls * 1e6 / std::time::Duration::from_micros(elapsed).as_micros() as f64;
        }
    }
}
