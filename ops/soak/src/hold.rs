//! As many TLS sessions as a machine is to hold, at a link of several worker processes, from
//! several client processes: each sends its heartbeats and is answered.
//!
//! What a session costs is what the workers grew by, and half of what the kernel did, since both
//! ends are in this one.

mod clients;

use std::time::Duration;

use anyhow::{Context, ensure};
use drill::{Line, Stage, progress, stage};
use kit::process::kernel;
use proto::address::Transport;

use crate::cli::Size;
use clients::{Clients, Orders};

pub(crate) use clients::{NAME, run as be_clients};

/// Sessions of one process, worker or clients: beside them it has its other files, and places
/// before login.
const SESSIONS_PER_PROCESS: usize = 17_000;
/// A worker's bound: connections are spread by turns, so one has a little more than another.
const SESSIONS_MAX: u32 = 17_500;
/// Connections before login at a worker, for which it keeps descriptors.
const HANDSHAKES_MAX: u32 = 1_500;
/// Time for everything to come to rest: the allocator gives pages back, sockets settle.
const REST: Duration = Duration::from_secs(4);
/// Logins a second, at least, whatever else the machine does.
const LOGINS_PER_S_MIN: usize = 100;
/// What a run takes beside the logins.
const SLACK: Duration = Duration::from_mins(1);
/// How often it is looked who is left.
const LOOK: Duration = Duration::from_millis(100);
/// Every metric is told within this time.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What is asked for on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) sessions: Option<usize>,
    pub(crate) seconds: Option<u64>,
}

/// Holds 1,000 sessions for 5 s, or 100,000 for 2 minutes.
pub(crate) async fn run(size: Size, wish: Wish, line: &mut Line) -> anyhow::Result<()> {
    let sessions = wish.sessions.unwrap_or_else(|| size.pick(1_000, 100_000));
    let seconds = wish.seconds.unwrap_or_else(|| size.pick(5, 120));
    let workers = u8::try_from(sessions.div_ceil(SESSIONS_PER_PROCESS).max(2))?;
    let folder = tempfile::tempdir()?;
    let hold = Duration::from_secs(seconds);
    let settings = stage::settings();
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        config.link.workers = workers;
        config.link.listeners.retain(|it| it.transport == Transport::Tls);
        config.link.sessions_max = SESSIONS_MAX;
        config.link.handshakes_max = HANDSHAKES_MAX;
        let beat_ms = u32::try_from(seconds * 1_000 / 2).unwrap_or(u32::MAX);
        config.link.heartbeat_ms = config.link.heartbeat_ms.min(beat_ms);
        config.gslb.rate.enabled = false;
    });
    let stage = stage.await?;
    let before = Cost::now(&stage).await?;

    let start = stage.clock.mono();
    let mut all = bring_in(&stage, sessions).await?;
    let logins_ms = proto::time::millis(stage.clock.mono().since(start)).max(1);
    progress(&format!("  {sessions} are in after {} s", logins_ms / 1_000));
    stage.clock.sleep(REST).await;
    let after = Cost::now(&stage).await?;
    stage.clock.sleep(hold).await;
    let held = after_hold(&mut all).await?;
    let end = Cost::now(&stage).await?;
    drop(all);
    let gone_ms = are_gone(&stage).await?;

    let each = |before: u64, after: u64| after.saturating_sub(before) / sessions as u64;
    let resident = each(before.resident_bytes, after.resident_bytes);
    let kernel_bytes = before.kernel_bytes.zip(after.kernel_bytes);
    let kernel_bytes = kernel_bytes.map(|(before, after)| each(before, after) / 2);
    line.figure("sessions", sessions);
    line.figure("workers", workers);
    line.figure("logins_per_s", sessions as u64 * 1_000 / logins_ms);
    line.figure("resident_bytes_per_session", resident);
    line.figure("kernel_bytes_per_session", serde_json::json!(kernel_bytes));
    line.figure(
        "resident_bytes_per_session_at_end",
        each(before.resident_bytes, end.resident_bytes),
    );
    line.figure("gone_ms", gone_ms);
    line.figure("heartbeats", held.beats);
    line.figure("sessions_by_worker", serde_json::json!(end.sessions));
    line.check(held.lost == 0, || format!("{} sessions were lost", held.lost));
    line.check(held.silent == 0, || format!("{} sessions had no heartbeat", held.silent));
    let there: u64 = end.sessions.iter().sum();
    line.check(there == sessions as u64, || format!("workers count {there} sessions"));
    let (least, most) = (end.sessions.iter().min(), end.sessions.iter().max());
    line.check(least.zip(most).is_some_and(|(least, most)| least * 2 > *most), || {
        format!("workers have {least:?} to {most:?} sessions")
    });
    stage.close().await
}

