//! The clock of the link node is wrong, and that of all others is right.
//!
//! Promise: within the skew that the policy allows logins work; outside they are refused with a code
//! to come back and the link's time, and nobody inside is disturbed. Who renews a session meanwhile
//! is refused with the same code and time, and the session goes on. Once the clock is right, a
//! viewer who kept trying comes in by itself, and a renewal is taken.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use auth_core::app::App;
use kit::clock::Clock;
use kit::meter::list;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::frame::{self, Downlink, LoginOk, Refused, Uplink};
use proto::id::ViewerId;
use proto::policy::Policy;
use sdk::raw::Raw;
use sdk::{Client, Event};
use stack::{Clocks, Config, Identity};

use crate::knock::{Shut, knock};
use crate::line::Line;
use crate::probe::Probe;
use crate::stage::{Stage, settings};

/// Wrong by less than the skew.
const INSIDE_MS: [i64; 2] = [25_000, -25_000];
/// Wrong by more than the skew and a token's life.
const OUTSIDE_MS: [i64; 2] = [90_000, -90_000];
/// Life of a token: with the skew of 30 s, none passes 90 s later.
const TOKEN_TTL_S: u16 = 30;
/// The ping behind a renewal.
const PING: u64 = 77;
/// A viewer is told within this time.
const TOLD_MAX: Duration = Duration::from_secs(10);
/// A viewer who keeps trying is in within this time: the back-off of some failures.
const BACK_MAX: Duration = Duration::from_secs(30);

pub(crate) async fn run(folder: &Path, line: &mut Line) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let identity = Identity::load_or_create(folder)?;
    let clocks = Clocks { all: Clock::system(), link: Clock::system() };
    let link_clock = clocks.link.clone();
    let short = |config: &mut Config| {
        let policy = Policy { token_ttl_s: TOKEN_TTL_S, ..Policy::default() };
        config.app = vec![App { policy, ..identity.app() }];
    };
    let stage = Stage::open_with(folder, line.seed(), &settings(), clocks, short).await?;
    let mut inside = Probe::enter(&stage, "inside", frame::Path::Push).await?;
    let mut renewing = Renewing::enter(&stage).await?;

    for off_ms in INSIDE_MS {
        link_clock.step(off_ms);
        let came_in = attempt(&stage).await;
        line.check(came_in.is_ok(), || format!("{off_ms} ms off: {came_in:?}"));
        link_clock.step(-off_ms);
    }
    let mut back_ms = Vec::new();
    for off_ms in OUTSIDE_MS {
        link_clock.step(off_ms);
        check_refusal(&stage, &link_clock, off_ms, line).await?;
        let renewal = renewing.renew(&stage).await?;
        let refused = renewal.err().with_context(|| format!("{off_ms} ms off: it was renewed"))?;
        check_refused(&refused, &link_clock, off_ms, line);
        let account = format!("patient{off_ms}");
        back_ms.push(come_back(&stage, &account, || link_clock.step(-off_ms)).await?);
        let renewal = renewing.renew(&stage).await?;
        line.check(renewal.is_ok(), || format!("after {off_ms} ms: {renewal:?}"));
    }
    line.figure("back_ms", back_ms);
    line.figure("refused", stage.meter.counter(list::LINK_CLOSES_TOTAL, &["token_expired"]).get());
    inside.is_served(TOLD_MAX).await.context("who was in is not served")?;
    inside.leave().await?;
    stage.close().await
}

async fn attempt(stage: &Stage) -> anyhow::Result<()> {
    let offer = stage.offer(&ViewerId::parse("guest")?, Transport::Tcp).await?;
    knock(&offer, &stage.room).await.map(|_| ())
}

