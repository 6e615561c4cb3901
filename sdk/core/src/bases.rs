//! Which segment base a client asks first: by weight, fixed for this client.

use proto::head::Base;

/// Bases a client keeps; more are ignored.
pub const BASES_MAX: usize = 8;

/// The bases in the order this client uses them.
///
/// The first is drawn by weight (`draw` is uniform in 0..1); the others follow as they stand, for
/// retries. The same draw gives the same base as long as the weights stay, so a client keeps warm
/// connections, and a change of weights moves only as many clients as it must.
#[must_use]
pub fn rank(bases: &[Base], draw: f64) -> Vec<String> {
    let bases = &bases[..bases.len().min(BASES_MAX)];
    let total: f64 = bases.iter().map(|it| f64::from(it.weight)).sum();
    let mut rest = draw.clamp(0.0, 1.0) * total;
    let mut first = bases.iter().position(|it| it.weight > 0).unwrap_or(0);
    for (index, base) in bases.iter().enumerate().filter(|(_, it)| it.weight > 0) {
        first = index;
        rest -= f64::from(base.weight);
        if rest < 0.0 {
            break;
        }
    }
    (0..bases.len()).map(|it| bases[(first + it) % bases.len()].base.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases(weights: &[u32]) -> Vec<Base> {
        let base = |(index, &weight): (usize, &u32)| Base { base: index.to_string(), weight };
        weights.iter().enumerate().map(base).collect()
    }

    #[test]
    fn the_first_base_follows_the_weights_and_all_others_are_there_for_retries() {
        let bases = bases(&[3, 0, 1]);

        assert_eq!(rank(&bases, 0.0), ["0", "1", "2"]);
        assert_eq!(rank(&bases, 0.74), ["0", "1", "2"]);
        assert_eq!(rank(&bases, 0.75), ["2", "0", "1"]);
        assert_eq!(rank(&bases, 1.0), ["2", "0", "1"]);
    }

    #[test]
    fn no_bases_and_no_weights_are_no_trouble() {
        assert!(rank(&[], 0.5).is_empty());
        assert_eq!(rank(&bases(&[0, 0]), 0.9), ["0", "1"]);
    }
}
