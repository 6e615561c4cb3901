//! Every connection of a crowd is cut at once, without a goodbye: everybody comes back, and nobody
//! misses anything.

use std::time::Duration;

use anyhow::Context;
use drill::wire::Wires;
use drill::{Line, Stage, progress, stage};

use crate::cli::Size;
use crate::crowd::check_descriptors;

/// Comments a second, over all viewers.
const COMMENTS_PER_S: u64 = 20;
/// Time before a cut, and after everybody is back.
const CALM: Duration = Duration::from_secs(2);
/// The same where cuts follow each other: a viewer whose connection did not hold for half a
/// minute waits longer each time, and rightly so.
const CALM_LONG: Duration = Duration::from_secs(32);
/// Descriptors of one viewer: the wire doubles those of its connection.
const DESCRIPTORS_PER_VIEWER: usize = 6;

/// Cuts 60 viewers once, or 1,000 viewers ten times.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let (viewers, cuts) = size.pick((60, 1), (1_000, 10));
    let calm = size.pick(CALM, CALM_LONG);
    let back_max = size.pick(Duration::from_secs(10), Duration::from_secs(30));
    check_descriptors(viewers * DESCRIPTORS_PER_VIEWER)?;
    let folder = tempfile::tempdir()?;
    let wires = Wires::new(line.seed()).await?;
    let settings = stage::settings();
    let stage = Stage::open(folder.path(), line.seed(), &settings, |it| wires.before(it)).await?;
    let crowd = stage.crowd(viewers).await?;
    progress(&format!("  {viewers} viewers are in"));

    let length = cuts * (calm + back_max) + calm;
    let script = stage::steady(COMMENTS_PER_S, length, 8);
    let storms = Storms { cuts, calm, back_max };
    let back_ms = tokio::select! {
        back_ms = storms.pass(&stage, &wires, viewers) => back_ms?,
        () = crowd.play(&script, 1.0, None) => anyhow::bail!("the script is too short"),
    };
    let summary = crowd.end(0).await?;

    line.figure("viewers", viewers);
    line.figure("connections", wires.connections());
    line.figure("back_ms", back_ms);
    line.audit(&summary);
    stage.close().await
}

/// How often, and how far apart.
struct Storms {
    cuts: u32,
    calm: Duration,
    back_max: Duration,
}

impl Storms {
    /// Cuts everybody so many times; gives the milliseconds until the last one was back.
    async fn pass(&self, stage: &Stage, wires: &Wires, viewers: usize) -> anyhow::Result<Vec<u64>> {
        let mut back_ms = Vec::new();
        for number in 1..=self.cuts {
            stage.clock.sleep(self.calm).await;
            let all_again = wires.connections() + viewers as u64;
            wires.cut();
            let are_back = || wires.connections() >= all_again && stage.sessions() == viewers;
            let back = stage.wait(self.back_max, "everybody to be back", are_back).await;
            let back = back.with_context(|| format!("{} of {viewers} are in", stage.sessions()))?;
            progress(&format!("  cut {number} of {}: all back after {back} ms", self.cuts));
            back_ms.push(back);
        }
        stage.clock.sleep(CALM).await;
        Ok(back_ms)
    }
}
