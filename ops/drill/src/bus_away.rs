//! The bus does not answer the services for three seconds.
//!
//! Promise: `/readyz` fails while it is away and recovers by itself; a comment said meanwhile is
//! refused with a reason or comes later, and none vanishes silently; afterwards everything works
//! as before. It happens twice, because many a system comes back only once.

use std::path::Path;
use std::time::Duration;

use proto::frame;
use stack::BusFault;

use crate::line::Line;
use crate::probe::Probe;
use crate::stage::{Stage, settings, steady};

/// Viewers of the crowd.
const VIEWERS: usize = 16;
/// Comments a second, over all of them.
const COMMENTS_PER_S: u64 = 20;
/// How long the bus is away, each time.
const AWAY: Duration = Duration::from_secs(3);
/// How often it goes away.
const TIMES: usize = 2;
/// `/readyz` notices both ways within this time: claims that ran out are made again first.
const NOTICE_MAX: Duration = Duration::from_secs(5);
/// Afterwards a comment is on the screen within this time.
const BACK_MAX: Duration = Duration::from_secs(10);

pub(crate) async fn run(folder: &Path, line: &mut Line) -> anyhow::Result<()> {
    let stage = Stage::open(folder, line.seed(), &settings(), |_| {}).await?;
    let mut probe = Probe::enter(&stage, "probe", frame::Path::Push).await?;
    let crowd = stage.crowd(VIEWERS).await?;

    let (mut unready_ms, mut ready_ms, mut back_ms) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        stage.set_bus(BusFault::Away);
        let during = steady(COMMENTS_PER_S, AWAY, 8);
        let (noticed, ()) =
            tokio::join!(stage.readyz_turns(503, NOTICE_MAX), crowd.play(&during, 1.0, None));
        unready_ms.push(noticed?);
        stage.set_bus(BusFault::None);
        let (ready, served) =
            tokio::join!(stage.readyz_turns(200, NOTICE_MAX), probe.is_served(BACK_MAX));
        ready_ms.push(ready?);
        back_ms.push(served?);
    }
    let summary = crowd.end(0).await?;

    line.figure("unready_ms", unready_ms);
    line.figure("ready_ms", ready_ms);
    line.figure("back_ms", back_ms);
    line.audit(&summary);
    probe.leave().await?;
    stage.close().await
}
