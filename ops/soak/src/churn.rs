//! Viewers who come, stay a short while and go, while a few stand and listen.
//!
//! Afterwards everything is as it was: sessions, people, tasks, and memory within a bound; and
//! those who stood got everything.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use drill::{Line, Stage, progress, stage};
use kit::clock::Clock;
use kit::seed::derive;
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::address::Transport;
use proto::frame::Path;
use proto::id::{RoomId, ViewerId};
use proto::item::Style;
use proto::time::Mono;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use sdk::{Client, Event, Events, Options};
use tokio::time::timeout;

use crate::cli::Size;

/// Viewers who stand.
const STANDING: usize = 4;
/// Comments of those a second, over all of them.
const COMMENTS_PER_S: u64 = 10;
/// How long a visit lasts, once the visitor is in.
const STAY_MS: std::ops::Range<u64> = 20..600;
/// A visitor is in within this time, and gone.
const STEP_MAX: Duration = Duration::from_secs(15);
/// One in so many visitors says something.
const SPEAKERS: u32 = 10;
/// Names of one door's visitors: they are remembered by name for a while.
const NAMES: u64 = 50;
/// Everything is as it was within this time.
const CALM_MAX: Duration = Duration::from_secs(20);
/// Tasks that come and go by themselves: HTTP connections of the standing viewers' polls.
const TASKS_SLACK: usize = 12;
/// Tasks of one visitor on both ends, at most: sessions, timers, HTTP connections.
const TASKS_PER_DOOR_MAX: usize = 12;
/// How often tasks are counted.
const LOOK: Duration = Duration::from_millis(100);
/// Memory that the last part of the run may add: rings, queues and allocator reserves fill up to
/// their bounds in the first part, of which a few seconds are not enough.
const SHORT_GROWTH_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The same for a run of minutes, in percent.
const GROWTH_PERCENT_MAX: u64 = 5;

/// Lets visitors through 20 doors for 5 s, or 60 doors for 10 minutes.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let (doors_open, length) =
        size.pick((20, Duration::from_secs(5)), (60, Duration::from_mins(10)));
    let folder = tempfile::tempdir()?;
    let stage = Stage::open(folder.path(), line.seed(), &stage::settings(), |_| {}).await?;
    let crowd = stage.crowd(STANDING).await?;
    let tasks_before = alive_tasks();
    let people_before = people_settle(&stage).await?;

    let visits = Arc::new(Mutex::new(Visits::default()));
    let start = stage.clock.mono();
    let warm = start + length / 3;
    let script = stage::steady(COMMENTS_PER_S, length, 8);
    let doors = open_doors(&stage, doors_open, start + length, &visits, line.seed())?;
    let warming = async {
        stage.clock.sleep_until(warm).await;
        kit::process::resident_bytes()
    };
    let counting = watch(&stage, start + length);
    let ((), walked, warm_bytes, watched) =
        tokio::join!(crowd.play(&script, 1.0, None), doors.join(), warming, counting);
    walked?;
    let visits = *visits.lock();
    progress(&format!("  {} visits", visits.done));

    let calm_ms =
        stage.wait(CALM_MAX, "sessions to be as before", || stage.sessions() == STANDING).await?;
    let people = people_settle(&stage).await?;
    let tasks_max = tasks_before + TASKS_SLACK;
    let tasks = stage.wait(CALM_MAX, "tasks to end", || alive_tasks() <= tasks_max).await;
    let tasks_after = alive_tasks();
    let bytes = kit::process::resident_bytes();
    let summary = crowd.end(0).await?;

    line.figure("visits", visits.done);
    line.figure("visitors_spoke", visits.spoke);
    line.figure("calm_ms", calm_ms);
    line.figure("people", people);
    line.figure("tasks_before", tasks_before);
    line.figure("tasks_most", watched.tasks_most);
    line.figure("tasks_after", tasks_after);
    line.figure("rss_bytes", bytes);
    line.figure("rss_bytes_by_minute", serde_json::json!(watched.rss_bytes));
    line.figure("rss_growth_bytes", bytes.saturating_sub(warm_bytes));
    line.audit(&summary);
    line.check(visits.done > 0, || "nobody came".to_owned());
    line.check(visits.failed == 0, || format!("{} visitors did not come in", visits.failed));
    line.check(people == people_before, || format!("{people_before} people, then {people}"));
    line.check(tasks.is_ok(), || format!("{tasks_before} tasks, then {tasks_after}"));
    let doors_open = usize::try_from(doors_open)?;
    line.check(watched.tasks_most <= tasks_max + doors_open * TASKS_PER_DOOR_MAX, || {
        format!("{} tasks for {doors_open} visitors at a time", watched.tasks_most)
    });
    let growth_max = size.pick(SHORT_GROWTH_BYTES_MAX, warm_bytes * GROWTH_PERCENT_MAX / 100);
    line.check(bytes <= warm_bytes + growth_max, || {
        format!("memory grew from {warm_bytes} to {bytes} bytes")
    });
    stage.close().await
}

