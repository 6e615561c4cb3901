//! How the lanes share a budget.

use proto::item::Lane;

/// Guaranteed percentages of a room's budget; what a lane leaves unused goes to the others,
/// first lane first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shares {
    percents: [u32; 4],
}

impl Shares {
    /// Shares in the order of [`Lane::ALL`]; `None` if they promise more than 100 %.
    #[must_use]
    pub fn new(percents: [u32; 4]) -> Option<Self> {
        let sum = percents.iter().fold(0_u32, |sum, &it| sum.saturating_add(it));
        (sum <= 100).then_some(Self { percents })
    }

    /// A lane's guaranteed percentage.
    pub(crate) const fn percent(&self, lane: Lane) -> u32 {
        self.percents[index(lane)]
    }

    /// A lane's guaranteed part of `amount`.
    #[must_use]
    pub fn of(&self, lane: Lane, amount: u32) -> u32 {
        let part = u64::from(amount) * u64::from(self.percents[index(lane)]) / 100;
        u32::try_from(part).unwrap_or(amount)
    }
}

impl Default for Shares {
    fn default() -> Self {
        Self { percents: [10, 30, 20, 40] }
    }
}

/// A lane's place in arrays over [`Lane::ALL`].
pub(crate) const fn index(lane: Lane) -> usize {
    match lane {
        Lane::Notice => 0,
        Lane::HighGift => 1,
        Lane::LowGift => 2,
        Lane::Comment => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_promise_at_most_everything() {
        assert!(Shares::new([25, 25, 25, 25]).is_some());
        assert_eq!(Shares::new([25, 25, 25, 26]), None);
        assert_eq!(Shares::new([u32::MAX; 4]), None);
    }

    #[test]
    fn every_lane_has_its_own_index() {
        for (at, lane) in Lane::ALL.into_iter().enumerate() {
            assert_eq!(index(lane), at);
        }
    }
}
