//! The auth service is killed, and later stopped, for longer than its keys reach.
//!
//! Promise: no login fails before the horizon; a warning comes before it; past it nobody is let
//! in, and those who are in stay; logins work again soon after the service is back.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::app::App;
use kit::meter::list;
use proto::address::Transport;
use proto::frame;
use proto::id::ViewerId;
use proto::policy::Policy;
use proto::time::millis;
use stack::{Config, Identity, Power};

use crate::knock::knock;
use crate::line::Line;
use crate::probe::Probe;
use crate::stage::{Stage, settings};

/// Length of an epoch: short, so that the horizon is.
const INTERVAL_S: u32 = 4;
/// Epochs known ahead: keys reach 8 to 12 seconds.
const AHEAD: u32 = 2;
/// Life of a token, at most half an epoch.
const TOKEN_TTL_S: u16 = 2;
/// Pause between two logins.
const PAUSE: Duration = Duration::from_millis(100);
/// Past the horizon, the last login is over within this time.
const OVER_MAX: Duration = Duration::from_secs(3);
/// For so long it is looked that nobody comes in.
const CLOSED: Duration = Duration::from_secs(2);
/// Logins work again within this time: a fetch that hangs is given up after five seconds.
const BACK_MAX: Duration = Duration::from_secs(15);

pub(crate) async fn run(folder: &Path, line: &mut Line) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let identity = Identity::load_or_create(folder)?;
    let short = |config: &mut Config| {
        config.auth.interval_s = INTERVAL_S;
        config.auth.ahead = AHEAD;
        let policy = Policy { token_ttl_s: TOKEN_TTL_S, ..Policy::default() };
        config.app = vec![App { policy, ..identity.app() }];
    };
    let stage = Stage::open(folder, line.seed(), &settings(), short).await?;
    let mut inside = Probe::enter(&stage, "inside", frame::Path::Push).await?;

    let (mut logins, mut back_ms) = (Vec::new(), Vec::new());
    for power in [Power::Killed, Power::Stopped] {
        all_ahead(&stage).await?;
        let away = Away { stage: &stage, power };
        logins.push(away.until_the_horizon(line).await?);
        away.past_the_horizon(line).await?;
        inside.is_served(BACK_MAX).await.context("who was in is not served")?;
        stage.auth.set(Power::On);
        back_ms.push(away.until_back().await?);
    }
    line.figure("logins", logins);
    line.figure("back_ms", back_ms);
    stage.wait(BACK_MAX, "the warning to end", || !warns(&stage)).await?;
    inside.leave().await?;
    stage.close().await
}

/// Waits until the link has all keys that the auth service can give.
async fn all_ahead(stage: &Stage) -> anyhow::Result<()> {
    let most_s = u64::from(INTERVAL_S * AHEAD);
    let has_all = || stage.is_ready() && horizon_s(stage) >= most_s;
    stage.wait(BACK_MAX, "keys of all epochs", has_all).await.map(|_| ())
}

/// One absence of the auth service.
struct Away<'a> {
    stage: &'a Stage,
    power: Power,
}

impl Away<'_> {
    /// Logs in again and again while the keys reach.
    async fn until_the_horizon(&self, line: &mut Line) -> anyhow::Result<u32> {
        let Self { stage, power } = *self;
        stage.auth.set(power);
        let (mut logins, mut warned) = (0, false);
        while horizon_s(stage) > 0 {
            warned |= warns(stage);
            match self.login().await {
                Ok(()) => logins += 1,
                Err(error) if horizon_s(stage) > 0 => {
                    line.fail(format!("{power:?}: a login failed before the horizon: {error:#}"));
                }
                Err(_) => {}
            }
            stage.clock.sleep(PAUSE).await;
        }
        line.check(logins > 0, || format!("{power:?}: nobody came in before the horizon"));
        line.check(warned, || format!("{power:?}: no warning before the horizon"));
        Ok(logins)
    }

    /// Nobody comes in any more.
    async fn past_the_horizon(&self, line: &mut Line) -> anyhow::Result<()> {
        let clock = &self.stage.clock;
        let start = clock.mono();
        while self.login().await.is_ok() {
            let over = clock.mono().since(start);
            ensure!(over < OVER_MAX, "viewers come in {} s past the horizon", over.as_secs());
        }
        let closed = clock.mono();
        while clock.mono().since(closed) < CLOSED {
            let came_in = self.login().await.is_ok();
            line.check(!came_in, || "a viewer came in past the horizon".to_owned());
            clock.sleep(PAUSE).await;
        }
        line.check(!self.stage.is_ready(), || "the system says that it is ready".to_owned());
        Ok(())
    }

    /// Waits until somebody comes in; gives the milliseconds that took.
    async fn until_back(&self) -> anyhow::Result<u64> {
        let start = self.stage.clock.mono();
        while let Err(error) = self.login().await {
            let waited = self.stage.clock.mono().since(start);
            if waited > BACK_MAX {
                return Err(error.context("logins do not come back"));
            }
            self.stage.clock.sleep(PAUSE).await;
        }
        Ok(millis(self.stage.clock.mono().since(start)))
    }

    /// One whole login, `enter` included.
    async fn login(&self) -> anyhow::Result<()> {
        let offer = self.stage.offer(&ViewerId::parse("guest")?, Transport::Tcp).await?;
        knock(&offer, &self.stage.room).await.map(|_| ())
    }
}

/// Whether the link warns that its keys will not reach far.
fn warns(stage: &Stage) -> bool {
    stage.health.warnings().iter().any(|it| it.0 == "link keys")
}

fn horizon_s(stage: &Stage) -> u64 {
    stage.meter.gauge(list::LINK_KEYS_HORIZON_SECONDS, &[]).get().try_into().unwrap_or(0)
}
