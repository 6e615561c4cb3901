//! How reports are signed, and how they reach collectors.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use kit::clock::Clock;
use proto::load::LoadReport;
use sha2::Sha256;
use tokio::net::UdpSocket;
use tokio::sync::{Notify, watch};

/// Bytes of a report's MAC.
pub(crate) const MAC_BYTES: usize = 32;
/// Collectors' names are looked up again so often: they move.
const RESOLVE_EVERY: Duration = Duration::from_secs(30);
/// Time for looking one up.
const RESOLVE_MAX: Duration = Duration::from_secs(2);

/// The sockets that reports leave by.
pub(crate) struct Post {
    v4: UdpSocket,
    v6: Option<UdpSocket>,
    collectors: watch::Receiver<Vec<SocketAddr>>,
}

impl Post {
    /// Sends to those who are in `collectors` at the time.
    pub(crate) async fn new(collectors: watch::Receiver<Vec<SocketAddr>>) -> anyhow::Result<Self> {
        let any = |ip: IpAddr| SocketAddr::new(ip, 0);
        Ok(Self {
            v4: UdpSocket::bind(any(Ipv4Addr::UNSPECIFIED.into())).await?,
            // A machine may have no IPv6 at all.
            v6: UdpSocket::bind(any(Ipv6Addr::UNSPECIFIED.into())).await.ok(),
            collectors,
        })
    }

    /// Sends a datagram to every collector.
    pub(crate) async fn send(&self, datagram: &[u8]) {
        let collectors = self.collectors.borrow().clone();
        for collector in collectors {
            let socket = if collector.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
            let Some(socket) = socket else { continue };
            if let Err(error) = socket.send_to(datagram, collector).await {
                tracing::debug!(%error, %collector, "a load report was not sent");
            }
        }
    }
}

/// Looks collectors up for ever, and rings when they are known. Beside the reporting: a slow answer
/// must delay no report.
pub(crate) async fn resolve(
    names: &[String],
    clock: &Clock,
    found: watch::Sender<Vec<SocketAddr>>,
    known: &Notify,
) -> Infallible {
    loop {
        let mut collectors = Vec::new();
        for name in names {
            let looked_up = tokio::time::timeout(RESOLVE_MAX, tokio::net::lookup_host(name)).await;
            match looked_up {
                Ok(Ok(mut addresses)) => collectors.extend(addresses.next()),
                Ok(Err(_)) | Err(_) => tracing::warn!(name, "a collector was not found"),
            }
        }
        if !collectors.is_empty() {
            found.send_replace(collectors);
            known.notify_one();
        }
        clock.sleep(RESOLVE_EVERY).await;
    }
}

/// The datagram of a report: its bytes, and their MAC under the node's secret.
pub(crate) fn seal(secret: &[u8], report: &LoadReport) -> Vec<u8> {
    let mut datagram = report.encode().to_vec();
    let mac: [u8; MAC_BYTES] = mac(secret, &datagram).finalize().into_bytes().into();
    datagram.extend_from_slice(&mac);
    datagram
}

/// The MAC of a report's bytes, to be taken or compared.
pub(crate) fn mac(secret: &[u8], bytes: &[u8]) -> Hmac<Sha256> {
    let mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.chain_update(bytes)
}
