//! Load reports: what this node carries, told to every collector, signed with its secret.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use proto::address::Address;
use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};
use sha2::Sha256;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

use crate::config::ms;
use crate::node::Node;

/// Collectors' names are looked up again so often: they move.
const RESOLVE_EVERY: Duration = Duration::from_secs(30);
/// Time for looking one up.
const RESOLVE_MAX: Duration = Duration::from_secs(2);
/// Rates are measured over this.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Clock ticks of `/proc`, a second; fixed on Linux.
const TICKS_PER_S: u64 = 100;

/// Sends reports until `done`, then a last one.
pub(crate) async fn run(
    node: Arc<Node>,
    addresses: Vec<Address>,
    done: CancellationToken,
) -> anyhow::Result<()> {
    let mut reporter = Reporter::new(Arc::clone(&node), addresses).await?;
    loop {
        reporter.send().await;
        if done.is_cancelled() {
            return Ok(());
        }
        node.clock.sleep(ms(node.config.report_ms_min)).await;
        tokio::select! {
            () = node.traffic.changed.notified() => {}
            () = node.clock.sleep(ms(node.config.report_ms_max)) => {}
            () = done.cancelled() => {}
        }
    }
}

struct Reporter {
    node: Arc<Node>,
    addresses: Vec<Address>,
    start: Wall,
    counter: u64,
    v4: UdpSocket,
    v6: Option<UdpSocket>,
    collectors: Vec<SocketAddr>,
    resolved: Option<Mono>,
    measured: Measure,
    rates: Rates,
}

/// Totals at some time.
#[derive(Clone, Copy, Default)]
struct Measure {
    at: Mono,
    bytes_out: u64,
    logins: u64,
    cpu_ticks: u64,
}

#[derive(Clone, Copy, Default)]
struct Rates {
    egress_bps: u64,
    handshakes_per_s: u32,
    cpu_permille: u16,
}

impl Reporter {
    async fn new(node: Arc<Node>, addresses: Vec<Address>) -> anyhow::Result<Self> {
        let any = |ip: IpAddr| SocketAddr::new(ip, 0);
        Ok(Self {
            start: node.clock.wall(),
            measured: Measure { at: node.clock.mono(), ..Measure::default() },
            node,
            addresses,
            counter: 0,
            v4: UdpSocket::bind(any(Ipv4Addr::UNSPECIFIED.into())).await?,
            // A machine may have no IPv6 at all.
            v6: UdpSocket::bind(any(Ipv6Addr::UNSPECIFIED.into())).await.ok(),
            collectors: Vec::new(),
            resolved: None,
            rates: Rates::default(),
        })
    }

    async fn send(&mut self) {
        self.resolve().await;
        self.measure();
        let datagram = self.datagram();
        for &collector in &self.collectors {
            let socket = if collector.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
            let Some(socket) = socket else { continue };
            if let Err(error) = socket.send_to(&datagram, collector).await {
                tracing::debug!(%error, %collector, "a load report was not sent");
            }
        }
        self.node.counts.reports.inc();
    }

    async fn resolve(&mut self) {
        let now = self.node.clock.mono();
        if self.resolved.is_some_and(|it| now.since(it) < RESOLVE_EVERY) {
            return;
        }
        self.resolved = Some(now);
        let mut collectors = Vec::new();
        for name in &self.node.config.collectors {
            let found = tokio::time::timeout(RESOLVE_MAX, tokio::net::lookup_host(name)).await;
            match found {
                Ok(Ok(mut found)) => collectors.extend(found.next()),
                Ok(Err(_)) | Err(_) => tracing::warn!(name, "a collector was not found"),
            }
        }
        if !collectors.is_empty() {
            self.collectors = collectors;
        }
    }

    fn measure(&mut self) {
        let now = self.node.clock.mono();
        let elapsed = now.since(self.measured.at);
        if elapsed < MEASURE_EVERY {
            return;
        }
        let traffic = &self.node.traffic;
        let measure = Measure {
            at: now,
            bytes_out: traffic.bytes_out.load(Ordering::Relaxed),
            logins: traffic.logins.load(Ordering::Relaxed),
            cpu_ticks: cpu_ticks(),
        };
        let before = std::mem::replace(&mut self.measured, measure);
        let elapsed_ms = proto::time::millis(elapsed).max(1);
        let per_s =
            |now: u64, then: u64| now.saturating_sub(then).saturating_mul(1000) / elapsed_ms;
        let cores = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
        let cpu = per_s(measure.cpu_ticks, before.cpu_ticks) * 1000 / (TICKS_PER_S * cores);
        self.rates = Rates {
            egress_bps: per_s(measure.bytes_out, before.bytes_out) * 8,
            handshakes_per_s: u32::try_from(per_s(measure.logins, before.logins))
                .unwrap_or(u32::MAX),
            cpu_permille: u16::try_from(cpu).unwrap_or(1000).min(1000),
        };
    }

    fn datagram(&mut self) -> Vec<u8> {
        self.counter += 1;
        let Node { config, traffic, .. } = &*self.node;
        let report = LoadReport {
            node: config.node,
            unit: config.unit,
            region: config.region.clone(),
            counter: self.counter,
            start: self.start,
            addresses: self.addresses.clone(),
            reserve: Vec::new(),
            load: Load {
                sessions: traffic.sessions.load(Ordering::Relaxed),
                sessions_max: config.sessions_max,
                handshakes: traffic.handshakes.load(Ordering::Relaxed),
                handshakes_per_s: self.rates.handshakes_per_s,
                handshakes_per_s_max: 0,
                egress_bps: self.rates.egress_bps,
                cpu_permille: self.rates.cpu_permille,
                // Connections are accepted at once, or closed.
                accept_queue: 0,
                draining: self.node.is_draining(),
                besieged: false,
            },
        };
        let mut datagram = report.encode().to_vec();
        let mac = sign(config.secret.expose().as_bytes(), &datagram);
        datagram.extend_from_slice(&mac);
        datagram
    }
}

fn sign(secret: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

/// CPU time of this process in ticks; 0 where `/proc` does not tell.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold spaces; user and system time are 12th and 13th behind it.
    let behind = stat.rsplit_once(") ").map_or("", |(_, it)| it);
    let times = behind.split(' ').skip(11).take(2);
    times.filter_map(|it| it.parse::<u64>().ok()).sum()
}
