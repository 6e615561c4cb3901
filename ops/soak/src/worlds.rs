//! Simulated worlds, each from a seed that nobody tried before.

use drill::{Line, progress};
use kit::seed::derive;
use sim::Plan;

use crate::cli::Size;

/// Seeds that are named in a line, of those that broke a promise.
const NAMED_MAX: usize = 10;

/// Runs 5 or 500 worlds.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let worlds = size.pick(5, 500);
    let (mut broken, mut sealed, mut shed, mut breaks) = (Vec::new(), 0, 0, 0);
    for number in 0..worlds {
        let seed = derive(line.seed(), &format!("world {number}"));
        let world = tokio::task::spawn_blocking(move || sim::run(seed, Plan::default()));
        let outcome = world.await?;
        sealed += outcome.sealed;
        shed += outcome.shed;
        breaks += outcome.breaks;
        if let Some(first) = outcome.broken.first() {
            broken.push(format!("seed {seed}: {first}"));
        }
        if (number + 1) % 50 == 0 {
            progress(&format!("  {} worlds, {} broken", number + 1, broken.len()));
        }
    }
    line.figure("worlds", worlds);
    line.figure("sealed", sealed);
    line.figure("shed", shed);
    line.figure("breaks", breaks);
    line.check(sealed > 0, || "nothing was sealed in any world".to_owned());
    line.check(broken.is_empty(), || format!("{} worlds broke a promise", broken.len()));
    broken.into_iter().take(NAMED_MAX).for_each(|it| line.fail(it));
    Ok(())
}
