//! The PROXY protocol, version 2: a proxy says first whose connection it passes on.
//!
//! The header is read to its last byte and no further, so that TLS or anything else can follow.
//! A proxy that is trusted always sends one, and nobody else may: who could choose the header
//! could choose their address. Version 1, a line of text, is refused.
//!
//! Source: "The PROXY protocol, versions 1 & 2" by Willy Tarreau, as HAProxy publishes it. What may
//! follow the addresses, its checksum included, is read and not looked at.

mod header;

use std::io;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use self::header::{PREFIX_BYTES, Prefix, REST_BYTES_MAX, SIGNATURE};

pub use self::header::{Damage, Source};

/// Networks of one list, each a comparison for every connection.
const NETWORKS_MAX: usize = 256;
/// As much of the signature as nothing else begins with: a blank line, and a zero byte.
const TELLING_BYTES: usize = 5;

/// Proxies that are trusted to say whose connection it is: networks such as `10.1.0.0/16`.
///
/// Without any, a connection is its peer's.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Proxies(Vec<IpNet>);

/// Why a connection is closed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Somebody who is not trusted sends a header.
    #[error("the peer is no trusted proxy, and sends a PROXY header")]
    Untrusted,
    /// A trusted proxy sends no header, or a damaged one.
    #[error(transparent)]
    Header(#[from] Damage),
    /// The connection ended before.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Proxies {
    /// Refuses a list that is too long.
    ///
    /// # Errors
    /// Says how long it is.
    pub fn check(&self) -> anyhow::Result<()> {
        let networks = self.0.len();
        anyhow::ensure!(
            networks <= NETWORKS_MAX,
            "{networks} networks are more than {NETWORKS_MAX}"
        );
        Ok(())
    }

    /// Whose a new connection is, as its first bytes say if `peer` is a trusted proxy.
    ///
    /// It waits for the first bytes as long as the peer likes: the caller has the deadline. When it
    /// is cancelled, the connection cannot be used any more.
    ///
    /// # Errors
    /// [`Refusal`]: the connection is to be closed.
    pub async fn client(
        &self,
        stream: &mut TcpStream,
        peer: SocketAddr,
    ) -> Result<SocketAddr, Refusal> {
        if self.0.is_empty() {
            return Ok(peer);
        }
        if !self.trusts(peer.ip()) {
            let mut first = [0; SIGNATURE.len()];
            let bytes = stream.peek(&mut first).await?;
            let begins_header = begins_header(&first[..bytes]);
            return if begins_header { Err(Refusal::Untrusted) } else { Ok(peer) };
        }
        let mut prefix = [0; PREFIX_BYTES];
        stream.read_exact(&mut prefix).await?;
        let prefix = Prefix::parse(&prefix)?;
        let mut rest = [0; REST_BYTES_MAX];
        let rest = &mut rest[..prefix.rest_bytes()];
        stream.read_exact(rest).await?;
        Ok(match prefix.source(rest)? {
            Source::Proxy => peer,
            Source::Client(client) => client,
        })
    }

    /// Whether what connects from `address` is believed.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|it| it.contains(&address))
    }
}

/// Whether these first bytes can only be a header, of either version. With fewer bytes than tell,
/// what reads them next refuses them: neither HTTP nor TLS begins so.
fn begins_header(first: &[u8]) -> bool {
    first.starts_with(&SIGNATURE[..TELLING_BYTES]) || first.starts_with(b"PROXY ")
}

impl FromIterator<IpNet> for Proxies {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    /// From 203.0.113.9:1234.
    const HEADER: [u8; 28] =
        *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\x7f\0\0\x01\x04\xd2\x01\xbb";

    #[tokio::test]
    async fn a_trusted_proxy_says_whose_connection_it_is() {
        let (client, next) = ask("127.0.0.0/8", &[&HEADER[..], b"GET"].concat()).await;

        assert_eq!(client.unwrap(), "203.0.113.9:1234".parse().unwrap());
        assert_eq!(next, b"GET", "what follows the header is there");
    }

    #[tokio::test]
    async fn a_trusted_proxy_without_a_header_is_refused() {
        let (client, _) = ask("127.0.0.0/8", b"GET / HTTP/1.1\r\n\r\n").await;

        assert!(matches!(client, Err(Refusal::Header(Damage::Signature))), "{client:?}");
    }

    #[tokio::test]
    async fn a_header_of_version_1_is_refused() {
        let (client, _) = ask("127.0.0.0/8", b"PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n").await;

        assert!(matches!(client, Err(Refusal::Header(Damage::Version))), "{client:?}");
    }

    #[tokio::test]
    async fn nobody_else_may_send_a_header() {
        for first in [&HEADER[..], b"PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n"] {
            let (client, _) = ask("10.0.0.0/8", first).await;

            assert!(matches!(client, Err(Refusal::Untrusted)), "{client:?}");
        }
    }

    #[tokio::test]
    async fn everybody_else_is_who_they_are() {
        let (client, next) = ask("10.0.0.0/8", b"POST / HTTP/1.1").await;

        assert!(client.unwrap().ip().is_loopback());
        assert_eq!(next, b"POST / HTTP/1.1");
    }

    #[tokio::test]
    async fn a_header_that_breaks_off_is_refused() {
        let (client, _) = ask("127.0.0.0/8", &HEADER[..20]).await;

        assert!(matches!(client, Err(Refusal::Io(_))), "{client:?}");
    }

    #[test]
    fn a_mapped_address_is_in_a_network_of_ipv4() {
        let proxies: Proxies = ["10.0.0.0/8".parse().unwrap()].into_iter().collect();

        assert!(proxies.trusts("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!proxies.trusts("::ffff:11.1.2.3".parse().unwrap()));
    }

    #[test]
    fn a_list_is_bounded() {
        let many = |count| std::iter::repeat_n("10.0.0.0/8".parse().unwrap(), count);

        assert!(many(256).collect::<Proxies>().check().is_ok());
        assert!(many(257).collect::<Proxies>().check().is_err());
    }

    /// Whose a connection from 127.0.0.1 is that sends `first` and ends, and what can be read then.
    async fn ask(trusted: &str, first: &[u8]) -> (Result<SocketAddr, Refusal>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut stream, peer) = listener.accept().await.unwrap();
        sender.write_all(first).await.unwrap();
        sender.shutdown().await.unwrap();
        let proxies: Proxies = [trusted.parse().unwrap()].into_iter().collect();

        let client = proxies.client(&mut stream, peer).await;

        let mut next = Vec::new();
        stream.read_to_end(&mut next).await.unwrap();
        (client, next)
    }
}
