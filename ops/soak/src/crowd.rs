//! The whole system in this process, and as many viewers as it holds.

use std::fs;

use anyhow::{Context, ensure};
use drill::{Line, Stage, progress, stage};

use crate::cli::Size;

/// Descriptors of one viewer: both ends of its connection, and of the one for segments.
const DESCRIPTORS_PER_VIEWER: usize = 4;
/// Descriptors of everything else.
const DESCRIPTORS_BESIDES: usize = 256;

/// Plays the sample to 60 or 2,000 viewers; the audit must be clean.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let viewers = size.pick(60, 2_000);
    let (speed, turns) = size.pick((30.0, 1), (8.0, 5));
    check_descriptors(viewers * DESCRIPTORS_PER_VIEWER)?;

    let folder = tempfile::tempdir()?;
    let stage = Stage::open(folder.path(), line.seed(), &stage::settings(), |_| {}).await?;
    let crowd = stage.crowd(viewers).await?;
    progress(&format!("  {viewers} viewers are in"));
    let script = stage::sample()?;
    for turn in 1..=turns {
        crowd.play(&script, speed, None).await;
        progress(&format!("  played {turn} of {turns} times"));
    }
    let summary = crowd.end(script.damaged).await?;

    line.figure("viewers", viewers);
    line.figure("rss_bytes", summary.rss_bytes);
    line.audit(&summary);
    stage.close().await
}

/// Refuses to begin what must fail later for want of descriptors: so many for viewers.
pub(crate) fn check_descriptors(viewers: usize) -> anyhow::Result<()> {
    let needed = viewers + DESCRIPTORS_BESIDES;
    let limits = fs::read_to_string("/proc/self/limits").context("no limits in /proc")?;
    let allowed = descriptors(&limits).context("/proc names no limit of open files")?;
    ensure!(needed <= allowed, "{needed} descriptors are needed: ulimit -n says {allowed}");
    Ok(())
}

/// The soft limit of open files.
fn descriptors(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|it| it.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    if soft == "unlimited" { Some(usize::MAX) } else { soft.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_found() {
        let limits =
            "Limit Soft Hard Units\nMax open files            1024       4096      files\n";

        assert_eq!(descriptors(limits), Some(1024));
        assert_eq!(descriptors("Max open files unlimited unlimited files"), Some(usize::MAX));
        assert_eq!(descriptors("Max processes 1 1 processes"), None);
    }

    #[test]
    fn a_short_run_fits_into_the_usual_limit() {
        let needed = 60 * DESCRIPTORS_PER_VIEWER + DESCRIPTORS_BESIDES;

        assert!(needed <= 1024, "{needed}");
    }
}
