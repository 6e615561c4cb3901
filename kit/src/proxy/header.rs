//! The bytes of a header of version 2.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// What every header begins with.
pub(super) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, and two bytes that say how much follows.
pub(super) const PREFIX_BYTES: usize = 16;
/// Bytes after the prefix: 216 for the longest addresses, 304 for what a proxy adds. A header has
/// at most 536 bytes.
pub(super) const REST_BYTES_MAX: usize = 520;

/// Two addresses of IPv4 and two ports.
const IPV4_BYTES: usize = 12;
/// Two addresses of IPv6 and two ports.
const IPV6_BYTES: usize = 36;

/// Whose a connection is, as the header says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// The proxy's own, such as a health check, or of somebody without an IP address.
    Proxy,
    /// Somebody's behind the proxy.
    Client(SocketAddr),
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Damage {
    /// They begin otherwise.
    #[error("the connection does not begin with a PROXY header")]
    Signature,
    /// It is of another version than 2.
    #[error("the PROXY header is not of version 2")]
    Version,
    /// The command is neither LOCAL nor PROXY.
    #[error("the PROXY header has an unknown command")]
    Command,
    /// The family of addresses is unknown, or not that of a stream.
    #[error("the PROXY header has addresses of an unknown family")]
    Family,
    /// It is longer than any header should be.
    #[error("the PROXY header is too long")]
    TooLong,
    /// It ends within the addresses.
    #[error("the PROXY header ends within its addresses")]
    TooShort,
}

/// The first part of a header, which says how much follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    family: Family,
    rest_bytes: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Family {
    /// Nobody's addresses that we could use.
    None,
    Ipv4,
    Ipv6,
}

impl Prefix {
    pub(super) fn parse(bytes: &[u8; PREFIX_BYTES]) -> Result<Self, Damage> {
        let [signature @ .., version_command, family, high, low] = bytes;
        if *signature != SIGNATURE {
            let is_first = signature.starts_with(b"PROXY ");
            return Err(if is_first { Damage::Version } else { Damage::Signature });
        }
        if version_command >> 4 != 2 {
            return Err(Damage::Version);
        }
        let family = match (version_command & 0x0f, family) {
            (0, _) | (1, 0x00 | 0x31) => Family::None,
            (1, 0x11) => Family::Ipv4,
            (1, 0x21) => Family::Ipv6,
            (1, _) => return Err(Damage::Family),
            (_, _) => return Err(Damage::Command),
        };
        let rest_bytes = usize::from(u16::from_be_bytes([*high, *low]));
        if rest_bytes > REST_BYTES_MAX {
            return Err(Damage::TooLong);
        }
        Ok(Self { family, rest_bytes })
    }

    /// Bytes that follow, at most [`REST_BYTES_MAX`].
    pub(super) const fn rest_bytes(&self) -> usize {
        self.rest_bytes
    }

    /// What they say.
    pub(super) fn source(&self, rest: &[u8]) -> Result<Source, Damage> {
        match self.family {
            Family::None => Ok(Source::Proxy),
            Family::Ipv4 => {
                let bytes: &[u8; IPV4_BYTES] = rest.first_chunk().ok_or(Damage::TooShort)?;
                let [a, b, c, d, _, _, _, _, high, low, _, _] = *bytes;
                Ok(client(Ipv4Addr::new(a, b, c, d).into(), [high, low]))
            }
            Family::Ipv6 => {
                let bytes: &[u8; IPV6_BYTES] = rest.first_chunk().ok_or(Damage::TooShort)?;
                let (source, others) = bytes.split_first_chunk::<16>().ok_or(Damage::TooShort)?;
                let &[.., high, low, _, _] = others else { return Err(Damage::TooShort) };
                Ok(client(Ipv6Addr::from(*source).to_canonical(), [high, low]))
            }
        }
    }
}

fn client(address: std::net::IpAddr, port: [u8; 2]) -> Source {
    Source::Client(SocketAddr::new(address, u16::from_be_bytes(port)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_connection_of_the_proxy_itself_is_its_own() {
        assert_eq!(parse(&header(0x20, 0x00, &[])), Ok(Source::Proxy));
        assert_eq!(parse(&header(0x20, 0x11, &[0; 12])), Ok(Source::Proxy));
        assert_eq!(parse(&header(0x21, 0x00, &[])), Ok(Source::Proxy));
        assert_eq!(parse(&header(0x21, 0x31, &[b'a'; 216])), Ok(Source::Proxy));
    }

    #[test]
    fn what_is_no_header_says_why() {
        let check = |bytes: &[u8], expected| assert_eq!(parse(bytes), Err(expected));

        check(b"GET / HTTP/1.1\r\n", Damage::Signature);
        check(b"PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n", Damage::Version);
        check(&header(0x11, 0x11, &[0; 12]), Damage::Version);
        check(&header(0x22, 0x11, &[0; 12]), Damage::Command);
        check(&header(0x21, 0x12, &[0; 12]), Damage::Family);
        check(&header(0x21, 0x11, &[0; 11]), Damage::TooShort);
        check(&header(0x21, 0x21, &[0; 35]), Damage::TooShort);
        check(&header(0x21, 0x11, &[0; REST_BYTES_MAX + 1]), Damage::TooLong);
    }

    #[test]
    fn the_longest_header_is_read() {
        let rest = [&[203, 0, 113, 9, 127, 0, 0, 1, 4, 210, 1, 187][..], &[0; 508]].concat();

        let source = parse(&header(0x21, 0x11, &rest));

        assert_eq!(rest.len(), REST_BYTES_MAX);
        assert_eq!(source, Ok(Source::Client("203.0.113.9:1234".parse().unwrap())));
    }

    proptest! {
        #[test]
        fn every_client_is_found(client: SocketAddr, more in prop::collection::vec(any::<u8>(), 0..99)) {
            let port = client.port().to_be_bytes();
            let (family, addresses) = match client {
                SocketAddr::V4(it) => (0x11, [&it.ip().octets()[..], &[9; 4], &port, &[9; 2]].concat()),
                SocketAddr::V6(it) => (0x21, [&it.ip().octets()[..], &[9; 16], &port, &[9; 2]].concat()),
            };

            let source = parse(&header(0x21, family, &[addresses, more].concat()));

            let expected = SocketAddr::new(client.ip().to_canonical(), client.port());
            prop_assert_eq!(source, Ok(Source::Client(expected)));
        }

        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 16..600), version: u8, family: u8) {
            parse(&bytes).ok();
            parse(&header(version, family, &bytes)).ok();
        }
    }

    fn parse(bytes: &[u8]) -> Result<Source, Damage> {
        let (prefix, rest) = bytes.split_first_chunk().unwrap();
        let prefix = Prefix::parse(prefix)?;
        prefix.source(&rest[..prefix.rest_bytes().min(rest.len())])
    }

    fn header(version_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[version_command, family], &len, rest].concat()
    }
}
