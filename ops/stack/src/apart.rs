//! Single services treated apart from the rest, while the rest goes on: for drills.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use kit::clock::Clock;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::stack::listen;

/// A port that a killed service leaves is free within this time.
const FREE_MAX: Duration = Duration::from_secs(5);
/// Pause before it is tried again.
const FREE_PAUSE: Duration = Duration::from_millis(20);

/// The clocks of a stack.
#[derive(Clone, Debug)]
pub struct Clocks {
    /// That of all services but those below.
    pub all: Clock,
    /// The link's.
    pub link: Clock,
}

impl From<Clock> for Clocks {
    /// One clock for all.
    fn from(all: Clock) -> Self {
        Self { link: all.clone(), all }
    }
}

/// What is the matter with a service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Power {
    /// It runs.
    #[default]
    On,
    /// It is gone, and its port is closed.
    Killed,
    /// As from outside a stopped process: its port takes connections, and nothing answers.
    Stopped,
}

/// Ends, stops and starts the auth service of a running stack.
#[derive(Clone, Debug, Default)]
pub struct AuthSwitch(watch::Sender<Power>);

impl AuthSwitch {
    /// Turns it so. A service that is started again has what lies on its disk and no more.
    pub fn set(&self, power: Power) {
        self.0.send_replace(power);
    }

    /// Waits until the service is to run and its port is free.
    async fn wait(power: &mut watch::Receiver<Power>, addr: SocketAddr) -> anyhow::Result<()> {
        loop {
            let now = *power.borrow_and_update();
            let port = free(addr).await?;
            let held = match now {
                Power::On => return Ok(()),
                Power::Killed => None,
                // Nobody accepts what the system takes.
                Power::Stopped => Some(port),
            };
            power.changed().await.context("the switch is gone")?;
            drop(held);
        }
    }
}

/// The auth service, and what makes another one like it.
pub(crate) struct Auth {
    pub(crate) service: auth::Service,
    pub(crate) again: Box<dyn Fn() -> BoxFuture<'static, anyhow::Result<auth::Service>> + Send>,
    pub(crate) switch: AuthSwitch,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.service.fmt(f)
    }
}

impl Auth {
    /// Runs the service as the switch says, until `stop` or until it ends by itself.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let Self { mut service, again, switch } = self;
        let addr = service.addr();
        let mut power = switch.0.subscribe();
        loop {
            tokio::select! {
                ended = service.run(stop.clone()) => return ended,
                // Dropping it ends its tasks.
                _ = power.wait_for(|it| *it != Power::On) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                back = AuthSwitch::wait(&mut power, addr) => back?,
            }
            service = again().await?;
        }
    }
}

/// The port, once whoever had it is gone.
async fn free(addr: SocketAddr) -> anyhow::Result<TcpListener> {
    let freed = async {
        loop {
            match listen(addr).await {
                Ok(port) => return port,
                Err(_) => tokio::time::sleep(FREE_PAUSE).await,
            }
        }
    };
    tokio::time::timeout(FREE_MAX, freed).await.with_context(|| format!("{addr} is still taken"))
}
