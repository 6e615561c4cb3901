//! Connections that a trusted proxy passes on: whose they are, it has to say.
//!
//! It says so in a PROXY header or, where it speaks HTTP itself, in the `X-Forwarded-For` of the
//! request for a WebSocket. From then on the connection is its client's, wherever the proxy stands.
//!
//! Nobody else is looked at. A header of theirs begins no frame, no TLS and no request, and so it is
//! refused by what reads it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use link_core::places::{Places, Site};
use parking_lot::Mutex;
use proto::address::Transport;
use tokio::net::TcpStream;
use tungstenite::handshake::server::Request;

use super::origin::Origin;
use super::{Entrance, Listener, Shaken, upgrade};
use crate::converse::{Place, Presence};
use crate::socket::Socket;

/// Of the places before login, one part in so many is for connections whose client is not named
/// yet. A proxy names it with the first bytes, within a round trip.
const UNNAMED_SHARE: u32 = 4;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// A connection before its handshake.
pub(super) enum Knock {
    /// Its client is known, and counts for what it does.
    Own(Presence),
    /// The proxy at this address is about to name its client.
    Passed(SocketAddr, Place),
}

/// Places of one listener for connections whose client is not named yet.
pub(super) struct Unnamed(Arc<Mutex<Places>>);

impl Unnamed {
    pub(super) fn new(entrance: &Entrance) -> Self {
        let places_max = (entrance.node.config.handshakes_max / UNNAMED_SHARE).max(1);
        Self(Arc::new(Mutex::new(Places::new(places_max, places_max))))
    }

    /// Whether a new connection may go on.
    pub(super) fn knock(&self, entrance: &Entrance, peer: SocketAddr) -> Option<Knock> {
        if !entrance.node.config.trusted_proxies.trusts(peer.ip()) {
            return entrance.admit(Origin::Peer(peer)).map(Knock::Own);
        }
        let place = Place::take(&self.0, Site::Own(peer.ip()));
        if place.is_err() {
            entrance.node.counts.turned_away("proxies_full");
        }
        place.ok().map(|it| Knock::Passed(peer, it))
    }
}

impl Entrance {
    /// The handshake of a connection that `proxy` passes on; none if it is turned away, and
    /// counted.
    pub(super) async fn pass(
        &self,
        mut stream: TcpStream,
        listener: &Listener,
        proxy: SocketAddr,
        place: Place,
    ) -> anyhow::Result<Option<Shaken>> {
        let config = &self.node.config;
        if listener.address.transport == Transport::Ws && begins_request(&stream).await? {
            let mut socket = Socket::Plain(Box::new(stream));
            let (request, behind) = upgrade::read(&mut socket).await?;
            let Some(client) = forwarded_for(&request) else {
                return Ok(self.refuse_header());
            };
            let Some(presence) = self.admit_named(client, place) else { return Ok(None) };
            upgrade::answer(&mut socket, &request, &config.origins).await?;
            return Ok(Some((socket, behind, presence)));
        }
        let client = match config.trusted_proxies.client(&mut stream, proxy).await {
            Ok(client) => client,
            Err(kit::proxy::Refusal::Io(error)) => return Err(error.into()),
            Err(kit::proxy::Refusal::Header(_) | kit::proxy::Refusal::Untrusted) => {
                return Ok(self.refuse_header());
            }
        };
        let presence = if client == proxy {
            drop(place);
            // The proxy's own, such as a check whether somebody listens.
            self.admit(Origin::Peer(proxy))
        } else {
            self.admit_named(client, place)
        };
        match presence {
            Some(presence) => self.shake(stream, listener, presence).await.map(Some),
            None => Ok(None),
        }
    }

    fn admit_named(&self, client: SocketAddr, unnamed: Place) -> Option<Presence> {
        drop(unnamed);
        self.admit(Origin::Named(client))
    }

    fn refuse_header<T>(&self) -> Option<T> {
        self.node.counts.turned_away("proxy_header");
        None
    }
}

/// Whether the client's first words are a request, and no PROXY header.
async fn begins_request(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let bytes = stream.peek(&mut first).await?;
    Ok(first[..bytes] == *b"G")
}

/// Who asked the proxy: it adds an address at the end, and what stands before may be anybody's.
fn forwarded_for(request: &Request) -> Option<SocketAddr> {
    let last = request.headers().get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
    let address = last.rsplit(',').next()?.trim();
    let alone = address.parse().map(|it: IpAddr| SocketAddr::new(it, 0));
    let client = alone.or_else(|_| address.parse::<SocketAddr>()).ok()?;
    Some(SocketAddr::new(client.ip().to_canonical(), client.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_the_proxy_added_counts() {
        let check = |fields: &[&str], expected: Option<&str>| {
            let request = fields
                .iter()
                .fold(Request::builder(), |it, field| it.header("X-Forwarded-For", *field));
            let found = forwarded_for(&request.body(()).unwrap());
            assert_eq!(found, expected.map(|it| it.parse().unwrap()), "{fields:?}");
        };

        check(&["192.0.2.1"], Some("192.0.2.1:0"));
        check(&["6.6.6.6, 192.0.2.1 "], Some("192.0.2.1:0"));
        check(&["6.6.6.6", "192.0.2.1"], Some("192.0.2.1:0"));
        check(&["2001:db8::1"], Some("[2001:db8::1]:0"));
        check(&["::ffff:192.0.2.1"], Some("192.0.2.1:0"));
        check(&["192.0.2.1:4711"], Some("192.0.2.1:4711"));
        check(&["[2001:db8::1]:4711"], Some("[2001:db8::1]:4711"));
        check(&["192.0.2.1,"], None);
        check(&["192.0.2.1, unknown"], None);
        check(&[""], None);
        check(&[], None);
    }
}
