//! A room gets twenty times what it shows, through three chatservers: what is admitted is what it
//! shows, a review hook is asked about no more, whoever is refused is told so, gifts and notices
//! lose nothing, and everybody counts alike.

mod gifts;
mod hook;

use std::ops::RangeInclusive;
use std::time::Duration;

use drill::{Line, Stage, progress, stage};
use kit::meter::{Metric, list};
use proto::control::RoomSettings;
use proto::id::NodeId;
use proto::verdict::Reason;
use stack::crowd::Summary;
use stack::identity::APP;

use crate::cli::Size;
use crate::crowd::check_descriptors;
use hook::Hook;

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
/// Two slots are sealed within this time.
const CALM_MAX: Duration = Duration::from_secs(15);
/// Chatservers beside the first.
const MORE: u16 = 2;
/// The burst that a room takes after quiet has passed within this time; then the rate counts.
const BURST_MAX: Duration = Duration::from_secs(2);
/// Comments that may be admitted then, in percent of what the room shows.
const ADMITTED_PERCENT: RangeInclusive<u64> = 90..=110;
/// Comments that the review hook may be asked about then.
const REVIEW_PERCENT_MAX: u64 = 110;
/// Comments that links may pass on, burst included.
const PASSED_ON_PERCENT_MAX: u64 = 200;
/// Requests of the business API: more than gifts are asked for.
const REQUESTS_PER_S: u32 = 20_000;

/// How much.
#[derive(Clone, Copy, Debug)]
struct Plan {
    viewers: usize,
    items_per_s: u32,
    length: Duration,
    /// Comments that may be admitted and reviewed, burst included, in percent of what the room
    /// shows. The burst is what it shows in two seconds: a tenth of twenty, and a quarter of eight.
    burst_percent_max: u64,
    gifts_per_s: u32,
    gifts_length: Duration,
}

/// Offers 400 comments a second for 8 s, or 1,000 for 20 s; then 500 gifts a second for 3 s, or
/// 5,000 for a minute.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let plan = size.pick(
        Plan {
            viewers: 100,
            items_per_s: 20,
            length: Duration::from_secs(8),
            burst_percent_max: 140,
            gifts_per_s: 500,
            gifts_length: Duration::from_secs(3),
        },
        Plan {
            viewers: 1_000,
            items_per_s: 50,
            length: Duration::from_secs(20),
            burst_percent_max: 110,
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
    let hook = Hook::start().await?;
    let (review, outward) = (hook.review(APP)?, hook.outward()?);
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        config.chatserver.nodes_min = 1 + u32::from(MORE);
        config.chatserver.app_requests_per_s = REQUESTS_PER_S;
        config.chatserver.app_requests_burst = REQUESTS_PER_S;
        (config.chatserver.review, config.chatserver.outward) = (review, outward);
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
    flood(&stage, &hook, plan, line).await?;
    gifts::run(&stage, plan.gifts_per_s, plan.gifts_length, line).await?;
    stage.close().await?;
    hook.end().await
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
    // The next crowd knows nothing of what was said before: no slot that it gets may hold it.
    let seals = || stage.meter.counter(list::BROADCASTER_SEALS_TOTAL, &[]).get();
    let before = seals();
    stage.wait(CALM_MAX, "two more slots", || seals() >= before + 2).await?;
    Ok(())
}

/// Many viewers, each within its own limit, say together much more than the room shows.
async fn flood(stage: &Stage, hook: &Hook, plan: Plan, line: &mut Line) -> anyhow::Result<()> {
    let crowd = stage.crowd(plan.viewers).await?;
    let (before, asked_before) = (Counts::of(stage), hook.calls());
    let per_s = TIMES * u64::from(plan.items_per_s);
    progress(&format!("  {} viewers say {per_s} comments a second", plan.viewers));
    let say = async {
        crowd.play(&stage::steady(per_s, BURST_MAX, 8), 1.0, None).await;
        let burst = (Counts::of(stage), hook.calls());
        crowd.play(&stage::steady(per_s, plan.length - BURST_MAX, 8), 1.0, None).await;
        (burst, (Counts::of(stage), hook.calls()))
    };
    let ((burst, end), protected) = tokio::join!(say, gifts::trickle(stage, plan.length));
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
    let steady = (end.0.since(burst.0).admitted, end.1 - burst.1);
    limit(steady, counts, hook.calls() - asked_before, plan, line);
    compare(&summary, counts, protected, line);
    Ok(())
}

/// Holds what was let through against what the room shows; `steady` was admitted and reviewed after
/// the burst.
fn limit(steady: (u64, u64), counts: Counts, reviews: u64, plan: Plan, line: &mut Line) {
    let shown = |time: Duration| u64::from(plan.items_per_s) * time.as_secs();
    let percent = |it: u64| it * 100 / shown(plan.length);
    let steady_percent = |it: u64| it * 100 / shown(plan.length - BURST_MAX);
    let (steady_percent, review_percent) = (steady_percent(steady.0), steady_percent(steady.1));
    line.figure("steady_percent", steady_percent);
    line.figure("steady_review_percent", review_percent);
    line.figure("admitted_percent", percent(counts.admitted));
    line.figure("review_percent", percent(reviews));
    line.figure("passed_on_percent", percent(counts.judged));
    line.check(ADMITTED_PERCENT.contains(&steady_percent), || {
        format!("{steady_percent} percent of what the room shows was admitted after the burst")
    });
    line.check(review_percent <= REVIEW_PERCENT_MAX, || {
        format!("reviews of {review_percent} percent of what the room shows after the burst")
    });
    let most = plan.burst_percent_max;
    line.check(percent(counts.admitted) <= most, || {
        format!("{} admitted, more than {most} percent", counts.admitted)
    });
    line.check(percent(reviews) <= most, || format!("{reviews} reviews, more than {most} percent"));
    line.check(percent(counts.judged) <= PASSED_ON_PERCENT_MAX, || {
        format!("links passed {} on, more than {PASSED_ON_PERCENT_MAX} percent", counts.judged)
    });
    line.check(reviews >= counts.admitted, || {
        format!("{reviews} reviews of {} comments that were admitted", counts.admitted)
    });
}

/// Holds the four counts against each other.
fn compare(summary: &Summary, counts: Counts, protected: u64, line: &mut Line) {
    let shed: u64 = summary.shed.values().sum();
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
