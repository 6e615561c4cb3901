//! Load reports in, one packed value per region out.
//!
//! A datagram counts if its MAC was made with the secret of the link node it names. Whatever else
//! arrives is counted and forgotten.

mod packer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use auth_core::node::{NodeRole, NodeSecret};
use gslb_core::fleet::{Fleet, Heard, Refusal};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use kit::clock::Clock;
use kit::meter::{Meter, list};
use prometheus::IntCounter;
use proto::id::NodeId;
use proto::limits::REPORT_BYTES_MAX;
use proto::load::ReportView;
use proto::time::Mono;
use sha2::Sha256;
use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::table::{LoadTable, Value};

pub(crate) use packer::Packer;

/// Bytes of a node's secret: as long as the MAC, so that it cannot be guessed.
const SECRET_BYTES_MIN: usize = 32;
/// Bytes of a report's MAC.
const MAC_BYTES: usize = 32;
/// Milliseconds between two looks for datagrams. At 200,000 a second it costs much less to look than
/// to be woken for each of them; at rest it costs about a hundredth of a core.
const LOOK_MS: u32 = 1;
/// Bytes that the socket holds meanwhile. A thousand nodes send 200 reports between two looks, for
/// each of which the kernel counts 768 bytes; it grants at most twice `net.core.rmem_max`, which is
/// 416 KiB where nobody has set it. On a busy machine looks come late: the more it holds, the better.
const SOCKET_BYTES: usize = 4 * 1024 * 1024;
/// Datagrams taken at a look. The kernel drops what does not fit the socket.
const DATAGRAMS_PER_LOOK: usize = 1_024;
/// Time for one write to the table; the next value is there long before.
const PUT_MAX: Duration = Duration::from_millis(500);

/// Receives reports and packs them.
#[derive(Debug)]
pub(crate) struct Collector {
    socket: std::net::UdpSocket,
    pack_ms: u32,
    clock: Clock,
    secrets: Secrets,
    packer: Packer,
    counts: Counts,
    /// To the writer: the newest values only.
    packed: watch::Sender<Vec<Value>>,
}

/// What link nodes sign with, and where they may be.
#[derive(Debug)]
struct Secrets(BTreeMap<NodeId, (Hmac<Sha256>, NodeSecret)>);

/// Why a datagram does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unheard {
    TooLarge,
    Malformed,
    UnknownNode,
    WrongMac,
    /// It names an address on a host that its node does not have.
    ForeignHost,
    Refused(Refusal),
}

#[derive(Debug)]
struct Counts {
    joined: IntCounter,
    renewed: IntCounter,
    lost: IntCounter,
    too_large: IntCounter,
    malformed: IntCounter,
    unknown_node: IntCounter,
    wrong_mac: IntCounter,
    foreign_host: IntCounter,
    replayed: IntCounter,
    addresses: IntCounter,
    nodes_max: IntCounter,
    region_max: IntCounter,
}

impl Collector {
    pub(crate) fn new(
        socket: UdpSocket,
        config: &config::Collector,
        nodes: &[NodeSecret],
        fleet: Fleet,
        clock: Clock,
        meter: &Meter,
    ) -> anyhow::Result<Self> {
        // The runtime would be woken for each datagram, whether or not somebody waits for it.
        let socket = socket.into_std()?;
        SockRef::from(&socket).set_recv_buffer_size(SOCKET_BYTES)?;
        Ok(Self {
            socket,
            pack_ms: config.pack_ms,
            secrets: Secrets::new(nodes)?,
            packer: Packer::new(fleet, Duration::from_millis(config.idle_ms.into()), clock.mono()),
            counts: Counts::new(meter),
            packed: watch::Sender::default(),
            clock,
        })
    }

    /// Where the packed values appear.
    pub(crate) fn packed(&self) -> watch::Receiver<Vec<Value>> {
        self.packed.subscribe()
    }

