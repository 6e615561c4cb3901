//! MMDB, the trees of MaxMind and DB-IP: the one door to the `maxminddb` crate.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;
use std::net::IpAddr;

use maxminddb::{LookupResult, MaxMindDbError, Reader, WithinOptions};
use serde::Deserialize;

use super::code::{self, Part};
use super::file::{self, Layer, Why};
use super::rows::{Misplaced, ROWS_MAX, key};

/// All of IPv4.
const IPV4: &str = "0.0.0.0/0";
/// What of IPv6 is given out: 2000::/3 without 2001::/23 (protocols; Teredo, RFC 4380, is in it) and
/// without 2002::/16 (6to4). In MMDB these two repeat all of IPv4, as parts below 2000::/3 do.
const IPV6: [&str; 20] = [
    "2000::/16",
    "2001:200::/23",
    "2001:400::/22",
    "2001:800::/21",
    "2001:1000::/20",
    "2001:2000::/19",
    "2001:4000::/18",
    "2001:8000::/17",
    "2003::/16",
    "2004::/14",
    "2008::/13",
    "2010::/12",
    "2020::/11",
    "2040::/10",
    "2080::/9",
    "2100::/8",
    "2200::/7",
    "2400::/6",
    "2800::/5",
    "3000::/4",
];

/// What we look for in a record: MaxMind's and DB-IP's words, then ip-location-db's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record<'a> {
    autonomous_system_number: Option<u32>,
    #[serde(borrow)]
    country: Named<'a>,
    #[serde(borrow)]
    subdivisions: Vec<Named<'a>>,
    country_code: Option<&'a str>,
    state1: Option<&'a str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named<'a> {
    iso_code: Option<&'a str>,
    #[serde(borrow)]
    names: Names<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Names<'a> {
    en: Option<&'a str>,
}

/// What a record says.
#[derive(Clone, Debug, Default)]
struct Said {
    asn: Option<u32>,
    place: Option<String>,
}

impl From<MaxMindDbError> for Why {
    fn from(error: MaxMindDbError) -> Self {
        Self::Mmdb(error.to_string())
    }
}

/// Reads the whole tree.
pub(super) fn read(bounded: impl Read) -> Result<Layer, Why> {
    read_leaves(bounded, ROWS_MAX)
}

fn read_leaves(bounded: impl Read, leaves_max: usize) -> Result<Layer, Why> {
    let reader = Reader::from_source(file::to_end(bounded)?)?;
    let ipv6 = if reader.metadata().ip_version == 6 { &IPV6[..] } else { &[] };
    // All leaves count, those without a record and those that repeat IPv4 too: in a tree made to
    // do harm there are endlessly many, and what is skipped cannot be counted.
    let options = WithinOptions::default();
    let options = options.include_networks_without_data().include_aliased_networks();
    let mut layer = Layer::default();
    // Many networks share a record.
    let mut seen = HashMap::new();
    let mut leaves = 0;
    for network in [IPV4].iter().chain(ipv6) {
        let network = network.parse().expect("the networks above are networks");
        let within = reader.within(network, options)?;
        let asked = keys(network.network(), network.prefix());
        for leaf in within {
            leaves += 1;
            if leaves > leaves_max {
                return Err(Misplaced::TooMany.into());
            }
            let leaf = leaf?;
            let Some(offset) = leaf.offset() else { continue };
            let said = match seen.entry(offset) {
                Entry::Occupied(said) => said.into_mut(),
                Entry::Vacant(unseen) => unseen.insert(said(&leaf)?),
            };
            let leaf = leaf.network()?;
            let leaf = keys(leaf.network(), leaf.prefix());
            // A leaf may be larger than what was asked for.
            let (start, end) = (leaf.0.max(asked.0), leaf.1.min(asked.1));
            if start <= end {
                take(&mut layer, start, end, said)?;
            }
        }
    }
    Ok(layer)
}

/// The first key of a network and its last.
fn keys(first: IpAddr, prefix: u8) -> (u128, u128) {
    let host_bits = if first.is_ipv4() { 32 } else { 128 } - u32::from(prefix);
    let start = key(first);
    (start, start | 1_u128.checked_shl(host_bits).map_or(u128::MAX, |it| it - 1))
}

fn take(layer: &mut Layer, start: u128, end: u128, said: &Said) -> Result<(), Why> {
    if let Some(asn) = said.asn {
        layer.push_asn(start, end, asn)?;
    }
    if let Some(place) = &said.place {
        layer.push_place(start, end, place)?;
    }
    Ok(())
}

fn said(leaf: &LookupResult<'_, Vec<u8>>) -> Result<Said, Why> {
    let record: Record<'_> = leaf.decode()?.unwrap_or_default();
    let country = record.country.iso_code.or(record.country_code);
    let part = record.subdivisions.first();
    let code = part.and_then(|it| it.iso_code).map(Part::Code);
    let name = part.and_then(|it| it.names.en).or(record.state1).map(Part::Name);
    let part = code.or(name).unwrap_or_default();
    let place = country
        .filter(|it| !it.is_empty())
        .map(|country| code::code(country, part).ok_or_else(|| Why::Country(country.to_owned())));
    Ok(Said { asn: record.autonomous_system_number, place: place.transpose()? })
}

