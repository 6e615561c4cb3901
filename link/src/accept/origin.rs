//! Where connections come from, as far as it is known.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use link_core::places::Site;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// From whoever is connected to the socket.
    Peer(SocketAddr),
    /// From a client that a trusted proxy names; port 0: it names none.
    Named(SocketAddr),
}

impl Origin {
    /// The whole address.
    pub(crate) fn socket(self) -> SocketAddr {
        let (Self::Peer(address) | Self::Named(address)) = self;
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    /// What one subscriber has: an IPv4 address, or a /64 of IPv6.
    pub(crate) fn address(self) -> IpAddr {
        match self.socket().ip() {
            IpAddr::V4(it) => IpAddr::V4(it),
            IpAddr::V6(it) => {
                let [a, b, c, d, ..] = it.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        }
    }

    /// Whose that is. One that a proxy names as loopback is one client, whoever that may be.
    pub(crate) fn site(self) -> Site {
        match self {
            Self::Peer(address) if address.ip().to_canonical().is_loopback() => Site::Everybodys,
            Self::Peer(_) | Self::Named(_) => Site::Own(self.address()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_everybodys_unless_a_proxy_names_it() {
        for loopback in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let address = SocketAddr::new(loopback.parse().unwrap(), 4711);

            assert_eq!(Origin::Peer(address).site(), Site::Everybodys, "{loopback}");
            let named = Origin::Named(address);
            assert_eq!(named.site(), Site::Own(named.address()), "{loopback}");
        }
    }

    #[test]
    fn a_subscriber_is_an_address_or_a_64th_of_ipv6() {
        let site = |it: &str| Origin::Peer(SocketAddr::new(it.parse().unwrap(), 4711)).site();

        assert_eq!(site("2001:db8::1"), site("2001:db8::2"));
        assert_ne!(site("2001:db8::1"), site("2001:db8:0:1::1"));
        assert_eq!(site("::ffff:192.0.2.1"), site("192.0.2.1"));
    }
}
