//! The table that answers look up in.

use std::net::{IpAddr, Ipv4Addr};

use proto::address::Carrier;

use super::carriers::Carriers;
use super::config::Config;
use super::file::{self, Layer, Wrong};
use super::regions::{NONE, Regions};
use super::rows::{Row, Rows, Walk, key};

/// What is nobody's on the public internet: this network, private, shared (RFC 6598), loopback,
/// link-local, multicast and beyond.
const RESERVED_IPV4: [(Ipv4Addr, Ipv4Addr); 8] = [
    (Ipv4Addr::new(0, 0, 0, 0), Ipv4Addr::new(0, 255, 255, 255)),
    (Ipv4Addr::new(10, 0, 0, 0), Ipv4Addr::new(10, 255, 255, 255)),
    (Ipv4Addr::new(100, 64, 0, 0), Ipv4Addr::new(100, 127, 255, 255)),
    (Ipv4Addr::new(127, 0, 0, 0), Ipv4Addr::new(127, 255, 255, 255)),
    (Ipv4Addr::new(169, 254, 0, 0), Ipv4Addr::new(169, 254, 255, 255)),
    (Ipv4Addr::new(172, 16, 0, 0), Ipv4Addr::new(172, 31, 255, 255)),
    (Ipv4Addr::new(192, 168, 0, 0), Ipv4Addr::new(192, 168, 255, 255)),
    (Ipv4Addr::new(224, 0, 0, 0), Ipv4Addr::new(255, 255, 255, 255)),
];

/// Where IPv4 stands among keys.
const IPV4_FIRST: u128 = key(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
const IPV4_LAST: u128 = key(IpAddr::V4(Ipv4Addr::BROADCAST));
/// What of IPv6 is given out, 2000::/3 (RFC 4291).
const IPV6_FIRST: u128 = 0x2000 << 112;
const IPV6_LAST: u128 = (0x4000 << 112) - 1;

/// Carriers and regions of all addresses. Immutable: what changes is a new one.
#[derive(Clone, Debug)]
pub struct Place {
    ipv4: Ranges<u32>,
    ipv6: Ranges<u128>,
    /// Region number 1 is the first.
    regions: Vec<String>,
}

/// Where an address is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Whereabouts<'a> {
    /// Whose network; BGP if unknown.
    pub carrier: Carrier,
    /// Which region; none if no file or no region of the configuration knows it.
    pub region: Option<&'a str>,
}

/// What the table holds of a range.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Spot {
    carrier: Carrier,
    region: u16,
}

/// Starts that lie in four cache lines, of IPv4.
const BLOCK: usize = 64;

/// Ranges without gaps: each goes from its start to the next one's.
///
/// All starts are more than a processor's nearer caches hold, and a search through them waits for
/// memory at most of its steps; so the first steps go through every sixty-fourth, which are few.
#[derive(Clone, Debug)]
struct Ranges<A> {
    /// The first is the lowest address.
    starts: Vec<A>,
    spots: Vec<Spot>,
    /// The first start of each [`BLOCK`].
    blocks: Vec<A>,
}

impl<A: Copy + Ord> Ranges<A> {
    const fn new() -> Self {
        Self { starts: Vec::new(), spots: Vec::new(), blocks: Vec::new() }
    }

    /// Adds what begins at `start`, unless it goes on as before.
    fn push(&mut self, start: A, spot: Spot) {
        if self.spots.last() != Some(&spot) {
            if self.starts.len().is_multiple_of(BLOCK) {
                self.blocks.push(start);
            }
            self.starts.push(start);
            self.spots.push(spot);
        }
    }

    fn find(&self, address: A) -> Spot {
        let before = |it: &A| *it <= address;
        let blocks = self.blocks.partition_point(before);
        let start = blocks.saturating_sub(1) * BLOCK;
        let block = &self.starts[start..self.starts.len().min(start + BLOCK)];
        let after = start + block.partition_point(before);
        after.checked_sub(1).and_then(|it| self.spots.get(it)).copied().unwrap_or_default()
    }
}

impl Place {
    /// Reads the files of `config` and lays them over each other. Files that cannot be used are
    /// left out, and come with the reason. It takes a second or more and should not hold up others.
    ///
    /// # Errors
    /// As [`Config::check`], of carriers and regions.
    pub fn load(config: &Config) -> anyhow::Result<(Self, Vec<Wrong>)> {
        let carriers = Carriers::new(&config.carriers)?;
        let regions = Regions::new(&config.regions)?;
        let (layers, wrong) = file::read_all(&config.files);
        Ok((Self::new(&layers, &carriers, regions), wrong))
    }

