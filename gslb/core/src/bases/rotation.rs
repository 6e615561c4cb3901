//! In which order each arriving viewer gets the bases.
//!
//! The first one goes round by weight, smoothly: of the weights 5, 1, 1 come a a b a c a a, never
//! five times a in a row (the algorithm of nginx's upstream module). The list's order is the
//! viewer's order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use proto::head::Base;

/// Turns until they repeat, at most, but one for each base.
const TURNS_MAX: u64 = 1_000;

/// Where a base is, and what it weighs when it is well.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Its viewers' region; empty: everybody's.
    pub region: String,
    /// As configured.
    pub weight: u32,
}

/// Whose turn it is: for every region one round.
///
/// A viewer gets the bases of the own region as they weigh, and all others with weight 0: those are
/// for retries. As much of the region's weight as is drained, so many of its viewers are treated as
/// viewers of no region: those get the bases of no region, and as much as those are drained, all.
#[derive(Debug, Default)]
pub struct Rotation {
    regions: BTreeMap<String, Near>,
    nowhere: Option<Near>,
    all: Round,
}

/// The bases of one region, and which turns they get: those of a drained one go on to others.
#[derive(Debug)]
struct Near {
    round: Round,
    /// Of [`TURNS_MAX`].
    share: u64,
    next: AtomicUsize,
}

/// The bases of one answer, in their order.
#[derive(Debug)]
pub struct Listed {
    bases: Vec<Base>,
    /// The same as it is written.
    json: String,
}

#[derive(Debug, Default)]
struct Round {
    /// The answers, by which base comes first.
    lists: Vec<Listed>,
    /// Which answer is next, and so on.
    turns: Vec<usize>,
    next: AtomicUsize,
}

impl Rotation {
    /// The rounds of `bases`; they begin at `first_turn`, so that several processes do not give
    /// everybody the same first base.
    #[must_use]
    pub fn new(bases: &[Base], places: &BTreeMap<String, Place>, first_turn: usize) -> Self {
        let region = |it: &Base| places.get(&it.base).map_or("", |it| it.region.as_str());
        let names = bases.iter().map(region).filter(|it| !it.is_empty());
        let near = |name| Some((str::to_owned(name), Near::new(bases, places, name, first_turn)?));
        Self {
            regions: names.filter_map(near).collect(),
            nowhere: Near::new(bases, places, "", first_turn),
            all: Round::new(bases, &|_| true, first_turn),
        }
    }

    /// Whether it matters where a viewer is.
    #[must_use]
    pub fn has_regions(&self) -> bool {
        !self.regions.is_empty()
    }

    /// Whether there is no base at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.lists.is_empty()
    }

    /// The bases for the next viewer of a region, in order; none if there are none.
    pub fn next(&self, region: &str) -> Option<&Listed> {
        let own = self.regions.get(region).and_then(Near::next);
        own.or_else(|| self.nowhere.as_ref()?.next()).or_else(|| self.all.next())
    }
}

impl Listed {
    fn new(bases: Vec<Base>) -> Self {
        let json = serde_json::to_string(&bases).expect("names and numbers are JSON");
        Self { bases, json }
    }

    /// The bases.
    #[must_use]
    pub fn bases(&self) -> &[Base] {
        &self.bases
    }

    /// Them as a list in JSON.
    #[must_use]
    pub const fn json(&self) -> &str {
        self.json.as_str()
    }
}

impl Near {
    /// None if the region has no base that weighs anything.
    fn new(
        bases: &[Base],
        places: &BTreeMap<String, Place>,
        region: &str,
        first_turn: usize,
    ) -> Option<Self> {
        let here = |it: &Base| places.get(&it.base).map_or("", |it| it.region.as_str()) == region;
        let full = |it: &Base| places.get(&it.base).map_or(0, |it| u64::from(it.weight) * 100);
        let weight: u64 = bases.iter().filter(|it| here(it)).map(|it| u64::from(it.weight)).sum();
        let when_well: u64 = bases.iter().filter(|it| here(it)).map(full).sum();
        // A drained base keeps some, so that somebody notices when it is well again.
        let share = (weight * TURNS_MAX).checked_div(when_well)?.clamp(1, TURNS_MAX);
        (weight > 0).then(|| Self {
            round: Round::new(bases, &here, first_turn),
            share,
            next: AtomicUsize::new(first_turn),
        })
    }

    /// None if it is another's turn; those are spread evenly.
    fn next(&self) -> Option<&Listed> {
        let turn = u64::try_from(self.next.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
        let before = turn % TURNS_MAX * self.share % TURNS_MAX;
        if before + self.share >= TURNS_MAX { self.round.next() } else { None }
    }
}

impl Round {
    fn new(bases: &[Base], near: &dyn Fn(&Base) -> bool, first_turn: usize) -> Self {
        let weigh = |it: &Base| Base { weight: if near(it) { it.weight } else { 0 }, ..it.clone() };
        let mut bases: Vec<Base> = bases.iter().map(weigh).collect();
        bases.sort_by_key(|it| std::cmp::Reverse(it.weight));
        let lists = (0..bases.len()).map(|first| {
            let mut list = bases.clone();
            list[..=first].rotate_right(1);
            Listed::new(list)
        });
        let turns = turns(&bases);
        Self { lists: lists.collect(), turns, next: AtomicUsize::new(first_turn) }
    }

