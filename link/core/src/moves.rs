//! Which orders to move a node's sessions still count.

use std::time::Duration;

use proto::time::Wall;

/// Time that an order may be late on the bus, beyond the time in which sessions move.
const LATE_MAX: Duration = Duration::from_secs(60);
/// How far the clock of whoever decided may be ahead.
const SKEW_MAX: Duration = Duration::from_secs(30);

/// The orders so far.
#[derive(Debug)]
pub struct Moves {
    /// When the last was decided that counted, or when the node began.
    last: Wall,
}

impl Moves {
    /// Nobody was moved since `start`; what was decided before was for sessions that are gone.
    #[must_use]
    pub const fn new(start: Wall) -> Self {
        Self { last: start }
    }

    /// Whether an order decided at `at`, to move sessions within `window`, counts: it is newer than
    /// the last, and of now. An old one comes back when the bus was away or is read again.
    pub fn take(&mut self, at: Wall, window: Duration, now: Wall) -> bool {
        let is_of_now = now.since(at) <= window + LATE_MAX && at.since(now) <= SKEW_MAX;
        let counts = is_of_now && at > self.last;
        if counts {
            self.last = at;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(20);

    #[test]
    fn an_order_counts_once_and_only_if_it_is_newer() {
        let mut moves = Moves::new(Wall(1_000_000));

        assert!(moves.take(Wall(1_010_000), WINDOW, Wall(1_010_050)));
        assert!(!moves.take(Wall(1_010_000), WINDOW, Wall(1_010_100)), "read again");
        assert!(!moves.take(Wall(1_009_000), WINDOW, Wall(1_010_100)), "overtaken");
        assert!(moves.take(Wall(1_040_000), WINDOW, Wall(1_040_000)));
    }

    #[test]
    fn what_was_decided_before_a_restart_counts_no_more() {
        let mut moves = Moves::new(Wall(1_000_000));

        assert!(!moves.take(Wall(999_000), WINDOW, Wall(1_000_500)));
        assert!(!moves.take(Wall(0), WINDOW, Wall(1_000_500)));
    }

    #[test]
    fn what_an_outage_of_the_bus_held_back_counts_no_more() {
        let mut moves = Moves::new(Wall(1_000_000));

        assert!(!moves.take(Wall(1_010_000), WINDOW, Wall(1_090_001)));
        assert!(moves.take(Wall(1_010_000), WINDOW, Wall(1_090_000)));
    }

    #[test]
    fn one_from_far_ahead_does_not_keep_the_next_ones_out() {
        let mut moves = Moves::new(Wall(1_000_000));

        assert!(!moves.take(Wall(u64::MAX), WINDOW, Wall(1_000_000)));
        assert!(!moves.take(Wall(1_030_001), WINDOW, Wall(1_000_000)));
        assert!(moves.take(Wall(1_030_000), WINDOW, Wall(1_000_000)));
    }
}