#[cfg(test)]
pub(super) mod sample;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sample::{Value, asn, city, file};
    use super::*;
    use crate::place::rows::Row;

    #[test]
    fn systems_of_both_families_are_read() {
        let file = file(vec![("1.2.0.0/16", asn(4134)), ("240e::/20", asn(4134))]);

        let layer = read(&file[..]).unwrap();

        let (first, last) = ("1.2.0.0", "1.2.255.255");
        assert_eq!(layer.asns.find(at("1.2.3.4")), Some(&row(first, last, 4134)));
        assert_eq!(layer.asns.find(at("1.3.0.0")), None);
        let (first, last) = ("240e::", "240e:fff:ffff:ffff:ffff:ffff:ffff:ffff");
        assert_eq!(layer.asns.find(at("240e::1")), Some(&row(first, last, 4134)));
        assert!(layer.places.is_empty());
    }

    #[test]
    fn places_are_named_by_code_or_else_by_name() {
        let file = file(vec![
            ("1.2.0.0/16", city("CN", Some("SH"), "Shanghai")),
            ("1.3.0.0/16", city("CN", None, "Zhejiang")),
            ("1.4.0.0/16", city("JP", None, "Tokyo")),
        ]);

        let layer = read(&file[..]).unwrap();

        let code = |ip| &layer.codes[layer.places.find(at(ip)).unwrap().fact as usize];
        assert_eq!(
            [code("1.2.0.1"), code("1.3.0.1"), code("1.4.0.1")],
            ["CN-SH", "CN-ZJ", "JP/tokyo"]
        );
    }

    #[test]
    fn a_file_that_was_cut_off_is_refused() {
        let whole = file(vec![("1.2.0.0/16", asn(4134))]);

        for len in 0..whole.len() {
            assert!(read(&whole[..len]).is_err(), "{len} of {} bytes", whole.len());
        }
    }

    #[test]
    fn a_tree_that_goes_in_circles_is_refused() {
        let mut file = file(vec![("128.0.0.0/1", asn(4134))]);
        file[..8].fill(0);

        assert!(matches!(read(&file[..]), Err(Why::Mmdb(_))));
    }

    #[test]
    fn a_tree_that_repeats_ipv4_without_end_is_refused() {
        let mut file = file(vec![("1.2.0.0/16", asn(4134)), ("2800::/24", Value::Ipv4)]);
        // From 2800::/5 on both sides of each node lead to the next one.
        let mut node = 0;
        for depth in 0..24 {
            let at = |side: usize| 8 * node + 4 * side..8 * node + 4 * side + 4;
            let side = usize::from([2, 4].contains(&depth));
            let next: [u8; 4] = file[at(side)].try_into().unwrap();
            if depth >= 5 {
                file[at(1)].copy_from_slice(&next);
            }
            node = u32::from_be_bytes(next) as usize;
        }

        let refused = read_leaves(&file[..], 1_000).unwrap_err();

        assert!(matches!(refused, Why::Misplaced(Misplaced::TooMany)), "{refused}");
    }

    #[test]
    fn what_repeats_ipv4_says_nothing_of_ipv6() {
        let file = file(vec![
            ("1.2.0.0/16", asn(4134)),
            ("::ffff:0:0/96", Value::Ipv4),
            ("2001::/32", Value::Ipv4),
            ("2001:200::/23", asn(2500)),
            ("2002::/16", Value::Ipv4),
            ("2003::/19", asn(3320)),
        ]);

        let layer = read(&file[..]).unwrap();

        let edges = ["1.2.0.0", "1.3.0.0", "2001:200::", "2001:400::", "2003::", "2003:2000::"];
        assert_eq!(layer.asns.edges().collect::<Vec<_>>(), edges.map(at));
    }

    #[test]
    fn a_network_larger_than_those_asked_for_is_one_range() {
        let layer = read(&file(vec![("2000::/3", asn(4134))])[..]).unwrap();

        let (first, last) = ("2003::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
        assert_eq!(layer.asns.find(at("2003::1")), Some(&row(first, last, 4134)));
        assert_eq!(layer.asns.overlaps(), 0);
    }

    #[test]
    fn ipv6_is_all_but_what_repeats_ipv4() {
        let ranges = IPV6.map(|it| {
            let (first, prefix) = it.split_once('/').unwrap();
            keys(first.parse().unwrap(), prefix.parse().unwrap())
        });

        let gaps = ranges.windows(2).filter(|it| it[0].1 + 1 != it[1].0);
        let gaps: Vec<_> = gaps.map(|it| (it[0].1 + 1, it[1].0)).collect();

        assert_eq!(gaps, [(at("2001::"), at("2001:200::")), (at("2002::"), at("2003::"))]);
        assert_eq!((ranges[0].0, ranges[19].1 + 1), (at("2000::"), at("4000::")));
    }

    proptest! {
        #[test]
        fn no_damage_does_harm(at in any::<prop::sample::Index>(), byte: u8) {
            let mut file = file(vec![("1.2.0.0/16", asn(4134)), ("2001:db8::/32", city("CN", None, "Hebei"))]);
            let at = at.index(file.len());
            file[at] = byte;

            read(&file[..]).ok();
        }
    }

    fn at(ip: &str) -> u128 {
        key(ip.parse().unwrap())
    }

    fn row(first: &str, last: &str, fact: u32) -> Row {
        Row { start: at(first), end: at(last), fact }
    }
}
