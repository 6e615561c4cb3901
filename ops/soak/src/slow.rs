//! One viewer in a hundred stops reading, because its process is stopped (SIGSTOP): the others get
//! everything as quickly as before, and memory stays bounded.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use drill::{Line, Stage, progress, stage};
use kit::meter::list;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::control::RoomSettings;
use proto::frame::{Credential, Hello, Join, Login, Path, Uplink, prefixed};
use proto::id::ViewerId;
use proto::suite::Suite;
use stack::crowd::Summary;
use stack::replay::Script;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::cli::Size;
use crate::crowd::check_descriptors;

/// Descriptors of one viewer: both ends of its connection, and of the one for segments.
const DESCRIPTORS_PER_VIEWER: usize = 4;
/// Viewers of whom one stops.
const VIEWERS_PER_STOPPED: usize = 100;
/// What the link keeps for a viewer: less than usual, so that sockets and outbox are soon full.
const OUTBOX_BYTES_MAX: usize = 32 * 1024;
/// After so long without a byte read, the link gives a viewer up.
const WRITE_MS_MAX: u32 = 2_000;
/// Graphemes of a comment: 300 bytes.
const GRAPHEMES: usize = 100;
/// They are in within this time, and given up likewise.
const STEP_MAX: Duration = Duration::from_secs(15);
/// How much later the others may get what they get, beside a quarter: half of a broadcaster's turn,
/// by which latencies differ from one run to the next.
const LATER_MS_MAX: u64 = 100;
/// Memory that the rest of the system may take meanwhile.
const GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Stops 2 of 100 viewers, or 10 of 1,000.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let viewers = size.pick(100, 1_000);
    let stopped = size.pick(2, viewers / VIEWERS_PER_STOPPED);
    let (comments_per_s, length) =
        size.pick((100, Duration::from_secs(5)), (40, Duration::from_mins(1)));
    check_descriptors((viewers + stopped) * DESCRIPTORS_PER_VIEWER)?;
    let folder = tempfile::tempdir()?;
    let wide = RoomSettings { items_per_s: 400, bytes_per_s: 256 * 1024, ..stage::settings() };
    let stage = Stage::open(folder.path(), line.seed(), &wide, |config| {
        config.link.outbox_bytes_max = OUTBOX_BYTES_MAX;
        config.link.write_ms_max = WRITE_MS_MAX;
    });
    let stage = stage.await?;
    let script = stage::steady(comments_per_s, length, GRAPHEMES);

    let before = play(&stage, viewers, &script).await?;
    let mut readers = bring_in(&stage, stopped).await?;
    signal(&readers, "-STOP").await?;
    progress(&format!("  {stopped} beside {viewers} viewers are stopped"));
    let during = play(&stage, viewers, &script).await?;
    let code = CloseCode::Slow.name();
    let slow = || stage.meter.counter(list::LINK_CLOSES_TOTAL, &[code]).get();
    let gone = stage
        .wait(STEP_MAX, "the stopped viewers to be given up", || slow() >= stopped as u64)
        .await;
    readers.kill().await?;

    let p99 = |it: &Summary| it.latency_ms.push.p99.unwrap_or(u64::MAX);
    let (p99_before, p99_during) = (p99(&before), p99(&during));
    line.audit(&during);
    line.figure("viewers", viewers);
    line.figure("stopped", stopped);
    line.figure("push_p99_ms_before", p99_before);
    line.figure("push_p99_ms_during", p99_during);
    line.figure("rss_bytes_before", before.rss_bytes);
    line.figure("rss_bytes_during", during.rss_bytes);
    line.figure("closed_as_slow", slow());
    line.check(p99_during <= p99_before + p99_before / 4 + LATER_MS_MAX, || {
        format!("the others' p99 was {p99_before} ms, and then {p99_during} ms")
    });
    let bytes_max = before.rss_bytes + GROWTH_BYTES_MAX + (stopped * OUTBOX_BYTES_MAX) as u64;
    line.check(during.rss_bytes <= bytes_max, || {
        format!("memory grew from {} to {} bytes", before.rss_bytes, during.rss_bytes)
    });
    line.check(gone.is_ok(), || format!("{} of {stopped} were given up", slow()));
    line.check(slow() <= stopped as u64, || format!("{} were closed as slow", slow()));
    stage.close().await
}

/// Plays to a crowd of its own.
async fn play(stage: &Stage, viewers: usize, script: &Script) -> anyhow::Result<Summary> {
    let crowd = stage.crowd(viewers).await?;
    crowd.play(script, 1.0, None).await;
    crowd.end(0).await
}

/// Viewers in a process of their own.
async fn bring_in(stage: &Stage, viewers: usize) -> anyhow::Result<Child> {
    let mut process = Command::new("python3")
        .args(["-c", include_str!("slow/readers.py")])
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("python3 did not start: run ops/tools/install")?;
    let mut input = process.stdin.take().context("the process has no standard input")?;
    for number in 0..viewers {
        let account = ViewerId::parse(&format!("stopped-{number}"))?;
        let offer = stage.offer(&account, Transport::Tcp).await?;
        let join = Join { room: stage.room.clone(), path: Path::Push, resume: None };
        let login = Uplink::Login(Login {
            credential: Credential::Token(offer.token),
            binder: None,
            device: None,
            joins: vec![join],
        });
        // Compressed, the same few texts again would not fill the kernel's buffers in time.
        let offer_no_codec = Hello { codecs: Vec::new(), ..sdk::hello::hello(&[Suite::Plain], 1) };
        let hello = Uplink::Hello(offer_no_codec);
        let bytes: Vec<u8> = [hello, login].iter().flat_map(|it| prefixed(&it.encode())).collect();
        let text: String = bytes.iter().map(|it| format!("{it:02x}")).collect();
        input.write_all(format!("{} {text}\n", offer.address.port).as_bytes()).await?;
    }
    drop(input);
    // The crowd before is gone, one after the other.
    stage.wait(STEP_MAX, "the viewers to be in", || stage.sessions() == viewers).await?;
    Ok(process)
}

async fn signal(process: &Child, signal: &str) -> anyhow::Result<()> {
    let id = process.id().context("the process has ended")?;
    let sent = Command::new("kill").args([signal, &id.to_string()]).status().await?;
    ensure!(sent.success(), "kill {signal} {id}: {sent}");
    Ok(())
}
