//! A room gets twenty times what it shows, through three chatservers: what is admitted is what it
//! shows, whoever is refused is told so, gifts and notices lose nothing, and everybody counts alike.

mod gifts;

use std::ops::RangeInclusive;
use std::time::Duration;

use drill::{Line, Stage, progress, stage};
use kit::meter::{Metric, list};
use proto::control::RoomSettings;
use proto::id::NodeId;
use proto::verdict::Reason;
use stack::crowd::Summary;

use crate::cli::Size;
use crate::crowd::check_descriptors;

/// Descriptors of one viewer: both ends of its connection, and of the one for segments.
const DESCRIPTORS_PER_VIEWER: usize = 4;
/// Times what the room shows that is offered.
const TIMES: u64 = 20;
/// Comments a second of the one who speaks alone.
const ALONE_PER_S: u64 = 100;
/// What one viewer may say: a burst, and then one in so many milliseconds.
const VIEWER: (u32, u32) = (5, 200);
/// Links pass everything on again within this time.
const LAPSE_MAX: Duration = Duration::from_secs(20);
/// Chatservers beside the first.
const MORE: u16 = 2;
/// Comments that may be admitted, in percent of what the room shows.
const ADMITTED_PERCENT: RangeInclusive<u64> = 90..=110;

/// How much.
#[derive(Clone, Copy, Debug)]
struct Plan {
    viewers: usize,
    items_per_s: u32,
    length: Duration,
    /// Comments that links may pass on, in percent of what the room shows. In a run of seconds the
    /// moment in which nobody knows of the flood weighs more.
    passed_on_percent_max: u64,
    gifts_per_s: u32,
    gifts_length: Duration,
}

/// Offers 400 comments a second for 6 s, or 1,000 for 20 s; then 500 gifts a second for 3 s, or
/// 5,000 for a minute.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let plan = size.pick(
        Plan {
            viewers: 100,
            items_per_s: 20,
            length: Duration::from_secs(6),
            passed_on_percent_max: 400,
            gifts_per_s: 500,
            gifts_length: Duration::from_secs(3),
        },
        Plan {
            viewers: 1_000,
            items_per_s: 50,
            length: Duration::from_secs(20),
            passed_on_percent_max: 200,
            gifts_per_s: 5_000,
            gifts_length: Duration::from_mins(1),
        },
    );
    check_descriptors(plan.viewers * DESCRIPTORS_PER_VIEWER)?;
    let folder = tempfile::tempdir()?;
    let (viewer_burst, viewer_refill_ms) = VIEWER;
    let settings = RoomSettings {
        items_per_s: plan.items_per_s,
        viewer_burst,
        viewer_refill_ms,
        ..stage::settings()
    };
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        config.chatserver.nodes_min = 1 + u32::from(MORE);
        config.more_chatservers = (1..=MORE)
            .map(|shard| {
                let mut beside = config.chatserver.clone();
                (beside.shard, beside.node) = (shard, NodeId(1_000 + u32::from(shard)));
                beside
            })
            .collect();
    });
    let stage = stage.await?;
    speak_alone(&stage, plan, line).await?;
    flood(&stage, plan, line).await?;
    gifts::run(&stage, plan.gifts_per_s, plan.gifts_length, line).await?;
    stage.close().await
}

/// One viewer says as much as a thousand.
async fn speak_alone(stage: &Stage, plan: Plan, line: &mut Line) -> anyhow::Result<()> {
    let seconds = plan.length.as_secs();
    let crowd = stage.crowd(1).await?;
    crowd.play(&stage::steady(ALONE_PER_S, plan.length, 8), 1.0, None).await;
    let summary = crowd.end(0).await?;

    progress(&format!("  one at {ALONE_PER_S} a second: {} admitted", summary.admitted));
    let faults = summary.faults();
    line.check(faults.is_empty(), || format!("one who speaks alone: {}", faults.join(", ")));
    let (burst, refill_ms) = VIEWER;
    let own_max = u64::from(burst) + (seconds + 1) * 1000 / u64::from(refill_ms);
    line.figure("alone_sent", summary.sent);
    line.figure("alone_admitted", summary.admitted);
    line.check(summary.admitted <= own_max, || {
        format!("one viewer was admitted {} times, not {own_max}", summary.admitted)
    });
    Ok(())
}

