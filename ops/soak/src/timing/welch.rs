//! Welch's t test on times, with the slowest ones cut off in several ways.

/// Shares of the samples that are kept, the fastest first: what interrupts a call adds to its time
/// and says nothing about it, and no single share is right for every machine.
const KEPT_PERCENT: [usize; 6] = [50, 75, 90, 95, 99, 100];

/// One of two kinds of input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    A,
    B,
}

/// How long one input took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) class: Class,
    pub(super) ns: u64,
}

/// The largest |t| over all shares.
pub(super) fn t_max(times: &[Timed]) -> f64 {
    let mut sorted: Vec<u64> = times.iter().map(|it| it.ns).collect();
    sorted.sort_unstable();
    let t_kept = |percent: usize| {
        let longest = sorted.get((sorted.len() * percent / 100).saturating_sub(1))?;
        Some(t(times.iter().filter(|it| it.ns <= *longest)).abs())
    };
    KEPT_PERCENT.into_iter().filter_map(t_kept).fold(0.0, f64::max)
}

/// Welch's t of the two classes; 0 where one has fewer than two samples or neither varies.
fn t<'a>(times: impl Iterator<Item = &'a Timed>) -> f64 {
    let (mut a, mut b) = (Moments::default(), Moments::default());
    for timed in times {
        let moments = match timed.class {
            Class::A => &mut a,
            Class::B => &mut b,
        };
        moments.add(timed.ns as f64);
    }
    let variance = a.variance_of_mean() + b.variance_of_mean();
    if variance > 0.0 { (a.mean - b.mean) / variance.sqrt() } else { 0.0 }
}

/// Mean and spread, added up in one pass (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
    }

    fn variance_of_mean(&self) -> f64 {
        if self.count < 2.0 { 0.0 } else { self.squares / (self.count - 1.0) / self.count }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Times that vary by 100 ns, one in a hundred by much more; class B takes `more` longer.
    fn times(more: u64) -> Vec<Timed> {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut timed = || {
            let class = if rng.random() { Class::A } else { Class::B };
            let noise = rng.random_range(0..100);
            let spike = if rng.random_ratio(1, 100) { rng.random_range(0..100_000) } else { 0 };
            let leak = if class == Class::B { more } else { 0 };
            Timed { class, ns: 500 + noise + spike + leak }
        };
        (0..50_000).map(|_| timed()).collect()
    }

    #[test]
    fn classes_that_do_not_differ_have_a_small_t() {
        assert!(t_max(&times(0)) < 4.5);
    }

    #[test]
    fn a_difference_far_below_the_noise_is_found() {
        assert!(t_max(&times(3)) > 4.5);
    }

    #[test]
    fn t_is_what_the_formula_gives() {
        let timed = |class, ns| Timed { class, ns };
        let a = [1, 2, 3].map(|ns| timed(Class::A, ns));
        let b = [4, 6, 8].map(|ns| timed(Class::B, ns));
        let all = [a, b].concat();

        // Means 2 and 6, variances 1 and 4 over three samples each: -4 / sqrt(5/3).
        assert!((t(all.iter()) + 4.0 / (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!(t(a.iter()).abs() < f64::MAX);
        assert!(t_max(&[]) == 0.0);
    }
}
