//! Whose turn it is: every entry of a plane appears in proportion to its weight.
//!
//! Entries are intervals on a line, as long as their weights. A turn's number, multiplied by the
//! golden section, is a place on the line: so each entry gets its share of any run of turns,
//! evenly spread over it, and to leave out a node, a machine room or whole regions means to leave
//! out intervals. A guide leads from a place to its entry in one or two steps.

use std::ops::Range;

/// The golden section of 2^32.
const GOLDEN: u32 = 0x9e37_79b9;
/// Entries looked at from where the guide leads to, before the rest is searched.
const STEPS: usize = 3;
/// A line's length in bits, less one; the 2^19 entries of the largest plane may each add one.
const LENGTH_BITS: u32 = 31;

/// The turns of one plane.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Entry to its start; one more at the end, and behind it what no place reaches.
    starts: Box<[u32]>,
    /// Equal parts of the line to the entry where the part starts; one more at the end.
    guide: Box<[u32]>,
    /// The length of a part is 1 << shift.
    shift: u32,
}

impl Turns {
    /// Lays out the line. An entry that has a weight has a length.
    pub(crate) fn lay_out(weights: &[u32]) -> Self {
        let total: u64 = weights.iter().copied().map(u64::from).sum();
        let coarser = (u64::BITS - total.leading_zeros()).saturating_sub(LENGTH_BITS);
        let mut starts = Vec::with_capacity(weights.len() + 1 + STEPS);
        let mut end = 0;
        starts.push(end);
        starts.extend(weights.iter().map(|&weight| {
            end += (weight >> coarser).max(weight.min(1));
            end
        }));

        let parts = weights.len().next_power_of_two().ilog2();
        let shift = (u32::BITS - end.leading_zeros()).saturating_sub(parts);
        let guide = guide(&starts, shift);
        starts.resize(starts.len() + STEPS, u32::MAX);
        Self { starts: starts.into(), guide, shift }
    }

    /// The part of the line that consecutive entries take.
    #[inline]
    pub(crate) fn stretch(&self, entries: &Range<u32>) -> Range<u32> {
        self.starts[entries.start as usize]..self.starts[entries.end as usize]
    }

    /// Whose turn number `turn_no` is on a stretch, which must not be empty.
    #[inline]
    pub(crate) fn turn(&self, stretch: &Range<u32>, turn_no: u32) -> u32 {
        self.at(stretch, turn_no.wrapping_mul(GOLDEN))
    }

    /// The entry at a part of the way, of 2^32, through a stretch, which must not be empty.
    #[inline]
    pub(crate) fn at(&self, stretch: &Range<u32>, part: u32) -> u32 {
        self.find(stretch.start + scale(part, stretch.end - stretch.start))
    }

    /// The entry at a part of the way, of 2^32, through what is left of a stretch without a part of
    /// it, which may be empty.
    #[inline]
    pub(crate) fn outside(
        &self,
        stretch: &Range<u32>,
        without: &Range<u32>,
        part: u32,
    ) -> Option<u32> {
        let gone = without.end - without.start;
        let left = stretch.end - stretch.start - gone;
        if left == 0 {
            return None;
        }
        let place = stretch.start + scale(part, left);
        let is_behind = place >= without.start;
        Some(self.find(place + u32::from(is_behind) * gone))
    }

    /// The entry at a part of the way, of 2^32, through what is left of `entries` without some
    /// intervals, which must be in order and disjoint.
    #[inline]
    pub(crate) fn beside<'a>(
        &self,
        entries: &Range<u32>,
        without: impl Iterator<Item = &'a Range<u32>> + Clone,
        part: u32,
    ) -> Option<u32> {
        let inside = |it: &&Range<u32>| entries.start <= it.start && it.end <= entries.end;
        let without = without.filter(inside);
        let without = without.map(|it| self.stretch(it));
        let gone: u32 = without.clone().map(|it| it.end - it.start).sum();
        let stretch = self.stretch(entries);
        let left = stretch.end - stretch.start - gone;
        if left == 0 {
            return None;
        }
        let mut place = stretch.start + scale(part, left);
        for Range { start, end } in without {
            if place >= start {
                place += end - start;
            }
        }
        Some(self.find(place))
    }

    /// The entry at a place on the line.
    #[inline]
    fn find(&self, place: u32) -> u32 {
        let entry = self.guide[(place >> self.shift) as usize];
        // Added, not branched on: which way it goes cannot be foreseen.
        let ends: &[u32; STEPS] =
            self.starts[entry as usize + 1..].first_chunk().expect("so many follow the last one's");
        let steps: u32 = ends.iter().map(|&end| u32::from(place >= end)).sum();
        if place < ends[STEPS - 1] { entry + steps } else { self.search(place) }
    }

    /// The same, where entries are so short that the guide leads to far before the place.
    #[cold]
    fn search(&self, place: u32) -> u32 {
        let part = (place >> self.shift) as usize;
        let (first, last) = (self.guide[part], self.guide[part + 1]);
        let ends = &self.starts[first as usize + 1..=last as usize + 1];
        let passed = ends.partition_point(|&end| end <= place);
        first + u32::try_from(passed).expect("a plane has at most 2^19 entries")
    }
}

/// For each part the last entry that starts at or before it, which is the one that it starts in.
fn guide(starts: &[u32], shift: u32) -> Box<[u32]> {
    let length = starts[starts.len() - 1];
    let parts = (length >> shift) as usize + 1;
    let mut guide = vec![0; parts + 1].into_boxed_slice();
    // First where each entry is met first, then what is met in between: without a branch, since
    // how many parts an entry has cannot be foreseen.
    let within = (1 << shift) - 1;
    for (entry, &start) in (0..).zip(&starts[..starts.len() - 1]) {
        guide[((start + within) >> shift) as usize] = entry;
    }
    let mut last = 0;
    for entry in &mut guide {
        last = last.max(*entry);
        *entry = last;
    }
    guide
}