/// A login outside the skew gets a code to come back, with the link's time.
async fn check_refusal(
    stage: &Stage,
    link_clock: &Clock,
    off_ms: i64,
    line: &mut Line,
) -> anyhow::Result<()> {
    let offer = stage.offer(&ViewerId::parse("guest")?, Transport::Tcp).await?;
    let refused = match knock(&offer, &stage.room).await {
        Ok(_) => anyhow::bail!("{off_ms} ms off: a viewer came in"),
        Err(error) => error.downcast::<Shut>()?.0,
    };
    check_refused(&refused, link_clock, off_ms, line);
    Ok(())
}

fn check_refused(refused: &Refused, link_clock: &Clock, off_ms: i64, line: &mut Line) {
    line.check(refused.code == CloseCode::TokenExpired, || {
        format!("{off_ms} ms off: the code is {}", refused.code.name())
    });
    let apart_ms = refused.server_ms.0.abs_diff(link_clock.wall().0);
    line.check(apart_ms < 5000, || format!("the link's time is {apart_ms} ms from what it says"));
}

/// A session that is renewed by hand.
struct Renewing {
    raw: Raw,
    account: ViewerId,
}

impl Renewing {
    async fn enter(stage: &Stage) -> anyhow::Result<Self> {
        let account = ViewerId::parse("renewing")?;
        let offer = stage.offer(&account, Transport::Tcp).await?;
        let (raw, _) = knock(&offer, &stage.room).await?;
        Ok(Self { raw, account })
    }

    /// Asks for more life with a new token; the link's answer. A ping that is answered afterwards
    /// shows that the session goes on.
    async fn renew(&mut self, stage: &Stage) -> anyhow::Result<Result<LoginOk, Refused>> {
        let token = stage.offer(&self.account, Transport::Tcp).await?.token;
        self.raw.send(&Uplink::Refresh { token }).await?;
        self.raw.send(&Uplink::Ping { nonce: PING }).await?;
        let mut renewed = None;
        loop {
            match self.raw.recv().await.context("the session ended")? {
                Downlink::LoginOk(login_ok) => renewed = Some(Ok(login_ok)),
                Downlink::Refused(refused) => renewed = Some(Err(refused)),
                Downlink::Pong { nonce: PING, .. } => {
                    return renewed.context("a renewal was not answered");
                }
                Downlink::Close(close) => bail!("a renewal ended the session: {close:?}"),
                Downlink::Welcome(_)
                | Downlink::Batch(_)
                | Downlink::Seal(_)
                | Downlink::Skipped { .. }
                | Downlink::Ack(_)
                | Downlink::Control(_)
                | Downlink::Joined(_)
                | Downlink::Pong { .. } => {}
            }
        }
    }
}

/// A viewer tries while the clock is wrong; `mend` makes it right. Gives the milliseconds until the
/// viewer is in.
async fn come_back(stage: &Stage, account: &str, mend: impl FnOnce()) -> anyhow::Result<u64> {
    let mut options = stage.options(&ViewerId::parse(account)?)?;
    options.rooms = vec![(stage.room.clone(), frame::Path::Push)];
    let (client, mut events) = Client::start(options);
    let refused = wait_for(&mut events, TOLD_MAX, |it| {
        matches!(it, Event::Disconnected { code: Some(CloseCode::TokenExpired), .. })
    });
    refused.await.context("the viewer was not told why")?;
    mend();
    let start = stage.clock.mono();
    let is_in = |it: &Event| matches!(it, Event::Connected { .. });
    wait_for(&mut events, BACK_MAX, is_in).await.context("the viewer did not come back")?;
    client.close();
    Ok(proto::time::millis(stage.clock.mono().since(start)))
}

async fn wait_for(
    events: &mut sdk::Events,
    at_most: Duration,
    is_it: impl Fn(&Event) -> bool,
) -> anyhow::Result<()> {
    let waited = async {
        loop {
            let event = events.next().await.context("the viewer ended")?;
            ensure!(!matches!(event, Event::Ended(_)), "the viewer ended: {event:?}");
            if is_it(&event) {
                return Ok(());
            }
        }
    };
    tokio::time::timeout(at_most, waited).await.context("nothing came")?
}
