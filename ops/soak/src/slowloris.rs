//! Many connections that say as little as possible, in every phase of a session: honest viewers
//! come in as quickly as before, and what the link holds for the others is bounded in time.

mod attacker;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use drill::{Line, Stage, progress, stage};
use kit::meter::list;
use kit::task::Tasks;
use proto::address::Transport;
use proto::enter::Offer;
use proto::frame::{Credential, Downlink, Join, Path};
use proto::id::ViewerId;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cli::Size;
use crate::crowd::check_descriptors;
use attacker::{Attacker, Phase};

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

/// Lets 100 or 500 viewers in, without and beside 300 or 5,000 connections that stall.
pub(crate) async fn run(size: Size, line: &mut Line) -> anyhow::Result<()> {
    let (sockets, joins) = size.pick((300, 100), (5_000, 500));
    check_descriptors(2 * (sockets + joins))?;
    let folder = tempfile::tempdir()?;
    let settings = stage::settings();
    let stage = Stage::open(folder.path(), line.seed(), &settings, |config| {
        config.link.login_ms_max = LOGIN_MS_MAX;
        // Everybody comes from loopback, of which the shares of an address do not hold.
        config.link.handshakes_max = u32::try_from(2 * sockets).unwrap_or(u32::MAX);
        config.link.siege.enabled = false;
        config.gslb.rate.enabled = false;
    });
    let stage = Arc::new(stage.await?);
    let calm = join_all(&stage, "calm", joins).await?;

    let stop = CancellationToken::new();
    let attackers = open_attack(&stage, sockets, &stop).await?;
    let handshakes = stage.meter.gauge(list::LINK_HANDSHAKES, &[]);
    let held = || usize::try_from(handshakes.get()).unwrap_or(0) + stage.sessions();
    stage.wait(COME_MAX, "the attackers to be there", || held() >= sockets * 3 / 4).await?;
    let held_at_first = held();
    progress(&format!("  {held_at_first} connections stall"));
    let beside = join_all(&stage, "beside", joins).await?;
    let held_at_last = held();
    // So long that what stalls has come to its end at least once.
    stage.clock.sleep(Duration::from_millis(LOGIN_MS_MAX.into())).await;
    let ended = stage.meter.counter(list::LINK_TURNED_AWAY_TOTAL, &["handshake"]).get();
    stop.cancel();
    attackers.join().await?;
    let gone = stage.wait(COME_MAX, "the attackers to be gone", || held() == 0).await;

    line.figure("sockets", sockets);
    line.figure("held", json!([held_at_first, held_at_last]));
    line.figure("handshakes_ended", ended);
    line.figure("join_us_calm", calm.figure());
    line.figure("join_us_beside", beside.figure());
    line.check(ended > 0, || "no handshake that stalled was ended".to_owned());
    line.check(gone.is_ok(), || format!("{} connections are still held", held()));
    line.check(calm.failed + beside.failed == 0, || {
        format!("{} and {} viewers did not come in", calm.failed, beside.failed)
    });
    let (before, during) = (calm.p99(), beside.p99());
    line.check(during <= before + before / 5 + LATER, || {
        format!("the p99 of a join was {before:?}, and then {during:?}")
    });
    match Arc::try_unwrap(stage) {
        Ok(stage) => stage.close().await,
        Err(_) => anyhow::bail!("an attacker is still there"),
    }
}

/// How long honest viewers took from connecting to the end of the login.
#[derive(Debug, Default)]
struct Joins {
    times: Vec<Duration>,
    failed: u64,
}

impl Joins {
    /// Of times in order.
    fn quantile(&self, percent: usize) -> Duration {
        let index = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(index).copied().unwrap_or(Duration::MAX)
    }

    fn p99(&self) -> Duration {
        self.quantile(99)
    }

    fn figure(&self) -> serde_json::Value {
        let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX);
        json!({"p50": micros(self.quantile(50)), "p99": micros(self.p99())})
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
    joins.times.sort_unstable();
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
async fn open_attack(
    stage: &Arc<Stage>,
    sockets: usize,
    stop: &CancellationToken,
) -> anyhow::Result<Tasks> {
    let mut attackers = Tasks::default();
    for number in 0..sockets {
        let phase = Phase::ALL[number % Phase::ALL.len()];
        let account = ViewerId::parse(&format!("attacker-{number}"))?;
        let offer = stage.offer(&account, phase.transport()).await?;
        let attacker = Attacker { stage: Arc::clone(stage), phase, offer, stop: stop.clone() };
        attackers.spawn("attacker", attacker.run());
    }
    Ok(attackers)
}
