//! A link's machines beside a simple picture of them, over a million steps drawn from seeds.

use std::time::Duration;

use drill::{Line, progress};
use kit::clock::Clock;
use kit::seed::derive;
use serde_json::json;
use sim::model::{Covered, check};

use crate::cli::Size;

/// Steps of one run; each begins with an empty node.
const STEPS: usize = 10_000;

/// Does a hundred or two thousand runs: one million steps, or twenty.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let runs = size.pick(100, 2_000);
    let (clock, mut covered, mut failed) = (Clock::system(), Covered::default(), 0);
    let start = clock.mono();
    for number in 0..runs {
        let seed = derive(line.seed(), &format!("model {number}"));
        match tokio::task::spawn_blocking(move || check(seed, STEPS)).await? {
            Ok(it) => covered.add(&it),
            Err(differs) => {
                failed += 1;
                progress(&format!("  {differs}"));
                line.fail(format!("seed {seed}: {}", differs.what));
            }
        }
        if failed == FAILURES_MAX {
            break;
        }
    }
    line.figure("steps", runs * STEPS);
    line.figure("steps_per_s", per_s(runs * STEPS, clock.mono().since(start)));
    line.figure("logins", covered.logins);
    line.figure("items", covered.items);
    line.figure("skipped_items", covered.skipped);
    line.figure("recovered", covered.recovered);
    line.figure("gaps", covered.gaps);
    line.figure("turns", covered.turns);
    line.figure("leaves", covered.leaves);
    line.figure("closes", json!(covered.closes));
    line.check(covered.skipped > 0 && covered.gaps > 0, || "nobody was slow or away".to_owned());
    Ok(())
}

/// Runs that may fail until no more are begun: shrinking takes time.
const FAILURES_MAX: usize = 3;

fn per_s(steps: usize, length: Duration) -> u64 {
    let millis = proto::time::millis(length).max(1);
    steps as u64 * 1_000 / millis
}
