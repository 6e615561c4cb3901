//! Epochs of masters that were declared void.

use std::collections::BTreeSet;

/// Ranges kept; an operator declares one after a theft.
pub const VOIDS_MAX: usize = 64;

/// Which epochs of which masters are void. Beyond [`VOIDS_MAX`] ranges, the one that ends first
/// gives way.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Voids(BTreeSet<Void>);

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Void {
    /// First, so that the range that matters least is the first of the set.
    to_epoch: u32,
    from_epoch: u32,
    kid: u8,
}

impl Voids {
    /// Declares epochs of a master void, both ends included.
    pub fn add(&mut self, kid: u8, from_epoch: u32, to_epoch: u32) {
        self.0.insert(Void { to_epoch, from_epoch, kid });
        if self.0.len() > VOIDS_MAX {
            self.0.pop_first();
        }
    }

    /// Whether an epoch of a master was declared void.
    #[must_use]
    #[inline]
    pub fn is_void(&self, kid: u8, epoch: u32) -> bool {
        // As a rule none is, and every token asks.
        !self.0.is_empty()
            && self
                .0
                .iter()
                .any(|it| it.kid == kid && (it.from_epoch..=it.to_epoch).contains(&epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_of_one_master_and_has_both_its_ends() {
        let mut voids = Voids::default();

        voids.add(1, 5, 7);

        assert!(voids.is_void(1, 5) && voids.is_void(1, 7));
        assert!(!voids.is_void(1, 4) && !voids.is_void(1, 8) && !voids.is_void(2, 6));
    }

    #[test]
    fn of_too_many_ranges_the_one_that_ends_first_is_forgotten() {
        let mut voids = Voids::default();

        for epoch in (1..=65).rev() {
            voids.add(0, epoch, epoch);
        }

        assert!(!voids.is_void(0, 1));
        assert!((2..=65).all(|it| voids.is_void(0, it)));
    }
}
