//! Ranges of IP addresses, such as `203.0.113.0/24`, or one address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// All addresses that share the first `bits` with `base`, whose other bits are 0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

/// The first range in order: all of IPv4.
pub const FIRST: Network = Network { base: IpAddr::V4(Ipv4Addr::UNSPECIFIED), bits: 0 };

/// Text that is no range of addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "a range is an address, or an address with all bits 0 behind its prefix, / and their count"
)]
pub struct BadNetwork;

impl Network {
    /// The range of one address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let base = address.to_canonical();
        Self { base, bits: width(base) }
    }

    /// Whether an address lies in the range. One of IPv4 written as IPv6 is one of IPv4.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        width(address) == width(self.base) && masked(address, self.bits) == self.base
    }

    /// Whether it is of IPv4.
    #[must_use]
    pub const fn is_ipv4(self) -> bool {
        self.base.is_ipv4()
    }

    /// How many first bits its addresses share.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.bits
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let Some((address, bits)) = text.split_once('/') else {
            return text.parse().map(Self::of).map_err(|_| BadNetwork);
        };
        // `parse` would take a sign.
        let is_number = !bits.is_empty() && bits.bytes().all(|it| it.is_ascii_digit());
        let bits: u8 = bits.parse().ok().filter(|_| is_number).ok_or(BadNetwork)?;
        let base: IpAddr = address.parse().map_err(|_| BadNetwork)?;
        // Of a range that begins in the IPv4 part of IPv6 it is not clear what is meant.
        let is_own = base.to_canonical() == base;
        if is_own && bits <= width(base) && masked(base, bits) == base {
            return Ok(Self { base, bits });
        }
        Err(BadNetwork)
    }
}

impl TryFrom<String> for Network {
    type Error = BadNetwork;

    fn try_from(text: String) -> Result<Self, BadNetwork> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(it) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(it.to_bits() & mask))
        }
        IpAddr::V6(it) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(it.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_holds_what_shares_its_prefix() {
        let contains = |range: &str, address: &str| {
            network(range).contains(address.parse::<IpAddr>().unwrap())
        };

        assert!(contains("203.0.113.0/24", "203.0.113.255"));
        assert!(!contains("203.0.113.0/24", "203.0.112.255"));
        assert!(contains("203.0.113.7", "203.0.113.7"));
        assert!(contains("203.0.113.7", "::ffff:203.0.113.7"));
        assert!(!contains("203.0.113.7", "203.0.113.8"));
        assert!(contains("0.0.0.0/0", "203.0.113.7"));
        assert!(!contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("2001:db8:1::/48", "2001:db8:1:ffff::1"));
        assert!(!contains("2001:db8:1::/48", "2001:db8:2::1"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(!contains("::/0", "203.0.113.7"));
    }

    #[test]
    fn it_reads_what_it_writes_and_nothing_else() {
        for text in ["203.0.113.0/24", "0.0.0.0/0", "203.0.113.7/32", "2001:db8::/32", "::/0"] {
            assert_eq!(network(text).to_string(), text);
        }
        assert_eq!(network("203.0.113.7").to_string(), "203.0.113.7/32");
        assert_eq!(network("2001:db8::1").to_string(), "2001:db8::1/128");
        for bad in [
            "",
            "/",
            "203.0.113.0/",
            "203.0.113.0/33",
            "203.0.113.1/24",
            "2001:db8::/129",
            "203.0.113.0/+8",
            "203.0.113.0/ 8",
            "203.0.113/24",
            "::ffff:10.0.0.0/104",
            "x/8",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(BadNetwork), "{bad}");
        }
    }
}
