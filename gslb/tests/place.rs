//! Places from real files: `@ip-location-db/asn`, which `ops/tools/install` brings, and MaxMind's
//! test databases where `../shared/data` is there.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gslb::place::{Config, Place, Region, Survey};
use proto::address::Carrier;

/// The whole world, from addresses for IPv4 and from numbers for IPv6.
static WORLD: LazyLock<Place> = LazyLock::new(|| load(&[asn("ipv4"), asn("ipv6-num")]));

#[test]
fn every_range_of_chinas_carriers_is_theirs() {
    let china = [(4134, Carrier::Telecom), (4837, Carrier::Unicom), (9808, Carrier::Mobile)];
    for (number, carrier) in china {
        let mut ranges = 0;
        for file in [asn("ipv4"), asn("ipv6")] {
            for (first, last) in ranges_of(&file, number) {
                assert_eq!(WORLD.of(first).carrier, carrier, "AS{number} {first}");
                assert_eq!(WORLD.of(last).carrier, carrier, "AS{number} {last}");
                ranges += 1;
            }
        }
        assert!(ranges > 500, "AS{number} has {ranges} ranges");
    }
}

#[test]
fn well_known_resolvers_are_on_their_carriers_networks() {
    let check = |text: &str, carrier| assert_eq!(WORLD.of(ip(text)).carrier, carrier, "{text}");

    check("202.96.209.133", Carrier::Telecom);
    check("61.139.2.69", Carrier::Telecom);
    check("240e:4c:4008::1", Carrier::Telecom);
    check("202.106.0.20", Carrier::Unicom);
    check("2408:8000::1", Carrier::Unicom);
    check("211.136.112.50", Carrier::Mobile);
    check("2409:8088::a", Carrier::Mobile);
    check("68.87.64.146", Carrier::C4);
    check("8.8.8.8", Carrier::Bgp);
    check("1.1.1.1", Carrier::Bgp);
    check("2606:4700:4700::1111", Carrier::Bgp);
}

#[test]
fn addresses_and_numbers_say_the_same() {
    let numbers = load(&[asn("ipv4-num"), asn("ipv6")]);

    assert_eq!(numbers.ranges(), WORLD.ranges());
    let mut bits = 1_u32;
    for _ in 0..100_000 {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let ipv4 = IpAddr::V4(Ipv4Addr::from(bits));
        assert_eq!(numbers.of(ipv4), WORLD.of(ipv4), "{ipv4}");
        let ipv6 = Ipv6Addr::from((0x2400 << 112) | (u128::from(bits) << 80));
        assert_eq!(numbers.of(ipv6.into()), WORLD.of(ipv6.into()), "{ipv6}");
    }
}

#[test]
fn maxminds_test_databases_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let files = ["GeoLite2-ASN-Test.mmdb", "GeoLite2-City-Test.mmdb"].map(|it| folder.join(it));
    if !files.iter().all(|it| it.exists()) {
        // Files made by tests stand for them in the tests of the reader.
        return;
    }
    let region =
        |name: &str, place: &str| Region { name: name.to_owned(), places: vec![place.to_owned()] };
    let config = Config {
        files: files.to_vec(),
        regions: vec![region("london", "GB-ENG"), region("west", "US-WA"), region("us", "US")],
        ..Config::default()
    };

    let (survey, wrong) = Survey::load(&config).unwrap();

    assert!(wrong.is_empty(), "{wrong:?}");
    let of = |text: &str| {
        let found = survey.of(ip(text));
        (found.system.map(|it| it.says), found.place.map(|it| it.says), found.region)
    };
    let text = |it: &str| Some(it.to_owned());
    assert_eq!(of("81.2.69.160").1, text("GB-ENG"));
    assert_eq!(of("81.2.69.160").2, text("london"));
    assert_eq!(of("216.160.83.56"), (text("AS209"), text("US-WA"), text("west")));
    assert_eq!(of("1.128.0.0").0, text("AS1221"));
    assert_eq!(survey.of(ip("216.160.83.56")).carrier, "us");
}

/// First and last address of each range that a file gives an autonomous system.
fn ranges_of(file: &Path, number: u32) -> Vec<(IpAddr, IpAddr)> {
    let text = fs::read_to_string(file).unwrap();
    let number = number.to_string();
    let parse = |line: &str| {
        let mut columns = line.split(',');
        let (first, last) = (columns.next()?, columns.next()?);
        (columns.next()? == number).then(|| (ip(first), ip(last)))
    };
    text.lines().filter_map(parse).collect()
}

fn load(files: &[PathBuf]) -> Place {
    let config = Config { files: files.to_vec(), ..Config::default() };
    let (place, wrong) = Place::load(&config).unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
    place
}

/// A file of the npm package.
fn asn(kind: &str) -> PathBuf {
    let tools = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools"),
        PathBuf::from,
    );
    let file = tools.join(format!("node/node_modules/@ip-location-db/asn/asn-{kind}.csv"));
    assert!(file.exists(), "{} is missing: run ops/tools/install", file.display());
    file
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
