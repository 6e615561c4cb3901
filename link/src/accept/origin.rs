//! Where connections come from, as far as it is known.

use std::net::{IpAddr, Ipv6Addr};

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// From whoever is connected to the socket.
    Peer(IpAddr),
    /// From a client that a trusted proxy names.
    Named(IpAddr),
}

impl Origin {
    /// What one subscriber has: an IPv4 address, or a /64 of IPv6.
    pub(crate) fn site(self) -> IpAddr {
        let (Self::Peer(address) | Self::Named(address)) = self;
        match address.to_canonical() {
            IpAddr::V4(it) => IpAddr::V4(it),
            IpAddr::V6(it) => {
                let [a, b, c, d, ..] = it.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        }
    }

    /// Whether nobody in particular comes from there: behind a terminator that does not name its
    /// clients everybody comes from loopback.
    pub(super) fn is_everybodys(self) -> bool {
        match self {
            Self::Peer(address) => address.to_canonical().is_loopback(),
            Self::Named(_) => false,
        }
    }
}
