//! Whose question it is, behind a known number of proxies.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The client's address: the n-th from the right of the `X-Forwarded-For` fields for n trusted
/// hops, else the socket's peer.
///
/// Everything further left was written by the client itself and means nothing. Where fewer hops
/// wrote, or something that is no address, it is the socket's peer.
pub(crate) fn address<'a>(
    peer: SocketAddr,
    fields: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted_hops: u32,
) -> IpAddr {
    let socket = peer.ip().to_canonical();
    let Some(skipped) = trusted_hops.checked_sub(1) else {
        return socket;
    };
    let mut hops = fields.rev().flat_map(|it| it.rsplit(|&byte| byte == b','));
    let hop = hops.nth(skipped as usize).and_then(|it| parse(std::str::from_utf8(it).ok()?));
    hop.map_or(socket, |it| it.to_canonical())
}

/// Proxies write an address, some with a port, some with brackets about IPv6.
fn parse(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let with_port = || Some(hop.parse::<SocketAddr>().ok()?.ip());
    let in_brackets = || hop.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    hop.parse().ok().or_else(with_port).or_else(|| in_brackets().map(IpAddr::V6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_trusted_hops_the_header_means_nothing() {
        check(0, &["203.0.113.9"], "192.0.2.1");
    }

    #[test]
    fn the_nth_from_the_right_counts() {
        check(1, &["6.6.6.6, 203.0.113.9"], "203.0.113.9");
        check(2, &["6.6.6.6, 203.0.113.9, 198.51.100.1"], "203.0.113.9");
        check(2, &["6.6.6.6, 203.0.113.9", "198.51.100.1"], "203.0.113.9");
        check(1, &["6.6.6.6,[2001:db8::1]:443"], "2001:db8::1");
        check(1, &["203.0.113.9:5000"], "203.0.113.9");
        check(1, &["::ffff:203.0.113.9"], "203.0.113.9");
    }

    #[test]
    fn ipv6_comes_with_and_without_a_port_and_over_several_lines() {
        check(1, &["2001:db8::1"], "2001:db8::1");
        check(1, &["[2001:db8::1]"], "2001:db8::1");
        check(2, &["2001:db8::1", "[2001:db8::2]:443"], "2001:db8::1");
        check(3, &["2001:db8::1, 2001:db8::2", "2001:db8::3", "2001:db8::4"], "2001:db8::2");
        check(1, &["[::ffff:203.0.113.9]:80"], "203.0.113.9");
        check(1, &["fe80::1%eth0"], "192.0.2.1");
    }

    #[test]
    fn a_header_of_any_length_does_no_harm() {
        let commas = ",".repeat(15_000);
        let digits = "1".repeat(15_000);

        check(1, &[&commas], "192.0.2.1");
        check(15_001, &[&format!("203.0.113.9{commas}")], "203.0.113.9");
        check(15_002, &[&format!("203.0.113.9{commas}")], "192.0.2.1");
        check(1, &[&digits], "192.0.2.1");
        check(1, &[&format!("{commas}[2001:db8::1]:443")], "2001:db8::1");
    }

    #[test]
    fn what_is_missing_or_no_address_is_the_socket() {
        check(1, &[], "192.0.2.1");
        check(3, &["6.6.6.6, 203.0.113.9"], "192.0.2.1");
        check(1, &["6.6.6.6, unknown"], "192.0.2.1");
        check(1, &["6.6.6.6, "], "192.0.2.1");
        check(u32::MAX, &["6.6.6.6"], "192.0.2.1");
    }

    fn check(trusted_hops: u32, fields: &[&str], expected: &str) {
        let peer = "[::ffff:192.0.2.1]:999".parse().unwrap();

        let found = address(peer, fields.iter().map(|it| it.as_bytes()), trusted_hops);

        assert_eq!(found, expected.parse::<IpAddr>().unwrap(), "{trusted_hops} {fields:?}");
    }
}