    pub(super) fn new(layers: &[Layer], carriers: &Carriers, regions: Regions) -> Self {
        let reserved = reserved();
        let mut edges = vec![0, IPV4_FIRST, IPV4_LAST + 1];
        edges.extend(reserved.edges());
        for layer in layers {
            edges.extend(layer.asns.edges());
            edges.extend(layer.places.edges());
        }
        edges.sort_unstable();
        edges.dedup();

        let (mut ipv4, mut ipv6) = (Ranges::new(), Ranges::new());
        let mut nowhere = reserved.walk();
        let mut asns: Vec<Walk<'_>> = layers.iter().map(|it| it.asns.walk()).collect();
        let mut places: Vec<_> =
            layers.iter().map(|it| (it.places.walk(), region_numbers(it, &regions))).collect();
        for edge in edges {
            let spot = if nowhere.at(edge).is_some() {
                Spot::default()
            } else {
                let asn = asns.iter_mut().find_map(|it| it.at(edge));
                let region = places
                    .iter_mut()
                    .find_map(|(walk, numbers)| numbers.get(walk.at(edge)? as usize).copied());
                let carrier = asn.map_or(Carrier::Bgp, |it| carriers.of(it));
                Spot { carrier, region: region.unwrap_or(NONE) }
            };
            match u32::try_from(edge.wrapping_sub(IPV4_FIRST)) {
                Ok(address) => ipv4.push(address, spot),
                Err(_) => ipv6.push(edge, spot),
            }
        }
        Self { ipv4, ipv6, regions: regions.into_names() }
    }

    /// Where an address is.
    #[must_use]
    #[inline]
    pub fn of(&self, address: IpAddr) -> Whereabouts<'_> {
        let spot = match plain(address) {
            IpAddr::V4(it) => self.ipv4.find(it.to_bits()),
            IpAddr::V6(it) => self.ipv6.find(it.to_bits()),
        };
        let index = usize::from(spot.region).checked_sub(1);
        let region = index.and_then(|it| self.regions.get(it)).map(String::as_str);
        Whereabouts { carrier: spot.carrier, region }
    }

    /// Ranges of IPv4 and IPv6 that differ from their neighbours, 8 and 20 bytes each.
    #[must_use]
    pub fn ranges(&self) -> (usize, usize) {
        (self.ipv4.starts.len(), self.ipv6.starts.len())
    }
}

impl Default for Place {
    /// Everybody is on BGP, in no region.
    fn default() -> Self {
        Self { ipv4: Ranges::new(), ipv6: Ranges::new(), regions: Vec::new() }
    }
}

/// The IPv4 address that IPv6 carries, if it does: mapped, NAT64 (RFC 6052), 6to4 (RFC 3056).
#[inline]
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    if address.is_ipv4() {
        return address;
    }
    let IpAddr::V6(ipv6) = address.to_canonical() else { return address.to_canonical() };
    let bits = ipv6.to_bits();
    match ipv6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => IpAddr::V4(low_ipv4(bits)),
        [0x2002, ..] => IpAddr::V4(low_ipv4(bits >> 80)),
        _ => IpAddr::V6(ipv6),
    }
}