/// Many viewers, each within its own limit, say together much more than the room shows.
async fn flood(stage: &Stage, plan: Plan, line: &mut Line) -> anyhow::Result<()> {
    let crowd = stage.crowd(plan.viewers).await?;
    let before = Counts::of(stage);
    let per_s = TIMES * u64::from(plan.items_per_s);
    progress(&format!("  {} viewers say {per_s} comments a second", plan.viewers));
    let script = stage::steady(per_s, plan.length, 8);
    let protect = gifts::trickle(stage, plan.length);
    let ((), protected) = tokio::join!(crowd.play(&script, 1.0, None), protect);
    let protected = protected?;
    let sampled = || stage.meter.gauge(list::CHATSERVER_ROOMS_SAMPLED, &[]).get();
    let was_sampled = stage.meter.counter(list::CHATSERVER_KEEPS_TOLD_TOTAL, &[]).get() > 0;
    let summary = crowd.end(0).await?;
    let counts = Counts::of(stage).since(before);
    let lapsed = stage.wait(LAPSE_MAX, "links to pass everything on", || sampled() == 0).await;

    line.audit(&summary);
    line.figure("link_refused", counts.refused_by_link);
    line.figure("passed_on", counts.judged);
    line.figure("protected", protected);
    line.check(was_sampled, || "links were not told to pass on a share".to_owned());
    line.figure("lapse_ms", *lapsed.as_ref().unwrap_or(&0));
    line.check(lapsed.is_ok(), || "links still pass on a share".to_owned());
    compare(&summary, counts, protected, plan, line);
    Ok(())
}

/// Holds the four counts against each other, and against what the room shows.
fn compare(summary: &Summary, counts: Counts, protected: u64, plan: Plan, line: &mut Line) {
    let shown = u64::from(plan.items_per_s) * plan.length.as_secs();
    let shed: u64 = summary.shed.values().sum();
    let percent = |it: u64| it * 100 / shown;
    line.figure("admitted_percent", percent(summary.admitted));
    line.figure("passed_on_percent", percent(counts.judged));
    line.check(ADMITTED_PERCENT.contains(&percent(summary.admitted)), || {
        format!("{} admitted of {shown} that the room shows", summary.admitted)
    });
    line.check(percent(counts.judged) <= plan.passed_on_percent_max, || {
        format!("links passed {} on of {shown} that the room shows", counts.judged)
    });
    let mut same = |what: &str, left: u64, right: u64| {
        line.check(left == right, || format!("{what}: {left} and {right}"));
    };
    let refused: u64 = summary.refused.values().sum();
    same("sent, by viewers and by link and chatservers", summary.sent, {
        counts.refused_by_link + counts.judged
    });
    same("refused, by viewers and by link and chatservers", refused, {
        counts.refused_by_link + counts.judged - counts.admitted
    });
    same("admitted, by viewers and by chatservers", summary.admitted, counts.admitted);
    same("shown, by viewers and by the broadcaster", summary.sealed, counts.shown);
    same("given up, by viewers and by the broadcaster", shed, counts.given_up);
    same("gifts and notices, acknowledged and shown", protected, counts.protected);
}

/// What the services count.
#[derive(Clone, Copy, Debug)]
struct Counts {
    refused_by_link: u64,
    /// By chatservers, whatever became of it.
    judged: u64,
    admitted: u64,
    /// By the broadcaster: comments that were shown, and those that were not.
    shown: u64,
    given_up: u64,
    /// Gifts and notices that were shown.
    protected: u64,
}

impl Counts {
    fn of(stage: &Stage) -> Self {
        let count = |metric: Metric, labels: &[&str]| stage.meter.counter(metric, labels).get();
        let of_all = |metric: Metric, first: &[&str]| {
            let reasons = Reason::ALL.iter().map(|it| [first, &[it.name()]].concat());
            reasons.map(|it| count(metric, &it)).sum::<u64>()
        };
        let admitted = count(list::CHATSERVER_COMMENTS_TOTAL, &["admit"]);
        let sealed = |lane| count(list::BROADCASTER_ITEMS_TOTAL, &[lane, "sealed"]);
        Self {
            refused_by_link: of_all(list::LINK_DROPPED_COMMENTS_TOTAL, &[]),
            judged: admitted + of_all(list::CHATSERVER_COMMENTS_TOTAL, &[]),
            admitted,
            shown: sealed("comment"),
            given_up: of_all(list::BROADCASTER_ITEMS_TOTAL, &["comment"]),
            protected: ["notice", "high_gift", "low_gift"].map(sealed).iter().sum(),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            refused_by_link: self.refused_by_link - before.refused_by_link,
            judged: self.judged - before.judged,
            admitted: self.admitted - before.admitted,
            shown: self.shown - before.shown,
            given_up: self.given_up - before.given_up,
            protected: self.protected - before.protected,
        }
    }
}
