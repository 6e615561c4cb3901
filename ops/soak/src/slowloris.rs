//! Many connections that say as little as possible, in every phase of a session: honest viewers
//! come in as quickly as before, and what the link holds for the others is bounded in time.

mod attacker;
mod attackers;

use std::time::Duration;

use anyhow::Context;
use drill::{Line, Stage, progress, stage};
use kit::meter::list;
use proto::address::Transport;
use proto::enter::Offer;
use proto::frame::{Credential, Downlink, Join, Path};
use proto::id::ViewerId;
use serde_json::json;

use crate::aside::Aside;
use crate::cli::Size;
use crate::crowd::check_descriptors;
use attacker::Phase;
use attackers::Orders;

pub(crate) use attackers::{NAME, run as be_attackers};

/// Time from accepting a connection to the end of its login.
const LOGIN_MS_MAX: u32 = 4_000;
/// Between two honest viewers.
const PAUSE: Duration = Duration::from_millis(10);
/// One step of an honest viewer.
const STEP_MAX: Duration = Duration::from_secs(5);
/// Everybody is there within this time; the attackers are gone within as much.
const COME_MAX: Duration = Duration::from_secs(30);
/// How much later honest viewers may be in, beside a fifth: a busy machine's hiccups.
const LATER: Duration = Duration::from_millis(15);

/// How many, and how often.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Connections that stall.
    sockets: usize,
    /// Honest viewers of each half of a round.
    joins: usize,
    /// Rounds, each without and then with those who stall.
    rounds: usize,
    /// Of what those who stall draw.
    seed: u64,
}

const SHORT: Plan = Plan { sockets: 300, joins: 50, rounds: 2, seed: 0 };
const LONG: Plan = Plan { sockets: 5_000, joins: 250, rounds: 4, seed: 0 };

/// Lets viewers in, without and beside 300 or 5,000 connections that stall, in turn: what else the
/// machine does falls on both alike.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let plan = Plan { seed: line.seed(), ..size.pick(SHORT, LONG) };
    check_descriptors(2 * (plan.sockets + plan.joins))?;
    let folder = tempfile::tempdir()?;
    let settings = stage::settings();
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        config.link.login_ms_max = LOGIN_MS_MAX;
        // Everybody comes from loopback, of which the shares of an address do not hold.
        config.link.handshakes_max = u32::try_from(2 * plan.sockets).unwrap_or(u32::MAX);
        config.link.siege.enabled = false;
        config.gslb.rate.enabled = false;
    });
    let stage = stage.await?;

    let (mut calm, mut beside) = (Joins::default(), Joins::default());
    let mut held = Vec::new();
    for round in 0..plan.rounds {
        calm.add(join_all(&stage, &format!("calm-{round}"), plan.joins).await?);
        let (joins, held_then) = beside_attack(&stage, plan, round).await?;
        beside.add(joins);
        held.push(held_then);
        progress(&format!("  round {} of {}: {held_then} stalled", round + 1, plan.rounds));
    }
    let ended = stage.meter.counter(list::LINK_TURNED_AWAY_TOTAL, &["handshake"]).get();

    line.figure("sockets", plan.sockets);
    line.figure("held", json!(held));
    line.figure("handshakes_ended", ended);
    line.figure("join_us_calm", calm.figure());
    line.figure("join_us_beside", beside.figure());
    line.figure(
        "join_percent_later",
        json!({"p50": later(&calm, &beside, 50), "p99": later(&calm, &beside, 99)}),
    );
    line.check(ended > 0, || "no handshake that stalled was ended".to_owned());
    line.check(calm.failed + beside.failed == 0, || {
        format!("{} and {} viewers did not come in", calm.failed, beside.failed)
    });
    for percent in [50, 99] {
        let (before, during) = (calm.quantile(percent), beside.quantile(percent));
        line.check(during <= before + before / 5 + LATER, || {
            format!("the p{percent} of a join was {before:?}, and {during:?} beside the attack")
        });
    }
    stage.close().await
}