/// A part of 2^32 of a length.
fn scale(part: u32, length: u32) -> u32 {
    u32::try_from((u64::from(part) * u64::from(length)) >> 32).expect("below the length")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn turns_give_each_entry_its_share() {
        let turns = Turns::lay_out(&[30, 10, 0, 60]);

        let counts = count(&turns, 4, 1_000);
        assert_eq!(counts[2], 0);
        for (count, share) in counts.into_iter().zip([300, 100, 0, 600]) {
            assert!(count.abs_diff(share) <= 2, "{count} for {share}");
        }
    }

    #[test]
    fn an_entry_is_not_given_its_share_in_one_go() {
        let turns = Turns::lay_out(&[1, 1, 1, 1]);

        let first: Vec<u32> = (7..15).map(|it| turns.turn(&turns.stretch(&(0..4)), it)).collect();

        assert!(first.windows(3).all(|it| it[0] != it[1] || it[1] != it[2]), "{first:?}");
        assert_eq!((0..4).filter(|it| first.contains(it)).count(), 4, "{first:?}");
    }

    #[test]
    fn nobody_with_a_weight_means_no_turns() {
        assert!(Turns::lay_out(&[]).stretch(&(0..0)).is_empty());
        assert!(Turns::lay_out(&[0, 0]).stretch(&(0..2)).is_empty());
        assert_eq!(Turns::lay_out(&[0, 0]).beside(&(0..2), [].iter(), 3), None);
        assert!(Turns::lay_out(&[0, 7]).stretch(&(0..1)).is_empty());
    }

    #[test]
    fn the_largest_plane_does_not_overflow() {
        let turns = Turns::lay_out(&vec![u32::MAX; 1 << 19]);

        let all = turns.stretch(&(0..1 << 19));
        assert_eq!(turns.at(&all, 0), 0);
        assert_eq!(turns.at(&all, u32::MAX), (1 << 19) - 1);
    }

    #[test]
    fn an_entry_far_behind_many_without_weight_is_found() {
        let mut weights = vec![0; 10_000];
        (weights[0], weights[9_999]) = (1, 1);
        let turns = Turns::lay_out(&weights);

        assert!((48..=52).contains(&count(&turns, 10_000, 100)[9_999]));
    }

    proptest! {
        #[test]
        fn shares_are_fair_in_every_interval_and_nobody_with_a_weight_is_left_out(
            weights in prop::collection::vec(prop_oneof![Just(0), 1u32..100_000], 1..60),
            start in 0usize..60,
            first: u32,
        ) {
            const TURNS: u32 = 20_000;
            let start = start.min(weights.len() - 1);
            let turns = Turns::lay_out(&weights);
            let entries = u32::try_from(start).unwrap()..u32::try_from(weights.len()).unwrap();

            let mut counts = vec![0; weights.len()];
            for turn in 0..TURNS {
                let stretch = turns.stretch(&entries);
                if !stretch.is_empty() {
                    counts[turns.turn(&stretch, first.wrapping_add(turn)) as usize] += 1;
                }
            }

            let total: f64 = weights[start..].iter().map(|&it| f64::from(it)).sum();
            for (at, (&weight, &count)) in weights.iter().zip(&counts).enumerate() {
                let fair = if at < start || total == 0.0 { 0.0 } else {
                    f64::from(TURNS) * f64::from(weight) / total
                };
                prop_assert!((f64::from(count) - fair).abs() <= 4.0, "{} for {}", count, fair);
            }
        }

        #[test]
        fn outside_and_beside_agree_on_what_is_left(
            weights in prop::collection::vec(0u32..5, 1..12),
            gap in (0u32..12, 0u32..12),
            part: u32,
        ) {
            let turns = Turns::lay_out(&weights);
            let all = 0..u32::try_from(weights.len()).unwrap();
            let (start, end) = (gap.0.min(gap.1).min(all.end), gap.0.max(gap.1).min(all.end));
            let without = start..end;

            let found = turns.outside(&turns.stretch(&all), &turns.stretch(&without), part);

            prop_assert_eq!(found, turns.beside(&all, [without].iter(), part));
        }

        #[test]
        fn beside_leaves_out_what_it_must_and_reaches_the_rest(
            weights in prop::collection::vec(0u32..5, 1..12),
            a in 0u32..12,
            b in 0u32..12,
        ) {
            let turns = Turns::lay_out(&weights);
            let all = 0..u32::try_from(weights.len()).unwrap();
            let mut without: Vec<Range<u32>> =
                BTreeSet::from([a, b]).into_iter().map(|it| it..it + 1).collect();
            without.retain(|it| it.end <= all.end);

            let parts = (0..4096).map(|it| it << 20);
            let reached: BTreeSet<u32> =
                parts.filter_map(|it| turns.beside(&all, without.iter(), it)).collect();

            let rest = all.filter(|&it| weights[it as usize] > 0 && it != a && it != b);
            prop_assert_eq!(reached, rest.collect::<BTreeSet<u32>>());
        }
    }

    /// How often each entry is met in so many turns.
    fn count(turns: &Turns, entries: u32, turns_taken: u32) -> Vec<u32> {
        let mut counts = vec![0; entries as usize];
        let stretch = turns.stretch(&(0..entries));
        for entry in (0..turns_taken).map(|it| turns.turn(&stretch, it)) {
            counts[entry as usize] += 1;
        }
        counts
    }
}
