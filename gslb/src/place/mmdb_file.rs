//! MMDB, the trees of MaxMind and DB-IP: the one door to the `maxminddb` crate.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;

use maxminddb::{LookupResult, MaxMindDbError, Reader, WithinOptions};
use serde::Deserialize;

use super::code::{self, Part};
use super::file::{self, Layer, Why};
use super::rows::{Misplaced, ROWS_MAX, key};

/// All of IPv4, and what of IPv6 is given out (2000::/3); MMDB repeats IPv4 in other parts of IPv6.
const IPV4: &str = "0.0.0.0/0";
const IPV6: &str = "2000::/3";

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
    let reader = Reader::from_source(file::to_end(bounded)?)?;
    let networks = if reader.metadata().ip_version == 6 { &[IPV4, IPV6][..] } else { &[IPV4] };
    // A leaf without a record counts too: in a damaged tree there may be endlessly many.
    let options = WithinOptions::default().include_networks_without_data();
    let mut layer = Layer::default();
    // Many networks share a record.
    let mut seen = HashMap::new();
    let mut leaves = 0;
    for network in networks {
        let network = network.parse().expect("the two networks above are networks");
        for leaf in reader.within(network, options)? {
            leaves += 1;
            if leaves > ROWS_MAX {
                return Err(Misplaced::TooMany.into());
            }
            let leaf = leaf?;
            let Some(offset) = leaf.offset() else { continue };
            let said = match seen.entry(offset) {
                Entry::Occupied(said) => said.into_mut(),
                Entry::Vacant(unseen) => unseen.insert(said(&leaf)?),
            };
            take(&mut layer, &leaf, said)?;
        }
    }
    Ok(layer)
}

fn take(layer: &mut Layer, leaf: &LookupResult<'_, Vec<u8>>, said: &Said) -> Result<(), Why> {
    let network = leaf.network()?;
    let host_bits = if network.is_ipv4() { 32 } else { 128 } - u32::from(network.prefix());
    let start = key(network.network());
    let end = start | 1_u128.checked_shl(host_bits).map_or(u128::MAX, |it| it - 1);
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

    use super::sample::{asn, city, file};
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