/// By how many percent of the calm time a join took longer beside the attack; below zero if it was
/// quicker.
fn later(calm: &Joins, beside: &Joins, percent: usize) -> i64 {
    let micros = |it: &Joins| i64::try_from(it.quantile(percent).as_micros()).unwrap_or(i64::MAX);
    let before = micros(calm).max(1);
    micros(beside).saturating_sub(before).saturating_mul(100) / before
}

/// Lets viewers in beside connections that stall, and waits until those are gone; also how many
/// there were at the least.
async fn beside_attack(stage: &Stage, plan: Plan, round: usize) -> anyhow::Result<(Joins, usize)> {
    let attackers = open_attack(stage, plan, round).await?;
    let handshakes = stage.meter.gauge(list::LINK_HANDSHAKES, &[]);
    let held = || usize::try_from(handshakes.get()).unwrap_or(0) + stage.sessions();
    stage.wait(COME_MAX, "the attackers to be there", || held() >= plan.sockets * 3 / 4).await?;
    let held_at_first = held();
    let joins = join_all(stage, &format!("beside-{round}"), plan.joins).await?;
    let held_at_last = held();
    if round == 0 {
        // So long that what stalls has come to its end at least once.
        stage.clock.sleep(Duration::from_millis(LOGIN_MS_MAX.into())).await;
    }
    attackers.kill().await?;
    stage.wait(COME_MAX, "the attackers to be gone", || held() == 0).await?;
    Ok((joins, held_at_first.min(held_at_last)))
}

/// How long honest viewers took from connecting to the end of the login.
#[derive(Debug, Default)]
struct Joins {
    times: Vec<Duration>,
    failed: u64,
}

impl Joins {
    /// Takes those of another round, too.
    fn add(&mut self, others: Self) {
        self.times.extend(others.times);
        self.times.sort_unstable();
        self.failed += others.failed;
    }

    /// Of times in order.
    fn quantile(&self, percent: usize) -> Duration {
        let index = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(index).copied().unwrap_or(Duration::MAX)
    }

    fn figure(&self) -> serde_json::Value {
        let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX);
        json!({"p50": micros(self.quantile(50)), "p99": micros(self.quantile(99))})
    }
}

/// Lets viewers in, one after the other, each over TLS; they leave at once.
async fn join_all(stage: &Stage, name: &str, viewers: usize) -> anyhow::Result<Joins> {
    let mut offers = Vec::new();
    for number in 0..viewers {
        let account = ViewerId::parse(&format!("{name}-{number}"))?;
        offers.push(stage.offer(&account, Transport::Tls).await?);
    }
    let mut joins = Joins::default();
    for offer in offers {
        let start = stage.clock.micros();
        match join(stage, offer).await {
            Ok(()) => joins.times.push(Duration::from_micros(stage.clock.micros() - start)),
            Err(error) => {
                progress(&format!("  a viewer did not come in: {error:#}"));
                joins.failed += 1;
            }
        }
        stage.clock.sleep(PAUSE).await;
    }
    Ok(joins)
}

async fn join(stage: &Stage, offer: Offer) -> anyhow::Result<()> {
    let tls = stage.trust.of(offer.address.transport);
    let mut raw = sdk::raw::connect(&offer.address, Some(tls), STEP_MAX).await?;
    let join = Join { room: stage.room.clone(), path: Path::Push, resume: None };
    raw.login(Credential::Token(offer.token), None, vec![join]).await?;
    loop {
        let frame = raw.recv().await.context("the login was not answered")?;
        if let Downlink::Refused(refused) = &frame {
            anyhow::bail!("refused as {}", refused.code.name());
        }
        if matches!(frame, Downlink::LoginOk(_)) {
            return Ok(());
        }
    }
}

/// Opens connections that stall, as many in each phase, and again what the link ends.
async fn open_attack(stage: &Stage, plan: Plan, round: usize) -> anyhow::Result<Aside> {
    let mut each = Vec::with_capacity(plan.sockets);
    for number in 0..plan.sockets {
        let phase = Phase::ALL[number % Phase::ALL.len()];
        let account = ViewerId::parse(&format!("attacker-{round}-{number}"))?;
        each.push((phase, stage.offer(&account, phase.transport()).await?));
    }
    let seed = plan.seed.wrapping_add(u64::try_from(round)?);
    attackers::start(&Orders { room: stage.room.clone(), seed, each }).await
}
