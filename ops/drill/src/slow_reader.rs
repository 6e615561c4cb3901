//! A viewer with an open connection stops reading.
//!
//! Promise: the link skips forward for that viewer, or closes it as slow, within a bounded time;
//! all other viewers get everything, as quickly as before.

use std::path::Path;
use std::time::Duration;

use kit::meter::list;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::control::RoomSettings;
use proto::frame::Downlink;
use proto::id::ViewerId;
use sdk::raw::Raw;
use tokio::time::timeout;

use crate::knock::knock;
use crate::line::Line;
use crate::stage::{Stage, settings, steady};

/// Viewers of the crowd.
const VIEWERS: usize = 16;
/// What the link keeps for a viewer: less than usual, so that the drill is short.
const OUTBOX_BYTES_MAX: usize = 32 * 1024;
/// After so long without a byte read, the link gives a viewer up.
const WRITE_MS_MAX: u32 = 2000;
/// Comments a second.
const COMMENTS_PER_S: u64 = 200;
/// Their length: 60 KB/s in all, which fills sockets and outbox in some seconds.
const GRAPHEMES: usize = 100;
/// How long is played.
const PLAY: Duration = Duration::from_secs(7);
/// The other viewers get an item within this time: a flush and a busy machine.
const PUSH_P99_MS_MAX: u64 = 1000;
/// The sockets are read out within this time.
const STEP_MAX: Duration = Duration::from_secs(5);

pub(crate) async fn run(folder: &Path, line: &mut Line) -> anyhow::Result<()> {
    let wide = RoomSettings { items_per_s: 400, bytes_per_s: 256 * 1024, ..settings() };
    let stage = Stage::open(folder, line.seed(), &wide, |config| {
        config.link.outbox_bytes_max = OUTBOX_BYTES_MAX;
        config.link.write_ms_max = WRITE_MS_MAX;
    });
    let stage = stage.await?;
    let mut slow = enter(&stage).await?;
    let crowd = stage.crowd(VIEWERS).await?;

    crowd.play(&steady(COMMENTS_PER_S, PLAY, GRAPHEMES), 1.0, None).await;
    let summary = crowd.end(0).await?;

    line.audit(&summary);
    let p99 = summary.latency_ms.push.p99.unwrap_or(u64::MAX);
    line.check(p99 <= PUSH_P99_MS_MAX, || format!("the others' p99 is {p99} ms"));
    let code = CloseCode::Slow.name();
    let closed = stage.meter.counter(list::LINK_CLOSES_TOTAL, &[code]).get();
    let skipped = stage.meter.counter(list::LINK_SKIPPED_ITEMS_TOTAL, &[]).get();
    let told = read_out(&mut slow).await;
    line.figure("closed_as_slow", closed);
    line.figure("skipped_items", skipped);
    line.figure("told_skipped", told.skipped);
    line.figure("told_slow", told.slow);
    line.check(closed == 1 || told.skipped > 0, || {
        "the viewer who does not read was neither closed nor told of skipped items".to_owned()
    });
    line.check(closed <= 1, || format!("{closed} viewers were closed as slow"));
    stage.close().await
}

/// Logs in by hand, and reads no further than that.
async fn enter(stage: &Stage) -> anyhow::Result<Raw> {
    let offer = stage.offer(&ViewerId::parse("slow")?, Transport::Tcp).await?;
    Ok(knock(&offer, &stage.room).await?.0)
}

/// What the link said to the viewer in the end.
#[derive(Debug, Default)]
struct Told {
    skipped: u64,
    slow: bool,
}

/// Reads what lies in the sockets, up to their end, or for some seconds.
async fn read_out(raw: &mut Raw) -> Told {
    let mut told = Told::default();
    let reading = async {
        while let Ok(frame) = raw.recv().await {
            if let Downlink::Skipped { items, .. } = &frame {
                told.skipped += u64::from(*items);
            }
            if let Downlink::Close(close) = &frame {
                told.slow = close.code == CloseCode::Slow;
            }
        }
    };
    // A viewer who was only skipped forward is served again, and its connection goes on.
    let _over = timeout(STEP_MAX, reading).await;
    told
}