    fn next(&self) -> Option<&Listed> {
        if self.turns.is_empty() {
            return self.lists.first();
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.turns.len();
        self.lists.get(self.turns[turn])
    }
}

/// Who comes first, turn by turn, in one round: each as often as it weighs.
fn turns(bases: &[Base]) -> Vec<usize> {
    let sum: u64 = bases.iter().map(|it| u64::from(it.weight)).sum();
    let scaled = |it: &Base| match u64::from(it.weight) {
        weight if sum <= TURNS_MAX || weight == 0 => weight,
        weight => (weight * TURNS_MAX / sum).max(1),
    };
    let weights: Vec<i64> =
        bases.iter().map(|it| i64::try_from(scaled(it)).unwrap_or(i64::MAX)).collect();
    let sum: i64 = weights.iter().sum();
    let mut currents = vec![0; weights.len()];
    let mut turns = Vec::new();
    for _ in 0..sum {
        let mut best = 0;
        for (index, weight) in weights.iter().enumerate() {
            currents[index] += weight;
            if currents[index] > currents[best] {
                best = index;
            }
        }
        currents[best] -= sum;
        turns.push(best);
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases(weights: &[(&str, u32)]) -> Vec<Base> {
        weights.iter().map(|&(base, weight)| Base { base: base.to_owned(), weight }).collect()
    }

    fn places(regions: &[(&str, &str)]) -> BTreeMap<String, Place> {
        let place = |region: &str| Place { region: region.to_owned(), weight: 1 };
        regions.iter().map(|&(base, region)| (base.to_owned(), place(region))).collect()
    }

    fn firsts(rotation: &Rotation, region: &str, turns: usize) -> String {
        (0..turns).map(|_| rotation.next(region).unwrap().bases()[0].base.as_str()).collect()
    }

    #[test]
    fn the_first_base_goes_round_smoothly_by_weight() {
        let rotation = Rotation::new(&bases(&[("a", 5), ("b", 1), ("c", 1)]), &BTreeMap::new(), 0);

        assert_eq!(firsts(&rotation, "", 14), "aabacaaaabacaa");
        let listed = rotation.next("").unwrap();
        assert_eq!(listed.bases().len(), 3);
        assert_eq!(serde_json::from_str::<Vec<Base>>(listed.json()).unwrap(), listed.bases());
    }

    #[test]
    fn large_weights_keep_their_ratio_and_none_is_forgotten() {
        let weights = [("a", 4_000_000_000), ("b", 1_000_000_000), ("c", 1)];
        let rotation = Rotation::new(&bases(&weights), &BTreeMap::new(), 7);

        let all = firsts(&rotation, "", 1_000);

        assert!((798..=801).contains(&all.matches('a').count()), "{all}");
        assert!((198..=201).contains(&all.matches('b').count()), "{all}");
        assert!(all.contains('c'));
    }

    #[test]
    fn a_region_comes_first_and_the_rest_is_for_retries() {
        let list = bases(&[("n", 100), ("s", 100), ("t", 300), ("w", 200)]);
        let place = |region: &str, weight| Place { region: region.to_owned(), weight };
        let places = BTreeMap::from([
            ("n".to_owned(), place("north", 1)),
            ("s".to_owned(), place("south", 1)),
            ("t".to_owned(), place("south", 3)),
            ("w".to_owned(), place("", 2)),
        ]);

        let rotation = Rotation::new(&list, &places, 0);

        assert_eq!(firsts(&rotation, "south", 8), "ttstttst");
        assert_eq!(firsts(&rotation, "north", 2), "nn");
        assert_eq!(firsts(&rotation, "east", 2), "ww");
        assert!(rotation.next("north").unwrap().bases()[1..].iter().all(|it| it.weight == 0));
    }

    #[test]
    fn a_region_loses_as_many_viewers_as_its_bases_are_drained() {
        let places = places(&[("n", "north"), ("w", "")]);
        for (percent, turns) in [(1, 10), (10, 100), (50, 500), (90, 900), (100, 1_000)] {
            let list = bases(&[("n", percent), ("w", 100)]);
            let rotation = Rotation::new(&list, &places, 3);

            let all = firsts(&rotation, "north", 1_000);

            assert_eq!(all.matches('n').count(), turns, "{percent} %");
            assert!(percent < 50 || !all.contains("ww"), "they come evenly: {all}");
        }
    }

    #[test]
    fn a_drained_base_of_no_region_loses_its_viewers_to_all_others() {
        let rotation = Rotation::new(
            &bases(&[("n", 1), ("s", 100), ("w", 1)]),
            &places(&[("n", "north"), ("s", "south"), ("w", "")]),
            0,
        );

        for region in ["", "north", "east"] {
            let all = firsts(&rotation, region, 1_000);
            assert!(all.matches('s').count() >= 960, "{region}: {all}");
            assert!(all.contains('w'), "somebody notices when it is well again");
        }
    }

    #[test]
    fn no_bases_are_no_trouble() {
        let nothing = Rotation::default();
        let retries = Rotation::new(&bases(&[("a", 0), ("b", 0)]), &BTreeMap::new(), 3);

        assert!(nothing.next("").is_none());
        assert_eq!(retries.next("").unwrap().bases().len(), 2);
    }
}
