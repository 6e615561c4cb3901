//! One room gets far more comments than a room can show, past everything that would refuse them:
//! its gifts and notices are all shown, its turns are on time, memory stays bounded, everybody who
//! sent something is told of it, and whoever counts, counts the same.
//!
//! A broadcaster runs alone between its buses and a folder. The comments come on `accepted`, as from
//! chatservers that let everything through.

mod ledger;
mod scene;

use std::time::Duration;

use drill::{Line, progress};
use kit::meter::{Meter, list};
use kit::process::resident_bytes;
use proto::verdict::Reason;

use crate::cli::Size;
use ledger::Ledger;
use scene::{Said, Scene};

/// What was said has its fate, and its slots are written, within this time.
const END_MAX: Duration = Duration::from_secs(30);
/// The flood itself is on time to this: else it was less than it should have been.
const BEHIND_MS_MAX: u64 = 1_000;
/// A turn is on time when it is no later than 50 ms: an edge of the histogram, in seconds.
const LATE: &str = "0.05";
/// Turns that may come later, in thousandths.
const LATE_PERMILLE_MAX: u64 = 10;
/// Memory that the flood may take, with what the buses keep of it.
const GROWTH_BYTES_MAX: u64 = 384 * 1024 * 1024;
/// Percent of its first half's memory that the second half of the flood may take.
const SECOND_PERCENT_MAX: u64 = 125;

/// How much.
#[derive(Clone, Copy, Debug)]
struct Plan {
    comments_per_s: u64,
    length: Duration,
}

/// 50,000 comments a second for 3 s, or 200,000 for 20 s.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let plan = size.pick(
        Plan { comments_per_s: 50_000, length: Duration::from_secs(3) },
        Plan { comments_per_s: 200_000, length: Duration::from_secs(20) },
    );
    let folder = tempfile::tempdir()?;
    let scene = Scene::open(folder.path()).await?;
    let mut ledger = Ledger::open(&scene, plan).await?;
    progress(&format!("  {} comments a second in one room", plan.comments_per_s));

    let before_bytes = resident_bytes();
    let half = scene.clock.mono() + plan.length / 2;
    let mut peaks = [before_bytes; 2];
    let mut saying = Box::pin(scene.say(plan));
    let said = loop {
        tokio::select! {
            said = &mut saying => break said?,
            read = ledger.read() => read?,
        }
        let peak = &mut peaks[usize::from(scene.clock.mono() >= half)];
        *peak = resident_bytes().max(*peak);
    };
    drop(saying);
    let end = scene.clock.mono() + END_MAX;
    while !ledger.is_complete(said) && scene.clock.mono() < end {
        // A quiet room has nothing to tell before its next slot is sealed.
        tokio::time::timeout(END_MAX, ledger.read()).await??;
    }

    judge_memory(before_bytes, peaks, line);
    judge_turns(&scene.meter, line);
    line.figure("comments_per_s", plan.comments_per_s);
    line.figure("behind_ms", said.behind_ms);
    line.check(said.behind_ms <= BEHIND_MS_MAX, || {
        format!("the flood itself was {} ms behind", said.behind_ms)
    });
    compare(&scene, said, &ledger, line).await?;
    scene.close().await
}

fn judge_memory(before: u64, peaks: [u64; 2], line: &mut Line) {
    let [first, second] = peaks;
    line.figure("rss_bytes_before", before);
    line.figure("rss_bytes_first", first);
    line.figure("rss_bytes_second", second);
    line.check(first.max(second) <= before + GROWTH_BYTES_MAX, || {
        format!("memory grew from {before} to {} bytes", first.max(second))
    });
    line.check(second <= first * SECOND_PERCENT_MAX / 100, || {
        format!("memory went on growing, from {first} to {second} bytes")
    });
}

/// How late the room's turns were.
fn judge_turns(meter: &Meter, line: &mut Line) {
    let name = list::BROADCASTER_TICK_LATE_SECONDS.name;
    let text = meter.render();
    let figure = |of: &str| {
        let value = text.lines().find_map(|it| it.strip_prefix(&format!("{name}{of} ")));
        value.and_then(|it| it.parse::<u64>().ok()).unwrap_or_default()
    };
    let turns = figure("_count");
    let on_time = figure(&format!("_bucket{{le=\"{LATE}\"}}"));
    let late_permille = (turns - on_time) * 1000 / turns.max(1);
    line.figure("turns", turns);
    line.figure("late_permille", late_permille);
    line.check(turns > 0 && late_permille <= LATE_PERMILLE_MAX, || {
        format!("{} of {turns} turns were more than {LATE} s late", turns - on_time)
    });
}

/// Holds the four counts against each other: what was said, what `sealed` tells, what the
/// broadcaster counts, and what lies in files.
async fn compare(
    scene: &Scene,
    said: Said,
    ledger: &Ledger,
    line: &mut Line,
) -> anyhow::Result<()> {
    let count = |lane: &str, fate: &str| {
        scene.meter.counter(list::BROADCASTER_ITEMS_TOTAL, &[lane, fate]).get()
    };
    let counted = |fates: &[&str]| fates.iter().map(|it| count("comment", it)).sum::<u64>();
    let reasons: Vec<&str> = Reason::ALL.iter().map(|it| it.name()).collect();
    let in_files = scene.in_files(&ledger.seals).await?;
    line.figure("comments", said.comments);
    line.figure("protected", said.protected);
    line.figure("shown", ledger.shown);
    line.figure("shed", ledger.shed);
    line.figure("slots", ledger.seals.len());
    let mut same = |what: &str, left: u64, right: u64| {
        line.check(left == right, || format!("{what}: {left} and {right}"));
    };
    same("comments, said and told of", said.comments, ledger.shown + ledger.shed);
    same("gifts and notices, said and shown", said.protected, ledger.protected);
    same("shown, told and counted", ledger.shown, counted(&["sealed"]));
    same("shed, told and counted", ledger.shed, counted(&reasons));
    let sealed = ["notice", "high_gift"].map(|it| count(it, "sealed")).iter().sum();
    same("gifts and notices, said and counted", said.protected, sealed);
    same("shown, told and in files", ledger.shown + ledger.protected, in_files);
    same("told twice, or never said", ledger.wrong, 0);
    same("holes between slots", ledger.holes(), 0);
    Ok(())
}
