//! Whose turn it is: every node of a view appears in proportion to its free places.
//!
//! The turns of one node are a contiguous run of positions, and the cursor strides through the
//! positions with an odd step near the golden section of their number, a power of two. So each
//! node gets exactly its share of any full round, spread evenly over it, and leaving out a node
//! or a whole machine room means leaving out an interval of positions.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Positions per node that gets turns, so that shares are exact to a sixteenth of the mean share,
/// as long as there are no more than [`POSITIONS_FINE_MAX`]; 64 KiB fit a core's own cache.
const POSITIONS_PER_NODE: usize = 16;
/// Positions per node of a larger fleet.
const POSITIONS_PER_NODE_MIN: usize = 4;
/// Positions of the smallest round.
const POSITIONS_MIN: usize = 1 << 10;
/// Positions from which on a node gets fewer.
const POSITIONS_FINE_MAX: usize = 1 << 14;
/// The golden section of 2^32.
const GOLDEN: u64 = 0x9e37_79b9;
/// Largest weight: 2^15 nodes of this weight times 2^17 positions fit a `u64`.
pub(crate) const WEIGHT_MAX: u32 = 1 << 24;

/// The turns of one view.
#[derive(Debug)]
pub(crate) struct Turns {
    cursor: Cursor,
    /// Position to entry; empty if nobody gets turns.
    order: Box<[u32]>,
    /// Entry to its first position; one more at the end.
    runs: Box<[u32]>,
    /// Number of positions = 1 << bits, if there are any.
    bits: u32,
    /// Odd, so that a full round visits every position once.
    stride: u32,
}

/// Alone in its cache line, since every answer writes to it.
#[derive(Debug)]
#[repr(align(64))]
struct Cursor(AtomicU32);

/// One turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Turn {
    /// Its number.
    pub(crate) turn_no: u32,
    /// Whose it is.
    pub(crate) entry: u32,
}

impl Turns {
    /// Gives every entry with a weight at least one turn, and the rest by weight.
    pub(crate) fn share_out(weights: &[u32], first: u32) -> Self {
        let takers = weights.iter().filter(|&&it| it > 0).count();
        let total: u64 = weights.iter().map(|&it| u64::from(it.min(WEIGHT_MAX))).sum();
        let positions = positions(takers);
        let spare = (positions - takers) as u64;

        let mut order = vec![0; positions].into_boxed_slice();
        let mut runs = Vec::with_capacity(weights.len() + 1);
        runs.push(0);
        let (mut start, mut sum, mut sure) = (0, 0, 0);
        for (entry, &weight) in (0..).zip(weights) {
            sum += u64::from(weight.min(WEIGHT_MAX));
            sure += u64::from(weight > 0);
            let end = sure + (spare * sum).checked_div(total).unwrap_or(0);
            let end = u32::try_from(end).expect("positions are at most 2^17");
            order[start as usize..end as usize].fill(entry);
            runs.push(end);
            start = end;
        }
        let bits = positions.checked_ilog2().unwrap_or(0);
        Self {
            cursor: Cursor(AtomicU32::new(first)),
            order,
            runs: runs.into(),
            bits,
            stride: golden(bits),
        }
    }

    /// Takes the next turn.
    pub(crate) fn take(&self) -> Option<Turn> {
        if self.order.is_empty() {
            return None;
        }
        let turn_no = self.cursor.0.fetch_add(1, Ordering::Relaxed);
        Some(Turn { turn_no, entry: self.order[self.position(turn_no)] })
    }

    /// Turns taken so far, from the first turn's number on.
    pub(crate) fn taken(&self) -> u32 {
        self.cursor.0.load(Ordering::Relaxed)
    }

    /// The positions of consecutive entries.
    pub(crate) fn run(&self, entries: Range<u32>) -> Range<u32> {
        self.runs[entries.start as usize]..self.runs[entries.end as usize]
    }

    /// Whose turn number `turn_no` would be without two disjoint runs, of which either may be
    /// empty; takes no turn.
    pub(crate) fn beside(&self, turn_no: u32, without: [Range<u32>; 2]) -> Option<u32> {
        let [low, high] = match without {
            [a, b] if a.start <= b.start => [a, b],
            [a, b] => [b, a],
        };
        let left = self.order.len() - low.len() - high.len();
        if left == 0 {
            return None;
        }
        let mut position = (self.position(turn_no) * left) >> self.bits;
        for run in [low, high] {
            if position >= run.start as usize {
                position += run.len();
            }
        }
        Some(self.order[position])
    }

