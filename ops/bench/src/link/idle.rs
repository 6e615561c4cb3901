//! Idle sessions: a process with all services for each transport, which sessions come into.
//!
//! The first ones are not counted: with them comes what a process allocates once. What is left of
//! logins themselves is given some time to be freed.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, ensure};
use kit::clock::Clock;
use kit::process::{kernel, resident_bytes};
use proto::address::Transport;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

use super::NODE;
use crate::aside::Aside;
use crate::fanout::{Audience, Site};
use crate::line::Line;
use crate::peer::note;

/// Sessions that come first.
const FIRST: usize = 1_000;
/// Sessions that are counted: with the first ones half of what a process has descriptors for.
const SESSIONS: usize = 9_000;
/// The same over QUIC, whose clients cost more than this machine would like to spend.
const QUIC_SESSIONS: usize = 3_000;
/// Time for everything to come to rest: the allocator gives pages back, sockets settle.
const REST: Duration = Duration::from_secs(4);

/// What the node is told.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Orders {
    transport: Transport,
    sessions: usize,
}

/// What it grew by for each session, in bytes.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Growth {
    resident: f64,
    kernel: Option<f64>,
}

/// The lines of a transport.
pub(super) fn names(word: &str) -> [String; 2] {
    ["idle_bytes", "kernel_bytes"].map(|it| format!("link.{it}.{word}"))
}

/// Lets sessions come into a process of their own.
pub(super) async fn measure(transport: Transport, word: &str) -> anyhow::Result<Vec<Line>> {
    let sessions = if transport == Transport::Quic { QUIC_SESSIONS } else { SESSIONS };
    let node = Aside::start(NODE, &Orders { transport, sessions }).await?;
    let Growth { resident, kernel } = serde_json::from_str(&node.leave().await?)?;
    let [idle_bytes, kernel_bytes] = names(word);
    let mut lines = vec![Line::alone(idle_bytes, resident, "bytes")];
    match kernel {
        Some(kernel) => lines.push(Line::alone(kernel_bytes, kernel, "bytes")),
        None => note(&format!("{kernel_bytes} needs root, who may read /proc/slabinfo")),
    }
    Ok(lines)
}

/// The node: says what it grew by, and ends.
pub(crate) async fn hold() -> anyhow::Result<()> {
    let mut orders = String::new();
    tokio::io::stdin().read_to_string(&mut orders).await?;
    let Orders { transport, sessions } =
        serde_json::from_str(&orders).context("these are no orders")?;
    let clock = Clock::system();
    let site = Site::open(&clock, FIRST + sessions).await?;
    let all = site.orders(FIRST + sessions, transport);
    let (first, counted) = all.tickets.split_at(FIRST);

    let mut firsts = Audience::start(&all.only(first)).await?;
    firsts.are_in().await?;
    clock.sleep(REST).await;
    let before = (resident_bytes(), kernel::bytes()?);
    let mut audience = Audience::start(&all.only(counted)).await?;
    audience.are_in().await?;
    clock.sleep(REST).await;
    let after = (resident_bytes(), kernel::bytes()?);
    ensure!(site.sessions() == FIRST + sessions, "{} sessions are in", site.sessions());

    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / sessions as f64;
    let kernel = before.1.zip(after.1).map(|(before, after)| each(before, after) / 2.0);
    let growth = Growth { resident: each(before.0, after.0), kernel };
    audience.leave().await?;
    firsts.leave().await?;
    site.close().await?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&growth)?)?;
    Ok(())
}