    /// Collects until `shutdown`.
    pub(crate) async fn collect(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        // One byte more than the longest datagram, so that a longer one is seen to be longer.
        let mut buffer = [0; REPORT_BYTES_MAX + MAC_BYTES + 1];
        let (mut packing, mut looking) = (crate::every(self.pack_ms), crate::every(LOOK_MS));
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                _ = packing.tick() => self.pack(),
                _ = looking.tick() => {
                    self.receive(&mut buffer);
                    if self.packer.tell() {
                        self.pack();
                    }
                }
            }
        }
    }

    /// Handles the datagrams that wait.
    fn receive(&mut self, buffer: &mut [u8]) {
        let now = self.clock.mono();
        for _ in 0..DATAGRAMS_PER_LOOK {
            // An ICMP error of an earlier datagram comes up here, too, and means nothing to us.
            let Ok((bytes, _)) = self.socket.recv_from(buffer) else {
                return;
            };
            let heard = self.hear(&buffer[..bytes], now);
            self.counts.of(heard).inc();
        }
    }

    fn hear(&mut self, datagram: &[u8], now: Mono) -> Result<Heard, Unheard> {
        let (bytes, node) = self.secrets.open(datagram)?;
        self.packer.hear(bytes, node, now)
    }

    fn pack(&mut self) {
        self.counts.lost.inc_by(self.packer.take_lost());
        if let Some(values) = self.packer.pack(self.clock.mono(), self.clock.wall()) {
            self.packed.send_replace(values);
        }
    }
}

/// Writes packed values to the table until their sender is gone; a slow table gets the newest.
pub(crate) async fn write(
    mut packed: watch::Receiver<Vec<Value>>,
    table: Arc<dyn LoadTable>,
    meter: Meter,
) -> anyhow::Result<()> {
    let failures = meter.counter(list::GSLB_TABLE_FAILURES_TOTAL, &["put"]);
    while packed.changed().await.is_ok() {
        let values = packed.borrow_and_update().clone();
        match tokio::time::timeout(PUT_MAX, table.put(values)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "loads could not be written");
                failures.inc();
            }
            Err(_) => failures.inc(),
        }
    }
    Ok(())
}

impl Secrets {
    fn new(nodes: &[NodeSecret]) -> anyhow::Result<Self> {
        let links = nodes.iter().filter(|it| it.role == NodeRole::Link);
        let keyed = links.map(|it| {
            let secret = it.secret.expose().as_bytes();
            ensure!(
                secret.len() >= SECRET_BYTES_MIN,
                "the secret of node {} has fewer than {SECRET_BYTES_MIN} bytes",
                it.node
            );
            let key = Hmac::new_from_slice(secret);
            let key = key.expect("HMAC takes keys of any length");
            Ok((it.node, (key, it.clone())))
        });
        Ok(Self(keyed.collect::<anyhow::Result<_>>()?))
    }

    /// The bytes of the report in a datagram, and the node that signed them.
    fn open<'a>(&self, datagram: &'a [u8]) -> Result<(&'a [u8], &NodeSecret), Unheard> {
        if datagram.len() > REPORT_BYTES_MAX + MAC_BYTES {
            return Err(Unheard::TooLarge);
        }
        let (signed, mac) = datagram.split_last_chunk::<MAC_BYTES>().ok_or(Unheard::Malformed)?;
        let node = ReportView::peek(signed).ok_or(Unheard::Malformed)?;
        let (key, node) = self.0.get(&node).ok_or(Unheard::UnknownNode)?;
        let checked = key.clone().chain_update(signed).verify_slice(mac);
        checked.map_err(|_| Unheard::WrongMac)?;
        Ok((signed, node))
    }
}

impl Counts {
    fn new(meter: &Meter) -> Self {
        let count = |outcome| meter.counter(list::GSLB_DATAGRAMS_TOTAL, &[outcome]);
        Self {
            joined: count("joined"),
            renewed: count("renewed"),
            lost: count("lost"),
            too_large: count("too_large"),
            malformed: count("malformed"),
            unknown_node: count("unknown_node"),
            wrong_mac: count("wrong_mac"),
            foreign_host: count("foreign_host"),
            replayed: count("replayed"),
            addresses: count("addresses"),
            nodes_max: count("nodes_max"),
            region_max: count("region_max"),
        }
    }

    const fn of(&self, heard: Result<Heard, Unheard>) -> &IntCounter {
        match heard {
            Ok(Heard::Joined) => &self.joined,
            Ok(Heard::Renewed) => &self.renewed,
            Err(Unheard::TooLarge) => &self.too_large,
            Err(Unheard::Malformed | Unheard::Refused(Refusal::Malformed)) => &self.malformed,
            Err(Unheard::UnknownNode) => &self.unknown_node,
            Err(Unheard::WrongMac) => &self.wrong_mac,
            Err(Unheard::ForeignHost) => &self.foreign_host,
            Err(Unheard::Refused(Refusal::Replayed)) => &self.replayed,
            Err(Unheard::Refused(Refusal::Addresses)) => &self.addresses,
            Err(Unheard::Refused(Refusal::NodesMax)) => &self.nodes_max,
            Err(Unheard::Refused(Refusal::RegionMax)) => &self.region_max,
        }
    }
}