/// The lowest 32 bits.
fn low_ipv4(bits: u128) -> Ipv4Addr {
    let [.., a, b, c, d] = bits.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

/// What is on nobody's network. Keys ascend: IPv4 is below what of IPv6 is given out.
pub(super) fn reserved() -> Rows {
    let ipv4 = RESERVED_IPV4.map(|(start, end)| (key(start.into()), key(end.into())));
    let below = [(0, IPV4_FIRST - 1)];
    let around = [(IPV4_LAST + 1, IPV6_FIRST - 1), (IPV6_LAST + 1, u128::MAX)];
    let mut rows = Rows::default();
    for (start, end) in below.into_iter().chain(ipv4).chain(around) {
        rows.push(Row { start, end, fact: 0 }).expect("the ranges above ascend");
    }
    rows
}

/// The region of each place that a layer names.
fn region_numbers(layer: &Layer, regions: &Regions) -> Vec<u16> {
    layer.codes.iter().map(|it| regions.of(it)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::place::config::Region;
    use crate::place::rows::address;
    use crate::place::survey::Survey;

    #[test]
    fn without_files_everybody_is_on_bgp_and_in_no_region() {
        let place = Place::default();

        assert_eq!(place.of(ip("1.2.3.4")), NOWHERE);
        assert_eq!(place.of(ip("2400::")), NOWHERE);
    }

    #[test]
    fn the_first_file_that_knows_decides_carrier_and_region_apart() {
        let folder = Folder::new();
        let config = folder.config(&[
            ("narrow.csv", "1.2.3.0,1.2.3.255,9808,x\n"),
            ("wide.csv", "1.2.0.0,1.2.255.255,4134,x\n"),
            ("city.csv", "1.2.3.128,1.2.4.255,CN,Shanghai,,,,,,\n"),
            ("country.csv", "1.0.0.0,1.255.255.255,CN\n"),
        ]);

        let place = load(&config);

        let at = |text| {
            let Whereabouts { carrier, region } = place.of(ip(text));
            (carrier, region)
        };
        assert_eq!(at("1.2.3.1"), (Carrier::Mobile, Some("rest")));
        assert_eq!(at("1.2.3.128"), (Carrier::Mobile, Some("east")));
        assert_eq!(at("1.2.4.255"), (Carrier::Telecom, Some("east")));
        assert_eq!(at("1.2.5.0"), (Carrier::Telecom, Some("rest")));
        assert_eq!(at("1.3.0.0"), (Carrier::Bgp, Some("rest")));
        assert_eq!(at("2.0.0.0"), (Carrier::Bgp, None));
    }

    #[test]
    fn each_of_many_ranges_is_found_at_both_its_ends() {
        for count in [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let spot = |it: usize| Spot { carrier: Carrier::Bgp, region: it.try_into().unwrap() };
            let start = |it: usize| u32::try_from(10 * it + 10).unwrap();
            let mut ranges = Ranges::new();
            (0..count).for_each(|it| ranges.push(start(it), spot(it + 1)));

            assert_eq!(ranges.find(9), Spot::default());
            for it in 0..count {
                assert_eq!(ranges.find(start(it)), spot(it + 1), "{count}");
                assert_eq!(ranges.find(start(it) + 9), spot(it + 1), "{count}");
            }
        }
    }

    #[test]
    fn what_ipv6_carries_is_looked_up_as_ipv4() {
        let folder = Folder::new();
        let place = load(&folder.config(&[("asn.csv", "1.2.0.0,1.2.255.255,4134,x\n")]));

        for text in ["1.2.3.4", "::ffff:1.2.3.4", "64:ff9b::1.2.3.4", "2002:102:304::1"] {
            assert_eq!(place.of(ip(text)).carrier, Carrier::Telecom, "{text}");
        }
    }

    #[test]
    fn what_is_nobodys_is_on_bgp_whatever_a_file_says() {
        let folder = Folder::new();
        let all = "0.0.0.0,255.255.255.255,4134,x\n";
        let six = "::1:0:0:0,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,4134,x\n";
        let place = load(&folder.config(&[("4.csv", all), ("6.csv", six)]));

        for text in [
            "0.0.0.1",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.1.1",
            "172.31.255.255",
            "192.168.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert_eq!(place.of(ip(text)), NOWHERE, "{text}");
        }
        for text in ["1.0.0.0", "9.255.255.255", "11.0.0.0", "223.255.255.255", "2000::", "3fff::"]
        {
            assert_eq!(place.of(ip(text)).carrier, Carrier::Telecom, "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_left_out_and_named() {
        let folder = Folder::new();
        let good = ("good.csv", "1.2.0.0,1.2.255.255,4134,x\n");
        let config = folder.config(&[("bad.csv", "1.2.0.0,1.2.255.255,x,x\n"), good]);

        let (place, wrong) = Place::load(&config).unwrap();

        assert_eq!(place.of(ip("1.2.3.4")).carrier, Carrier::Telecom);
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        let bad = folder.0.path().join("bad.csv");
        let expected = "line 1: \"x\" is no number of an autonomous system";
        assert_eq!(wrong, [format!("{}, {expected}", bad.display())]);
    }

    proptest! {
        #[test]
        fn the_table_says_what_the_files_say(
            cuts in prop::collection::btree_set(0_u32..u32::MAX, 3..30),
            asked in prop::collection::vec(any::<u32>(), 20),
        ) {
            let folder = Folder::new();
            let cuts: Vec<u32> = cuts.into_iter().collect();
            let lines = |cuts: &[u32], asns: [u32; 2]| -> String {
                let line = |(it, asn): (&[u32], u32)| format!("{},{},{asn},x\n", it[0], it[1] - 1);
                cuts.chunks_exact(2).zip(asns.into_iter().cycle()).map(line).collect()
            };
            let config = folder.config(&[
                ("a.csv", &lines(&cuts, [4134, 4837])),
                ("b.csv", &lines(&cuts[1..], [9808, 1])),
            ]);

            let (survey, wrong) = Survey::load(&config).unwrap();

            prop_assert!(wrong.is_empty());
            let carriers = Carriers::default();
            for asked in asked.into_iter().chain(cuts) {
                let ip = address(IPV4_FIRST + u128::from(asked));
                let found = survey.of(ip);
                let asn = found.system.map_or(0, |it| it.says[2..].parse().unwrap());
                prop_assert_eq!(found.carrier, carriers.name(carriers.of(asn)));
            }
        }
    }

    const NOWHERE: Whereabouts<'static> = Whereabouts { carrier: Carrier::Bgp, region: None };

    /// Files of a test.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        /// Shanghai is `east`, China is `rest`.
        fn config(&self, files: &[(&str, &str)]) -> Config {
            let write = |&(name, text): &(&str, &str)| -> PathBuf {
                let path = self.0.path().join(name);
                std::fs::write(&path, text).unwrap();
                path
            };
            let region = |name: &str, place: &str| Region {
                name: name.to_owned(),
                places: vec![place.to_owned()],
            };
            Config {
                files: files.iter().map(write).collect(),
                carriers: Vec::new(),
                regions: vec![region("east", "CN-31"), region("rest", "CN")],
            }
        }
    }

    fn load(config: &Config) -> Place {
        let (place, wrong) = Place::load(config).unwrap();
        assert!(wrong.is_empty(), "{wrong:?}");
        place
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }
}