/// What visitors did.
#[derive(Clone, Copy, Debug, Default)]
struct Visits {
    done: u64,
    failed: u64,
    spoke: u64,
}

/// Starts tasks that each send one visitor after the other until `end`.
fn open_doors(
    stage: &Stage,
    doors: u64,
    end: Mono,
    visits: &Arc<Mutex<Visits>>,
    seed: u64,
) -> anyhow::Result<Tasks> {
    // An HTTP client of their own: its idle connections end with it.
    let http = sdk::http::client(&stage.trust.tls)?;
    let mut tasks = Tasks::default();
    for door in 0..doors {
        let mut options = Vec::new();
        for name in 0..NAMES {
            let account = ViewerId::parse(&format!("visitor-{door}-{name}"))?;
            let mut one = stage.options(&account)?;
            one.http = http.clone();
            options.push(one);
        }
        let walk = Door {
            options,
            room: stage.room.clone(),
            clock: stage.clock.clone(),
            visits: Arc::clone(visits),
            rng: SmallRng::seed_from_u64(derive(seed, &format!("door {door}"))),
        };
        tasks.spawn("door", walk.until(end));
    }
    Ok(tasks)
}

/// Where one visitor after the other comes in.
struct Door {
    /// One for each name.
    options: Vec<Options>,
    room: RoomId,
    clock: Clock,
    visits: Arc<Mutex<Visits>>,
    rng: SmallRng,
}

impl Door {
    async fn until(mut self, end: Mono) -> anyhow::Result<()> {
        const TRANSPORTS: [Transport; 4] =
            [Transport::Tcp, Transport::Tls, Transport::Ws, Transport::Wss];
        while self.clock.mono() < end {
            let draw = self.rng.random_range(0..self.options.len());
            let mut options = self.options[draw].clone();
            let path = if self.rng.random() { Path::Push } else { Path::Segments };
            options.rooms = vec![(self.room.clone(), path)];
            options.transports = vec![TRANSPORTS[self.rng.random_range(0..TRANSPORTS.len())]];
            options.seed = self.rng.random();
            let stay = Duration::from_millis(self.rng.random_range(STAY_MS));
            let speaks = self.rng.random_ratio(1, SPEAKERS);
            let came = timeout(STEP_MAX, self.visit(options, stay, speaks)).await;
            let mut visits = self.visits.lock();
            match came {
                Ok(Ok(())) => visits.done += 1,
                Ok(Err(_)) | Err(_) => visits.failed += 1,
            }
            visits.spoke += u64::from(speaks);
        }
        Ok(())
    }

    async fn visit(&self, options: Options, stay: Duration, speaks: bool) -> anyhow::Result<()> {
        let (client, mut events) = Client::start(options);
        let is_in = |event: &Event| matches!(event, Event::Connected { .. });
        ensure!(read_until(&mut events, is_in).await, "ended before it was in");
        if speaks {
            client.send(&self.room, "just passing", Style::default(), None)?;
        }
        // Whoever stays reads; the end of the stay is no event.
        let ended = timeout(stay, read_until(&mut events, |_| false)).await;
        ensure!(ended.is_err(), "ended while it was in");
        client.close();
        read_until(&mut events, |_| false).await;
        Ok(())
    }
}

/// Reads until an event is found (true) or the viewer ended (false).
async fn read_until(events: &mut Events, is_it: impl Fn(&Event) -> bool) -> bool {
    while let Some(event) = events.next().await {
        if is_it(&event) {
            return true;
        }
    }
    false
}

/// Waits until the head says as many people as stand; says what it says in the end.
async fn people_settle(stage: &Stage) -> anyhow::Result<u32> {
    let deadline = stage.clock.mono() + CALM_MAX;
    loop {
        let people = stage.head().await?.online;
        if usize::try_from(people)? == STANDING || stage.clock.mono() >= deadline {
            return Ok(people);
        }
        stage.clock.sleep(Duration::from_millis(100)).await;
    }
}

/// What the process took meanwhile.
#[derive(Debug, Default)]
struct Watched {
    /// The most tasks alive at a time.
    tasks_most: usize,
    /// Memory, minute by minute.
    rss_bytes: Vec<u64>,
}

/// Watches the process until `end`.
async fn watch(stage: &Stage, end: Mono) -> Watched {
    const MINUTE: Duration = Duration::from_mins(1);
    let mut watched = Watched::default();
    let mut next = stage.clock.mono() + MINUTE;
    while stage.clock.mono() < end {
        watched.tasks_most = watched.tasks_most.max(alive_tasks());
        if stage.clock.mono() >= next {
            watched.rss_bytes.push(kit::process::resident_bytes());
            next = next + MINUTE;
        }
        stage.clock.sleep(LOOK).await;
    }
    watched
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}
