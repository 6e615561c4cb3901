//! Viewers who come, say something or not, and go, while a few stand and listen.
//!
//! Meanwhile memory stays within a bound, once what is remembered for a time has been forgotten
//! for the first time. Afterwards everything is as it was: sessions, people and tasks; and those
//! who stood got everything. All viewers are in a process of their own, so that what they keep by
//! themselves, as the ids that they have shown, is not taken for the services'.

mod doors;
mod guests;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use drill::{Line, Stage, progress, stage};
use kit::clock::Clock;
use kit::task::Tasks;
use stack::beside;

use crate::cli::Size;
use doors::Visits;
use guests::{Event, Guests};

pub(crate) use guests::{NAME, run as be_guests};

/// Viewers who stand.
const STANDING: usize = 4;
/// Everything is as it was within this time.
const CALM_MAX: Duration = Duration::from_secs(20);
/// Tasks that come and go by themselves: HTTP connections of the standing viewers' polls.
const TASKS_SLACK: usize = 12;
/// Tasks of one visitor at the services, at most: sessions, HTTP connections.
const TASKS_PER_DOOR_MAX: usize = 3;
/// Segments in memory, which make way for others only when these are full: here within two minutes.
const RECENT_BYTES_MAX: usize = 1024 * 1024;
/// How often tasks are counted, and timers looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Memory that a run of seconds may add: what is remembered for minutes has only begun to fill.
const SHORT_GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The same for a run of minutes, in percent.
const GROWTH_PERCENT_MAX: u64 = 5;

/// How many, and how long.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Visitors at a time.
    doors: usize,
    /// How long there is talk before the books are looked at.
    page: Duration,
    /// Pages until everything that is remembered for a time has been forgotten once.
    warm_pages: usize,
    /// Pages whose memory is compared with that.
    pages: usize,
}

const SHORT: Plan = Plan { doors: 20, page: Duration::from_secs(2), warm_pages: 1, pages: 1 };
/// Ten minutes behind six: of all that a system keeps for a time, used tokens are kept longest, for
/// four.
const LONG: Plan = Plan { doors: 60, page: Duration::from_mins(1), warm_pages: 6, pages: 10 };

/// Lets visitors through 20 doors for some seconds, or 60 doors for 16 minutes.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let plan = size.pick(SHORT, LONG);
    let folder = tempfile::tempdir()?;
    let settings = stage::settings();
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        config.broadcaster.recent_bytes_max = RECENT_BYTES_MAX;
    });
    let stage = stage.await?;
    let socket = folder.path().join("bus");
    let mut lent = Tasks::default();
    lent.spawn("lent bus", beside::lend(&socket, Arc::clone(stage.bus()))?);
    let mut guests = Guests::start(&stage, plan, socket, line.seed()).await?;
    let tasks_before = alive_tasks();
    let people_before = people_settle(&stage).await?;
    guests.begin().await?;
    let watch = Watch::default();
    let seen = tokio::select! {
        seen = see_pages(&mut guests, &watch) => seen,
        never = watch.run(&stage.clock) => match never {},
    };
    let (pages, visits) = seen?;
    progress(&format!("  {} visits", visits.done));

    let calm_ms =
        stage.wait(CALM_MAX, "sessions to be as before", || stage.sessions() == STANDING).await?;
    let people = people_settle(&stage).await?;
    let tasks_max = tasks_before + TASKS_SLACK;
    let tasks = stage.wait(CALM_MAX, "tasks to end", || alive_tasks() <= tasks_max).await;
    let tasks_after = alive_tasks();
    let (summary, panics) = guests.end().await?;

    let tasks_by_page: Vec<usize> = pages.iter().map(|it| it.tasks_most).collect();
    let tasks_most = tasks_by_page.iter().copied().max().unwrap_or(tasks_before);
    let rss_bytes: Vec<u64> = pages.iter().map(|it| it.rss_bytes).collect();
    line.figure("visits", visits.done);
    line.figure("visitors_spoke", visits.spoke);
    line.figure("calm_ms", calm_ms);
    line.figure("people", people);
    line.figure("tasks_before", tasks_before);
    line.figure("tasks_most", tasks_most);
    line.figure("tasks_most_by_page", serde_json::json!(tasks_by_page));
    let late_by_page: Vec<u64> = pages.iter().map(|it| it.late_ms_most).collect();
    line.figure("late_ms_most_by_page", serde_json::json!(late_by_page));
    line.figure("tasks_after", tasks_after);
    line.audit(&summary);
    line.check(panics == 0, || format!("{panics} panics among the viewers"));
    line.check(visits.done > 0, || "nobody came".to_owned());
    line.check(visits.failed == 0, || format!("{} visitors did not come in", visits.failed));
    line.check(people == people_before, || format!("{people_before} people, then {people}"));
    line.check(tasks.is_ok(), || format!("{tasks_before} tasks, then {tasks_after}"));
    line.check(tasks_most <= tasks_max + plan.doors * TASKS_PER_DOOR_MAX, || {
        format!("{tasks_most} tasks for {} visitors at a time", plan.doors)
    });
    judge(size, plan, &rss_bytes, line);
    stage.close().await
}

