//! Pollers on two segment bases, of which one turns slow by two seconds: nineteen of twenty have
//! left it after five seconds, and they come back in steps.
//!
//! One in ten has no session: it reports nothing, and hears of new weights by segments and its own
//! experience alone.

mod gate;

use std::net::SocketAddr;
use std::time::Duration;

use drill::{Line, Stage, progress, stage};
use kit::clock::Clock;
use kit::meter::list;
use kit::task::Tasks;
use proto::address::Transport;
use proto::control::RoomSettings;
use proto::frame::Path;
use proto::head::Tier;
use proto::heat::Heat;
use proto::id::ViewerId;
use sdk::Client;
use serde_json::json;

use crate::cli::Size;
use crate::crowd::check_descriptors;
use gate::Gate;

/// Descriptors of one poller: both ends of its session, and, while it waits for a slow answer, both
/// ends on both sides of the gate.
const DESCRIPTORS_PER_POLLER: usize = 6;
/// One in so many has no session.
const APART: usize = 10;
/// How much the one base is slowed down.
const SLOW: Duration = Duration::from_secs(2);
/// Nineteen of twenty have left it after this.
const LEAVE_MAX: Duration = Duration::from_secs(5);
/// The same of those who hear it from segments only.
const LEAVE_APART_MAX: Duration = Duration::from_secs(10);
/// Questions that may still go to the slow base, of a hundred before.
const LEFT_PERCENT_MAX: u64 = 5;
/// How far from a half the share of either base may be while both are well.
const UNEVEN_PERCENT_MAX: u64 = 15;
/// What no link of this run speaks.
const NOWHERE: Transport = Transport::Quic;
/// Over how long questions are counted.
const COUNTED: Duration = Duration::from_secs(1);
/// All pollers ask within this time.
const COME_MAX: Duration = Duration::from_secs(60);
/// Clients ask so long after the end of a slot, before they are spread.
const SETTLE_MS: u32 = 300;
/// Between two looks at its share.
const LOOK: Duration = Duration::from_millis(100);

/// Slows down one of two bases of 200 or 2,000 pollers.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let pollers = size.pick(200, 2_000);
    // A thousand questions a second are what two cores serve beside everything else.
    let interval_ms = size.pick(1_000, 2_000);
    let (step_ms, quiet_ms) = size.pick((1_000, 10_000), (3_000, 30_000));
    let return_max = size.pick(Duration::from_secs(60), Duration::from_mins(3));
    check_descriptors(pollers * DESCRIPTORS_PER_POLLER)?;
    let folder = tempfile::tempdir()?;
    let clock = Clock::system();
    let gates = [Gate::open(clock.clone()).await?, Gate::open(clock).await?];
    let settings =
        RoomSettings { hot_sessions: 10, cold_sessions: 5, interval_ms, ..stage::settings() };
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        // Questions come evenly, so that those of one second can be compared with another's.
        config.broadcaster.spread_ms = interval_ms - SETTLE_MS;
        config.link.listeners.retain(|it| it.transport != NOWHERE);
        (config.gslb.bases.step_ms, config.gslb.bases.quiet_ms) = (step_ms, quiet_ms);
        config.gslb.segments.resize_with(gates.len(), Default::default);
        for (segments, gate) in config.gslb.segments.iter_mut().zip(&gates) {
            (segments.base, segments.weight) = (gate.base(), 1);
        }
    });
    let stage = stage.await?;
    let origin: SocketAddr = stage.addrs.origin.trim_start_matches("http://").parse()?;
    gates.iter().for_each(|it| it.lead_to(origin));
    let asks = pollers as u64 * 1_000 / u64::from(interval_ms);
    let run = Bases { stage, gates, pollers, asks };

    let readers = run.bring_in()?;
    run.settle().await?;
    let before = run.count().await;
    line.figure("pollers", pollers);
    line.figure("before", before.figure());
    line.check(before.share(0).abs_diff(50) <= UNEVEN_PERCENT_MAX, || {
        format!("an uneven start: {before:?}")
    });

    run.leave(before, line).await;
    run.come_back(return_max, line).await;
    let after = run.count().await;
    line.figure("after", after.figure());
    line.check(after.share(0).abs_diff(50) <= UNEVEN_PERCENT_MAX, || {
        format!("they did not come back: {after:?}")
    });
    drop(readers);
    run.stage.close().await
}

struct Bases {
    stage: Stage,
    gates: [Gate; 2],
    pollers: usize,
    /// Questions a second, when everybody is in.
    asks: u64,
}

/// Segments asked for within [`COUNTED`], by base.
#[derive(Clone, Copy, Debug)]
struct Counted {
    full: [u64; 2],
    lite: [u64; 2],
}

