//! The servers' wall clock jumps by ten seconds and by two minutes, forth and back, during play.
//!
//! Promise: viewers on both paths get every item once and in order, and nobody has to come in
//! again.

use std::path::Path;
use std::time::Duration;

use crate::line::Line;
use crate::stage::{Stage, settings, steady};

/// Viewers of the crowd, half of them on segments.
const VIEWERS: usize = 16;
/// Comments a second, over all of them.
const COMMENTS_PER_S: u64 = 20;
/// The jumps, in milliseconds; at the end the clock is right again.
const STEPS_MS: [i64; 4] = [10_000, -10_000, 120_000, -120_000];
/// How long is played after each.
const PLAY: Duration = Duration::from_millis(1500);

pub(crate) async fn run(folder: &Path, line: &mut Line) -> anyhow::Result<()> {
    let stage = Stage::open(folder, line.seed(), &settings(), |_| {}).await?;
    let crowd = stage.crowd(VIEWERS).await?;
    let gen_before = stage.head().await?.gen_no;

    for step_ms in STEPS_MS {
        stage.clock.step(step_ms);
        crowd.play(&steady(COMMENTS_PER_S, PLAY, 8), 1.0, None).await;
    }
    let summary = crowd.end(0).await?;

    line.audit(&summary);
    line.figure("gens_opened", stage.head().await?.gen_no.0 - gen_before.0);
    let ready = stage.is_ready();
    line.check(ready, || "the system is not ready afterwards".to_owned());
    stage.close().await
}