/// What was seen of one page.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// At its end.
    rss_bytes: u64,
    tasks_most: usize,
    late_ms_most: u64,
}

/// What is watched meanwhile, to tell growth from a machine that stood still: then work piles up,
/// and what it takes stays with the allocator. Two seconds add 4 to 9 MB.
#[derive(Debug, Default)]
struct Watch {
    /// Alive at a time.
    tasks_most: AtomicUsize,
    /// How late a timer was.
    late_ms_most: AtomicU64,
}

/// Looks at this process at the end of each page.
async fn see_pages(guests: &mut Guests, watch: &Watch) -> anyhow::Result<(Vec<Page>, Visits)> {
    let mut pages = Vec::new();
    loop {
        match guests.next().await? {
            Event::Page => pages.push(Page {
                rss_bytes: kit::process::resident_bytes(),
                tasks_most: watch.tasks_most.swap(0, Ordering::Relaxed),
                late_ms_most: watch.late_ms_most.swap(0, Ordering::Relaxed),
            }),
            Event::Closed(visits) => return Ok((pages, visits)),
        }
    }
}

/// Compares the memory of each page with that at the end of the warm ones.
fn judge(size: Size, plan: Plan, rss_bytes: &[u64], line: &mut Line) {
    let (warm, compared) = rss_bytes.split_at(plan.warm_pages.min(rss_bytes.len()));
    let warm_bytes = warm.last().copied().unwrap_or(0);
    let most = compared.iter().copied().max().unwrap_or(0);
    let growth_max = size.pick(SHORT_GROWTH_BYTES_MAX, warm_bytes * GROWTH_PERCENT_MAX / 100);
    line.figure("rss_bytes_warm", warm_bytes);
    line.figure("rss_bytes_most", most);
    line.figure("rss_bytes_by_page", serde_json::json!(rss_bytes));
    line.check(most > 0 && most <= warm_bytes + growth_max, || {
        format!("memory grew from {warm_bytes} to {most} bytes")
    });
}

/// Waits until the head says as many people as stand; says what it says in the end.
async fn people_settle(stage: &Stage) -> anyhow::Result<u32> {
    let deadline = stage.clock.mono() + CALM_MAX;
    loop {
        let people = stage.head().await?.online;
        if usize::try_from(people)? == STANDING || stage.clock.mono() >= deadline {
            return Ok(people);
        }
        stage.clock.sleep(LOOK).await;
    }
}

impl Watch {
    async fn run(&self, clock: &Clock) -> Infallible {
        loop {
            self.tasks_most.fetch_max(alive_tasks(), Ordering::Relaxed);
            let due = clock.mono() + LOOK;
            clock.sleep_until(due).await;
            let late_ms = proto::time::millis(clock.mono().since(due));
            self.late_ms_most.fetch_max(late_ms, Ordering::Relaxed);
        }
    }
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grows_to(rss_bytes: &[u64]) -> bool {
        let mut line = Line::new("churn", 7);
        let plan = Plan { warm_pages: 2, pages: 2, ..LONG };
        judge(Size::Long, plan, rss_bytes, &mut line);
        line.is_ok()
    }

    #[test]
    fn memory_may_grow_while_warm_and_by_a_twentieth_afterwards() {
        assert!(grows_to(&[10, 1000, 1050, 1000]));
        assert!(!grows_to(&[10, 1000, 1051, 1000]), "at any time");
        assert!(!grows_to(&[10, 1000]), "nothing was compared");
    }
}
