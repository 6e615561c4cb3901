//! What a thousand nodes cost that report as often as they may.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, ensure};
use hmac::{Hmac, KeyInit, Mac};
use kit::clock::Clock;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::NODES;
use super::callers::DONE;
use super::fleet::report;
use super::site::{SECRET, Site};
use crate::aside::Aside;
use crate::cpu;
use crate::line::Line;
use crate::timing::{ROUNDS, median};

/// Nodes that report.
const REPORTING: u32 = 1_000;
/// Their regions.
const REGIONS: u32 = 2;
/// Reports of a node in a second.
const REPORTS_PER_S: u32 = 200;
/// Reports of a node in a round.
const REPORTS: u32 = 100;
/// Datagrams in a row, one row each millisecond: no more than a socket holds.
const DATAGRAMS_IN_A_ROW: usize = 200;
/// Least part of the datagrams that must have arrived, in hundredths. Those that the kernel drops
/// because others have the processor are not counted.
const HEARD_MIN: u64 = 50;
/// A reader that reads no loads during a measurement.
const NEVER_MS: u32 = 3_600_000;

/// What the nodes are told.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Orders {
    collector: SocketAddr,
}

/// `gslb.collector.1000`: cores of a collector that hears, checks, keeps, packs and writes the
/// loads of a thousand nodes that report each 5 ms; `gslb.collector.1000.read` with a gslb in the
/// same process that reads and plans them each 5 ms.
pub(super) async fn run() -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (name, snapshot_ms) in [("gslb.collector.1000", NEVER_MS), ("gslb.collector.1000.read", 5)]
    {
        let cores = Box::pin(measure(snapshot_ms)).await?;
        lines.push(Line::alone(name, cores, "cores"));
    }
    Ok(lines)
}

async fn measure(snapshot_ms: u32) -> anyhow::Result<f64> {
    let clock = Clock::system();
    let site = Site::start(&clock, REPORTING, |config| {
        config.collector.enabled = true;
        config.snapshot_ms = snapshot_ms;
    })
    .await?;
    let collector = site.collector.context("there is no collector")?;
    let mut nodes = Aside::start(NODES, &Orders { collector }).await?;
    nodes.expect(DONE).await?;
    nodes.report().await?;

    let mut cores = Vec::new();
    for _ in 0..ROUNDS {
        let (heard, start) = (site.heard(), cpu::process());
        nodes.report().await?;
        let (heard, used) = (site.heard() - heard, cpu::process() - start);
        let sent = u64::from(REPORTING * REPORTS);
        ensure!(heard * 100 >= sent * HEARD_MIN, "only {heard} of {sent} datagrams were heard");
        // On a busy machine a round takes longer, and packs more often for as many reports.
        let each = used.as_secs_f64() / heard as f64;
        cores.push(each * f64::from(REPORTING * REPORTS_PER_S));
    }
    nodes.leave().await?;
    site.close().await?;
    Ok(median(&mut cores))
}

impl Aside {
    /// Lets all nodes report for half a second.
    async fn report(&mut self) -> anyhow::Result<()> {
        self.tell("report").await?;
        self.expect(DONE).await
    }
}

/// The nodes: a process that reports when it is told to, until the standard input ends.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let mut words = BufReader::new(tokio::io::stdin()).lines();
    let orders = words.next_line().await?.context("there are no orders")?;
    let orders: Orders = serde_json::from_str(&orders).context("these are no orders")?;
    let (clock, socket) = (Clock::system(), UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    socket.connect(orders.collector)?;
    let mut counter = 0;
    say(DONE)?;
    while words.next_line().await?.is_some() {
        for _ in 0..REPORTS {
            counter += 1;
            report_all(&socket, counter, &clock).await?;
        }
        say(DONE)?;
    }
    say(DONE)
}

/// All nodes report once, spread over 5 ms.
async fn report_all(socket: &UdpSocket, counter: u64, clock: &Clock) -> anyhow::Result<()> {
    let mut due = clock.mono();
    for first in (0..REPORTING).step_by(DATAGRAMS_IN_A_ROW) {
        for number in (first..REPORTING).take(DATAGRAMS_IN_A_ROW) {
            socket.send(&signed(number, counter)?)?;
        }
        due = due + Duration::from_millis(1);
        clock.sleep(due.since(clock.mono())).await;
    }
    Ok(())
}

fn signed(number: u32, counter: u64) -> anyhow::Result<Vec<u8>> {
    let mut datagram = report(number, REGIONS, counter).encode().to_vec();
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())?.chain_update(&datagram);
    datagram.extend_from_slice(&mac.finalize().into_bytes());
    Ok(datagram)
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}
