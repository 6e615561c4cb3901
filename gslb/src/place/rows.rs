//! Ranges of addresses with a fact each, IPv4 and IPv6 in one order.
//!
//! An IPv4 address stands where IPv6 has its mapped form, `::ffff:0:0/96`.

use std::net::{IpAddr, Ipv6Addr};

/// Ranges of one file: twice what the largest files of cities have. 48 bytes each while a file is
/// read.
pub(super) const ROWS_MAX: usize = 16_000_000;

/// Where an address stands.
pub(super) const fn key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => it.to_ipv6_mapped().to_bits(),
        IpAddr::V6(it) => it.to_bits(),
    }
}

/// The address that stands there.
pub(super) const fn address(key: u128) -> IpAddr {
    Ipv6Addr::from_bits(key).to_canonical()
}

/// A range, both ends included, and what is said of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Row {
    pub(super) start: u128,
    pub(super) end: u128,
    pub(super) fact: u32,
}

/// Ranges that overlap, in one file, before it is refused. Files made of several sources have one
/// now and then: of ip-location-db's 400,000 ranges of June 2026 it was one.
pub(super) const OVERLAPS_MAX: u32 = 16;

/// Ranges that ascend and do not overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    overlaps: u32,
}

/// Why a range cannot follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Misplaced {
    /// The end is before the start.
    #[error("the range ends before it starts")]
    Reversed,
    /// It starts before the range before it.
    #[error("the range starts before the one before it")]
    Descending,
    /// It starts within the range before it, and is not the first that does.
    #[error(
        "the range starts within the one before it, as more than {OVERLAPS_MAX} in this file do"
    )]
    Overlap,
    /// The file has too many.
    #[error("there are more than {ROWS_MAX} ranges")]
    TooMany,
}

impl Rows {
    /// Adds a range after all others. Where it overlaps the last one, the last one holds; what
    /// continues the last one with the same fact becomes part of it.
    pub(super) fn push(&mut self, mut row: Row) -> Result<(), Misplaced> {
        if row.end < row.start {
            return Err(Misplaced::Reversed);
        }
        if let Some(last) = self.rows.last_mut() {
            if row.start < last.start {
                return Err(Misplaced::Descending);
            }
            if row.start <= last.end {
                self.overlaps += 1;
                if self.overlaps > OVERLAPS_MAX {
                    return Err(Misplaced::Overlap);
                }
                if row.end <= last.end {
                    return Ok(());
                }
                row.start = last.end + 1;
            }
            if row.fact == last.fact && row.start - last.end == 1 {
                last.end = row.end;
                return Ok(());
            }
        }
        if self.rows.len() >= ROWS_MAX {
            return Err(Misplaced::TooMany);
        }
        self.rows.push(row);
        Ok(())
    }

    /// How many ranges overlapped the one before.
    pub(super) const fn overlaps(&self) -> u32 {
        self.overlaps
    }

    /// The range that a key is in.
    pub(super) fn find(&self, key: u128) -> Option<&Row> {
        let after = self.rows.partition_point(|it| it.start <= key);
        self.rows.get(after.checked_sub(1)?).filter(|it| key <= it.end)
    }

    /// The first key of each range, and the first after it.
    pub(super) fn edges(&self) -> impl Iterator<Item = u128> {
        self.rows.iter().flat_map(|it| [Some(it.start), it.end.checked_add(1)]).flatten()
    }

    /// Answers for ascending keys, each in constant time on average.
    pub(super) fn walk(&self) -> Walk<'_> {
        Walk(&self.rows)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The ranges that are not passed yet.
#[derive(Debug)]
pub(super) struct Walk<'a>(&'a [Row]);

impl Walk<'_> {
    /// The fact of the range that a key is in; keys never descend.
    pub(super) fn at(&mut self, key: u128) -> Option<u32> {
        while let Some((first, rest)) = self.0.split_first() {
            if key <= first.end {
                return (first.start <= key).then_some(first.fact);
            }
            self.0 = rest;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_ascend() {
        let mut rows = rows(&[(10, 19, 1)]);

        assert_eq!(rows.push(row(30, 29, 1)), Err(Misplaced::Reversed));
        assert_eq!(rows.push(row(9, 25, 1)), Err(Misplaced::Descending));
        assert_eq!(rows.push(row(20, 20, 2)), Ok(()));
    }

    #[test]
    fn where_ranges_overlap_the_first_one_holds() {
        let rows = rows(&[(10, 19, 1), (12, 18, 2), (15, 25, 3), (25, 25, 4), (30, 30, 5)]);

        assert_eq!(rows.rows, [row(10, 19, 1), row(20, 25, 3), row(30, 30, 5)]);
        assert_eq!(rows.overlaps(), 3);
    }

    #[test]
    fn when_many_ranges_overlap_the_file_is_no_good() {
        let mut rows = rows(&[(10, 19, 1)]);
        for _ in 0..OVERLAPS_MAX {
            rows.push(row(19, 19, 2)).unwrap();
        }

        assert_eq!(rows.push(row(19, 19, 2)), Err(Misplaced::Overlap));
    }

    #[test]
    fn neighbours_with_the_same_fact_become_one() {
        let rows = rows(&[(10, 19, 1), (20, 29, 1), (30, 30, 2), (32, 33, 2)]);

        assert_eq!(rows.rows, [row(10, 29, 1), row(30, 30, 2), row(32, 33, 2)]);
    }

    #[test]
    fn a_range_holds_both_its_ends() {
        let rows = rows(&[(10, 19, 1), (u128::MAX, u128::MAX, 2)]);
        let fact = |key| rows.find(key).map(|it| it.fact);

        assert_eq!([fact(9), fact(10), fact(19), fact(20)], [None, Some(1), Some(1), None]);
        assert_eq!(fact(u128::MAX), Some(2));
        assert_eq!(rows.edges().collect::<Vec<_>>(), [10, 20, u128::MAX]);
    }

    #[test]
    fn an_address_and_its_key_are_the_same() {
        for text in ["1.2.3.4", "255.255.255.255", "2001:db8::1", "::1"] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(address(key(ip)), ip);
        }
    }

    proptest! {
        #[test]
        fn a_walk_finds_what_a_search_finds(mut cuts in prop::collection::vec(0..200_u128, 0..20)) {
            cuts.sort_unstable();
            cuts.dedup();
            let mut rows = Rows::default();
            for (fact, cut) in (0..).zip(cuts.chunks_exact(2)) {
                rows.push(row(cut[0], cut[1] - 1, fact)).unwrap();
            }

            let mut walk = rows.walk();

            for key in 0..210 {
                prop_assert_eq!(walk.at(key), rows.find(key).map(|it| it.fact));
            }
        }
    }

    fn row(start: u128, end: u128, fact: u32) -> Row {
        Row { start, end, fact }
    }

    fn rows(all: &[(u128, u128, u32)]) -> Rows {
        let mut rows = Rows::default();
        all.iter().for_each(|&(start, end, fact)| rows.push(row(start, end, fact)).unwrap());
        rows
    }
}
