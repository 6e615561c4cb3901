//! The bus takes nothing for two seconds, as when its queues are full.
//!
//! Promise: a comment said meanwhile is refused with a reason or comes later, and none vanishes
//! silently; a gift that was acknowledged is shown, and one that was not can be given again with
//! its key; afterwards everything works as before.

use std::path::Path;
use std::time::Duration;

use proto::frame;
use stack::{BusFault, Gift};

use crate::line::Line;
use crate::probe::Probe;
use crate::stage::{Stage, settings, steady};

/// Viewers of the crowd.
const VIEWERS: usize = 16;
/// Comments a second, over all of them.
const COMMENTS_PER_S: u64 = 20;
/// How long the bus is busy.
const BUSY: Duration = Duration::from_secs(2);
/// How long is played before and after.
const CALM: Duration = Duration::from_secs(1);
/// Afterwards a comment is on the screen within this time: claims may have run out meanwhile.
const BACK_MAX: Duration = Duration::from_secs(10);

pub(crate) async fn run(folder: &Path, line: &mut Line) -> anyhow::Result<()> {
    let stage = Stage::open(folder, line.seed(), &settings(), |_| {}).await?;
    let mut probe = Probe::enter(&stage, "probe", frame::Path::Push).await?;
    let crowd = stage.crowd(VIEWERS).await?;

    crowd.play(&steady(COMMENTS_PER_S, CALM, 8), 1.0, None).await;
    stage.set_bus(BusFault::Busy);
    let gift = || Gift { viewer: "giver", gift_no: 1, count: 1, lane: "high" };
    let during = steady(COMMENTS_PER_S, BUSY, 8);
    let (given, ()) = tokio::join!(
        stage.business.gift(&stage.room, "drill", gift()),
        crowd.play(&during, 1.0, None)
    );
    stage.set_bus(BusFault::None);
    let back_ms = probe.is_served(BACK_MAX).await?;
    crowd.play(&steady(COMMENTS_PER_S, CALM, 8), 1.0, None).await;
    let again = stage.business.gift(&stage.room, "drill", gift()).await?;
    probe.sees(again, BACK_MAX).await?;
    let summary = crowd.end(0).await?;

    line.figure("back_ms", back_ms);
    line.figure("gift_was_taken", given.is_ok());
    if let Ok(id) = given {
        line.check(id == again, || format!("one key gave two gifts: {id} and {again}"));
    }
    line.audit(&summary);
    let calm = 2 * COMMENTS_PER_S * CALM.as_secs();
    line.check(summary.admitted >= calm, || {
        format!("{} admitted, though {calm} were sent in peace", summary.admitted)
    });
    let shown = probe.leave().await?;
    let times = shown.iter().filter(|&&it| it == again).count();
    line.check(times == 1, || format!("the gift was shown {times} times"));
    stage.close().await
}