impl Bases {
    /// Starts the pollers; they go when the readers are dropped.
    fn bring_in(&self) -> anyhow::Result<Tasks> {
        let mut readers = Tasks::default();
        for number in 0..self.pollers {
            let account = ViewerId::parse(&format!("poller-{number}"))?;
            let mut options = self.stage.options(&account)?;
            options.rooms = vec![(self.stage.room.clone(), Path::Auto)];
            options.transports = vec![Transport::Tcp];
            if number % APART == 0 {
                // No link has it, so there is no address, and the segments are all there is.
                options.transports = vec![NOWHERE];
                options.tier = Tier::Lite;
            }
            let (client, mut events) = Client::start(options);
            readers.spawn("poller", async move {
                while events.next().await.is_some() {}
                drop(client);
                Ok(())
            });
        }
        Ok(readers)
    }

    /// Waits until the room is hot and everybody asks once a slot.
    async fn settle(&self) -> anyhow::Result<()> {
        let clock = &self.stage.clock;
        let start = clock.mono();
        loop {
            let counted = self.count().await;
            let is_hot = self.stage.head().await?.heat == Heat::Hot;
            let asked: u64 = counted.full.iter().chain(&counted.lite).sum();
            let waited = clock.mono().since(start);
            if is_hot && asked >= self.asks * 9 / 10 {
                progress(&format!("  all ask after {} ms", waited.as_millis()));
                return Ok(());
            }
            anyhow::ensure!(waited < COME_MAX, "{asked} of {} ask, {counted:?}", self.asks);
        }
    }

    /// Counts for a second.
    async fn count(&self) -> Counted {
        let asked = || [self.gates[0].asked(), self.gates[1].asked()];
        let before = asked();
        self.stage.clock.sleep(COUNTED).await;
        let after = asked();
        Counted {
            full: [after[0].0 - before[0].0, after[1].0 - before[1].0],
            lite: [after[0].1 - before[0].1, after[1].1 - before[1].1],
        }
    }

    /// Slows the first base down, and looks how its pollers leave.
    async fn leave(&self, before: Counted, line: &mut Line) {
        let clock = &self.stage.clock;
        let start = clock.mono();
        self.gates[0].slow(SLOW);
        let (mut seconds, mut drained_ms) = (Vec::new(), None);
        let (mut left, mut left_apart) = (before.full[0], before.lite[0]);
        while clock.mono() < start + LEAVE_APART_MAX {
            let begun = clock.mono().since(start);
            let counted = self.count().await;
            if drained_ms.is_none() && self.percent() == 1 {
                drained_ms = Some(proto::time::millis(clock.mono().since(start)));
            }
            if begun <= LEAVE_MAX + LOOK {
                left = counted.full[0];
            }
            left_apart = counted.lite[0];
            seconds.push(counted.figure());
        }
        let of = |left: u64, before: u64| left * 100 / before.max(1);
        let (percent, apart) = (of(left, before.full[0]), of(left_apart, before.lite[0]));
        progress(&format!("  {percent} % and {apart} % still ask the slow base"));
        line.figure("leaving", json!(seconds));
        line.figure("drained_ms", json!(drained_ms));
        line.figure("still_there_percent", percent);
        line.figure("still_there_apart_percent", apart);
        line.check(percent <= LEFT_PERCENT_MAX, || format!("{percent} % did not leave"));
        line.check(apart <= 2 * LEFT_PERCENT_MAX, || format!("{apart} % did not hear of it"));
    }

    /// Heals the base, and looks how its share grows.
    async fn come_back(&self, at_most: Duration, line: &mut Line) {
        let clock = &self.stage.clock;
        let start = clock.mono();
        self.gates[0].slow(Duration::ZERO);
        let mut shares = vec![self.percent()];
        while self.percent() < 100 && clock.mono().since(start) < at_most {
            clock.sleep(LOOK).await;
            let percent = self.percent();
            if shares.last() != Some(&percent) {
                shares.push(percent);
            }
        }
        let back_ms = proto::time::millis(clock.mono().since(start));
        progress(&format!("  back after {back_ms} ms: {shares:?}"));
        line.figure("back_ms", back_ms);
        line.figure("shares", json!(shares));
        line.check(shares.last() == Some(&100), || format!("it did not come back: {shares:?}"));
        let are_steps = shares.windows(2).all(|it| it[1] - it[0] <= 10);
        line.check(are_steps, || format!("more than 10 % at once: {shares:?}"));
        // A machine that is busy with other things makes a base late: then it falls again.
        line.figure("falls", shares.windows(2).filter(|it| it[1] < it[0]).count());
        // The last step reaches those who hear it from segments a second later.
        clock.sleep(2 * COUNTED).await;
    }

    /// The share of its weight that the first base gets.
    fn percent(&self) -> i64 {
        self.stage.meter.gauge(list::GSLB_BASE_PERCENT, &[&self.gates[0].base()]).get()
    }
}

impl Counted {
    /// Percent of all questions that went to a base.
    fn share(&self, base: usize) -> u64 {
        let all: u64 = self.full.iter().chain(&self.lite).sum();
        (self.full[base] + self.lite[base]) * 100 / all.max(1)
    }

    fn figure(&self) -> serde_json::Value {
        json!({"full": self.full, "lite": self.lite})
    }
}