    fn position(&self, turn_no: u32) -> usize {
        turn_no.wrapping_mul(self.stride) as usize & ((1 << self.bits) - 1)
    }
}

fn positions(takers: usize) -> usize {
    if takers == 0 {
        return 0;
    }
    let fine = (takers * POSITIONS_PER_NODE).clamp(POSITIONS_MIN, POSITIONS_FINE_MAX);
    fine.max(takers * POSITIONS_PER_NODE_MIN).next_power_of_two()
}

/// The odd number next to the golden section of `1 << bits`.
fn golden(bits: u32) -> u32 {
    u32::try_from((GOLDEN << bits) >> 32).expect("positions are at most 2^17") | 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_round_gives_each_node_its_share() {
        let turns = Turns::share_out(&[30, 10, 0, 60], 0);

        let counts = count(&turns, 4);

        assert_eq!(counts.iter().sum::<u32>(), 1024);
        assert_eq!(counts, [307, 103, 0, 614]);
    }

    #[test]
    fn an_empty_node_is_not_given_its_share_in_one_go() {
        let turns = Turns::share_out(&[1, 1, 1, 1], 7);

        let first: Vec<u32> = (0..8).map(|_| turns.take().unwrap().entry).collect();

        assert!(first.windows(3).all(|it| it[0] != it[1] || it[1] != it[2]), "{first:?}");
        assert_eq!((0..4).filter(|it| first.contains(it)).count(), 4, "{first:?}");
    }

    #[test]
    fn nobody_with_places_means_no_turns() {
        assert_eq!(Turns::share_out(&[], 0).take(), None);
        assert_eq!(Turns::share_out(&[0, 0], 0).take(), None);
        assert_eq!(Turns::share_out(&[0, 0], 0).beside(3, [0..0, 0..0]), None);
    }

    #[test]
    fn the_largest_fleet_does_not_overflow() {
        let weights = vec![u32::MAX; 1 << 15];

        let turns = Turns::share_out(&weights, u32::MAX);

        assert_eq!(turns.order.len(), 1 << 17);
        assert!(turns.take().is_some() && turns.take().is_some());
    }

    proptest! {
        #[test]
        fn shares_are_fair_and_nobody_with_a_weight_is_left_out(
            weights in prop::collection::vec(prop_oneof![Just(0), 1u32..100_000], 1..60),
            first: u32,
        ) {
            let turns = Turns::share_out(&weights, first);

            let counts = count(&turns, weights.len());

            let round = turns.order.len() as f64;
            let total: f64 = weights.iter().map(|&it| f64::from(it)).sum();
            let takers = weights.iter().filter(|&&it| it > 0).count() as f64;
            for (&weight, &count) in weights.iter().zip(&counts) {
                prop_assert_eq!(weight > 0, count > 0);
                let fair = if weight == 0 { 0.0 } else {
                    1.0 + f64::from(weight) / total * (round - takers)
                };
                prop_assert!((f64::from(count) - fair).abs() <= 1.0, "{} for {}", count, fair);
            }
        }

        #[test]
        fn beside_leaves_out_what_it_must_and_reaches_the_rest(
            weights in prop::collection::vec(0u32..5, 1..12),
            a in 0usize..12,
            b in 0usize..12,
        ) {
            let turns = Turns::share_out(&weights, 0);
            let run = |it: usize| match u32::try_from(it) {
                Ok(entry) if it < weights.len() => turns.run(entry..entry + 1),
                _ => 0..0,
            };
            let other = if a == b { 0..0 } else { run(b) };

            let reached: std::collections::BTreeSet<u32> =
                (0..2048).filter_map(|it| turns.beside(it, [run(a), other.clone()])).collect();

            let rest = (0..weights.len()).filter(|&it| weights[it] > 0 && it != a && it != b);
            let rest: std::collections::BTreeSet<u32> =
                rest.map(|it| u32::try_from(it).unwrap()).collect();
            prop_assert_eq!(reached, rest);
        }
    }

    /// How often each entry is met in one full round.
    fn count(turns: &Turns, entries: usize) -> Vec<u32> {
        let mut counts = vec![0; entries];
        for turn in (0..turns.order.len()).map_while(|_| turns.take()) {
            counts[turn.entry as usize] += 1;
        }
        counts
    }
}
