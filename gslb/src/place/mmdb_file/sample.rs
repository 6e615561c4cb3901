//! MMDB files for tests, made here: a tree of 32-bit records, and the few kinds of values we read.
//!
//! Source: "MaxMind DB File Format Specification", version 2.0.

use std::net::{IpAddr, Ipv6Addr};

/// A value of the data section.
pub(in crate::place) enum Value {
    Text(&'static str),
    Short(u16),
    Number(u32),
    Long(u64),
    Map(Vec<(&'static str, Self)>),
    List(Vec<Self>),
    /// No data: the network leads to where IPv4 stands.
    Ipv4,
}

use Value::{Ipv4, List, Long, Map, Number, Short, Text};

/// What a record of GeoLite2-ASN holds.
pub(in crate::place) fn asn(number: u32) -> Value {
    Map(vec![
        ("autonomous_system_number", Number(number)),
        (
            "autonomous_system_organization",
            Text("a carrier whose name is longer than thirty bytes"),
        ),
    ])
}

/// What a record of GeoLite2-City holds; without a code one of DB-IP.
pub(in crate::place) fn city(
    country: &'static str,
    code: Option<&'static str>,
    name: &'static str,
) -> Value {
    let names = ("names", Map(vec![("en", Text(name))]));
    let code = code.map(|it| ("iso_code", Text(it)));
    let part = code.into_iter().chain([names]).collect();
    Map(vec![
        ("city", Map(vec![("names", Map(vec![("en", Text("a city"))]))])),
        ("country", Map(vec![("iso_code", Text(country))])),
        ("subdivisions", List(vec![Map(part)])),
    ])
}

/// A file with these networks, none of them in another. IPv4 stands in the lowest part of IPv6.
pub(in crate::place) fn file(networks: Vec<(&str, Value)>) -> Vec<u8> {
    const NONE: u32 = u32::MAX;
    const IPV4: u32 = u32::MAX - 1;
    /// Marks data until it is known where the tree ends.
    const DATA: u32 = 1 << 31;
    let (mut tree, mut data) = (vec![[NONE; 2]], Vec::new());
    for (network, value) in networks {
        let (bits, prefix) = parse(network);
        let offset = u32::try_from(data.len()).unwrap();
        let leaf = if matches!(value, Ipv4) { IPV4 } else { DATA | offset };
        encode(&value, &mut data);
        let mut node = 0;
        for depth in 0..prefix {
            let side = usize::from(bits >> (127 - depth) & 1 == 1);
            if depth + 1 == prefix {
                tree[node][side] = leaf;
            } else {
                if tree[node][side] == NONE {
                    tree[node][side] = u32::try_from(tree.len()).unwrap();
                    tree.push([NONE; 2]);
                }
                node = tree[node][side] as usize;
            }
        }
    }
    let nodes = u32::try_from(tree.len()).unwrap();
    let record = |it: u32| match it {
        NONE => nodes,
        IPV4 => (0..96).fold(0, |node, _| tree[node as usize][0]),
        it if it & DATA != 0 => nodes + 16 + (it & !DATA),
        it => it,
    };
    let tree: Vec<u8> = tree.iter().flatten().flat_map(|&it| record(it).to_be_bytes()).collect();
    let mut metadata = Vec::new();
    encode(&description(nodes), &mut metadata);
    [&tree[..], &[0; 16], &data, b"\xab\xcd\xefMaxMind.com", &metadata].concat()
}

fn description(nodes: u32) -> Value {
    Map(vec![
        ("node_count", Number(nodes)),
        ("record_size", Short(32)),
        ("ip_version", Short(6)),
        ("database_type", Text("Sample")),
        ("languages", List(vec![Text("en")])),
        ("binary_format_major_version", Short(2)),
        ("binary_format_minor_version", Short(0)),
        ("build_epoch", Long(1)),
        ("description", Map(vec![("en", Text("made by a test"))])),
    ])
}

fn parse(network: &str) -> (u128, u32) {
    let (address, prefix) = network.split_once('/').unwrap();
    let prefix: u32 = prefix.parse().unwrap();
    match address.parse().unwrap() {
        IpAddr::V4(it) => (it.to_bits().into(), prefix + 96),
        IpAddr::V6(it) => (Ipv6Addr::to_bits(it), prefix),
    }
}

fn encode(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Text(text) => {
            control(2, text.len(), bytes);
            bytes.extend(text.as_bytes());
        }
        Short(number) => {
            control(5, 2, bytes);
            bytes.extend(number.to_be_bytes());
        }
        Long(number) => {
            control(9, 8, bytes);
            bytes.extend(number.to_be_bytes());
        }
        Number(number) => {
            control(6, 4, bytes);
            bytes.extend(number.to_be_bytes());
        }
        Map(pairs) => {
            control(7, pairs.len(), bytes);
            for (name, value) in pairs {
                encode(&Text(name), bytes);
                encode(value, bytes);
            }
        }
        List(values) => {
            control(11, values.len(), bytes);
            values.iter().for_each(|it| encode(it, bytes));
        }
        Ipv4 => {}
    }
}

/// Kind and size; kinds above 7 are in a byte of their own, sizes above 28 too.
fn control(kind: u8, size: usize, bytes: &mut Vec<u8>) {
    let (short, long) = if size < 29 { (size, None) } else { (29, Some(size - 29)) };
    let first = if kind > 7 { 0 } else { kind << 5 };
    bytes.push(first | u8::try_from(short).unwrap());
    bytes.extend((kind > 7).then(|| kind - 7));
    bytes.extend(long.map(|it| u8::try_from(it).unwrap()));
}
