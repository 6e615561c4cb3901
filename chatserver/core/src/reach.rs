//! Which addresses the servers that a chatserver calls may have.
//!
//! A URL is somebody's wish, and whoever resolves its name decides where it leads. Only addresses
//! of the public internet are called, and the networks that the operator allows; what leads into
//! the inside of the platform, or to this machine, is refused. Sources: the special-purpose address
//! registries of IANA (RFC 6890 and its successors) for version 4, and RFC 4291 with the same
//! registries for version 6, of which only 2000::/3 is handed out.

use std::net::IpAddr;
use std::sync::LazyLock;

use proto::network::Network;
use serde::{Deserialize, Serialize};

/// Networks that may be allowed, each a comparison for every address.
pub const NETWORKS_MAX: usize = 64;

/// An address that is not called.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("its address is {kind}, and in no network that is allowed")]
pub struct Forbidden {
    /// What it is for.
    pub kind: &'static str,
}

/// Where servers may be called: on the public internet, and in these networks.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Reach(Vec<Network>);

/// Networks that no server on the public internet is in, and what they are for.
const FORBIDDEN: [(&str, &str); 20] = [
    ("0.0.0.0/8", "of this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared behind a carrier's NAT"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "for protocols"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "of 6to4 relays"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    // Teredo, ORCHIDs, benchmarks.
    ("2001::/23", "for protocols"),
    ("2001:db8::/32", "for documentation"),
    // It holds an address of version 4, which may be any.
    ("2002::/16", "of 6to4"),
    ("3fff::/20", "for documentation"),
    ("ff00::/8", "multicast"),
];

/// What of version 6 is handed out. NAT64, IPv4-compatible, unique local, link-local and site-local
/// addresses are outside it.
const GLOBAL: &str = "2000::/3";

static TABLE: LazyLock<Vec<(Network, &str)>> =
    LazyLock::new(|| FORBIDDEN.iter().map(|it| (network(it.0), it.1)).collect());

fn network(text: &str) -> Network {
    text.parse().expect("it stands in this file, and the tests read all of them")
}

impl Reach {
    /// The public internet and these networks.
    #[must_use]
    pub const fn new(allowed: Vec<Network>) -> Self {
        Self(allowed)
    }

    /// How many networks are allowed besides the public internet.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is the public internet alone.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a server at this address may be called. An address of version 4 that is mapped into
    /// version 6 is the one of version 4.
    ///
    /// # Errors
    /// What the address is for.
    pub fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        let address = address.to_canonical();
        if self.0.iter().any(|it| it.contains(address)) {
            return Ok(());
        }
        if let Some((_, kind)) = TABLE.iter().find(|it| it.0.contains(address)) {
            return Err(Forbidden { kind });
        }
        match address {
            IpAddr::V6(_) if !network(GLOBAL).contains(address) => {
                Err(Forbidden { kind: "not global" })
            }
            IpAddr::V4(_) | IpAddr::V6(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    fn kind(address: &str) -> Option<&'static str> {
        Reach::default().check(address.parse().unwrap()).err().map(|it| it.kind)
    }

    #[test]
    fn the_inside_is_refused_up_to_its_edges() {
        for (kind_of, addresses) in [
            ("of this network", ["0.0.0.0", "0.255.255.255"]),
            ("private", ["10.0.0.0", "10.255.255.255"]),
            ("shared behind a carrier's NAT", ["100.64.0.0", "100.127.255.255"]),
            ("loopback", ["127.0.0.1", "127.255.255.255"]),
            ("link-local", ["169.254.0.0", "169.254.169.254"]),
            ("private", ["172.16.0.0", "172.31.255.255"]),
            ("private", ["192.168.0.0", "192.168.255.255"]),
            ("for documentation", ["192.0.2.1", "203.0.113.255"]),
            ("for documentation", ["198.51.100.0", "2001:db8::1"]),
            ("for benchmarks", ["198.18.0.0", "198.19.255.255"]),
            ("multicast", ["224.0.0.0", "239.255.255.255"]),
            ("reserved", ["240.0.0.0", "255.255.255.255"]),
            ("for protocols", ["192.0.0.8", "2001::1"]),
            ("of 6to4", ["2002:7f00:1::", "2002:a00::1"]),
            ("multicast", ["ff02::1", "ff0e::1"]),
        ] {
            for address in addresses {
                assert_eq!(kind(address), Some(kind_of), "{address}");
            }
        }
    }

    #[test]
    fn what_is_beside_the_inside_is_called() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.3.0",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::",
            "2400::1",
            "2606:4700::1111",
        ] {
            assert_eq!(kind(address), None, "{address}");
        }
    }

    #[test]
    fn an_inner_address_is_not_reached_through_version_6() {
        for (address, expected) in [
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.0.0.1", "private"),
            ("::ffff:169.254.169.254", "link-local"),
            ("::127.0.0.1", "not global"),
            ("::1", "not global"),
            ("::", "not global"),
            ("64:ff9b::7f00:1", "not global"),
            ("64:ff9b:1::a00:1", "not global"),
            ("fe80::1", "not global"),
            ("fec0::1", "not global"),
            ("fc00::1", "not global"),
            ("fd12:3456::1", "not global"),
            ("100::1", "not global"),
        ] {
            assert_eq!(kind(address), Some(expected), "{address}");
        }
        assert_eq!(kind("::ffff:1.1.1.1"), None);
    }

    #[test]
    fn an_allowed_network_is_called_and_the_next_address_is_not() {
        let reach = Reach::new(vec!["10.1.0.0/16".parse().unwrap(), "::1".parse().unwrap()]);
        let check = |it: &str| reach.check(it.parse().unwrap()).is_ok();

        assert!(check("10.1.0.0") && check("10.1.255.255") && check("::ffff:10.1.2.3"));
        assert!(check("::1"));
        assert!(!check("10.0.255.255") && !check("10.2.0.0") && !check("::2"));
    }

    proptest! {
        #[test]
        fn a_mapped_address_is_judged_as_itself(bits: u32) {
            let plain = Ipv4Addr::from_bits(bits);
            let mapped = plain.to_ipv6_mapped();
            let reach = Reach::default();

            prop_assert_eq!(reach.check(IpAddr::V4(plain)), reach.check(IpAddr::V6(mapped)));
        }

        #[test]
        fn the_standard_library_calls_no_called_address_inner(bits: u32) {
            let it = Ipv4Addr::from_bits(bits);
            let inner = it.is_private() || it.is_loopback() || it.is_link_local()
                || it.is_multicast() || it.is_broadcast() || it.is_documentation()
                || it.is_unspecified();

            prop_assert!(!(inner && Reach::default().check(IpAddr::V4(it)).is_ok()));
        }
    }
}