/// Starts the clients, and waits until all are in.
async fn bring_in(stage: &Stage, sessions: usize) -> anyhow::Result<Vec<Clients>> {
    let processes = sessions.div_ceil(SESSIONS_PER_PROCESS);
    let in_max = SLACK + Duration::from_secs((sessions / LOGINS_PER_S_MIN) as u64);
    let mut all = Vec::new();
    for number in 0..processes {
        let orders = Orders {
            first: number * sessions / processes,
            end: (number + 1) * sessions / processes,
            enter_url: stage.addrs.enter.clone(),
            ca_pem: stage.trust.ca_pem.clone(),
            room: stage.room.clone(),
            identity: stage.identity().clone(),
            in_s_max: in_max.as_secs(),
        };
        all.push(Clients::start(&orders).await?);
    }
    let deadline = stage.clock.mono() + in_max;
    let mut told = 0;
    loop {
        let mut are_in = 0;
        for clients in &mut all {
            clients.hear(ANSWER_MAX).await?;
            are_in += clients.are_in();
        }
        if are_in == sessions {
            return Ok(all);
        }
        if are_in / 10_000 > told {
            told = are_in / 10_000;
            progress(&format!("  {are_in} are in"));
        }
        ensure!(stage.clock.mono() < deadline, "{are_in} of {sessions} came in");
    }
}

/// Waits until the workers know that everybody is gone; gives the milliseconds that took.
async fn are_gone(stage: &Stage) -> anyhow::Result<u64> {
    let start = stage.clock.mono();
    loop {
        let left: u64 = Cost::now(stage).await?.sessions.iter().sum();
        let waited = stage.clock.mono().since(start);
        if left == 0 {
            return Ok(proto::time::millis(waited));
        }
        ensure!(waited < SLACK, "{left} sessions are left of clients that are gone");
        stage.clock.sleep(LOOK).await;
    }
}

/// What the clients had while they were held.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    beats: u64,
    lost: u64,
    silent: u64,
}

async fn after_hold(all: &mut [Clients]) -> anyhow::Result<Held> {
    let mut held = Held::default();
    for clients in all {
        let report = clients.report(ANSWER_MAX).await?;
        held.beats += report.beats;
        held.lost += report.lost;
        held.silent += report.silent;
    }
    Ok(held)
}

/// What the workers and the kernel take.
#[derive(Clone, Debug)]
struct Cost {
    resident_bytes: u64,
    kernel_bytes: Option<u64>,
    /// Of each worker.
    sessions: Vec<u64>,
}

impl Cost {
    async fn now(stage: &Stage) -> anyhow::Result<Self> {
        let mut cost =
            Self { resident_bytes: 0, kernel_bytes: kernel::bytes()?, sessions: Vec::new() };
        for base in &stage.addrs.worker_metrics {
            let asked = stage.http.get(format!("{base}/metrics")).timeout(ANSWER_MAX).send();
            let text = asked.await?.text().await?;
            cost.resident_bytes += metric(&text, "process_resident_bytes")?;
            cost.sessions.push(metric(&text, "link_sessions")?);
        }
        Ok(cost)
    }
}

/// The value of a metric without labels.
fn metric(text: &str, name: &str) -> anyhow::Result<u64> {
    let value = text.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.with_context(|| format!("a worker tells no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "# HELP link_sessions\nlink_sessions_x 3\nlink_sessions 5\n";

        assert_eq!(metric(text, "link_sessions").unwrap(), 5);
        assert!(metric(text, "link").is_err());
    }
}
