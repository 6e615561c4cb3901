//! The service: bound, then run until it is told to end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::app::App;
use auth_core::epochs::{Epochs, Input, Plan};
use auth_core::keyring::Keyring;
use auth_core::node::NodeSecret;
use bus::Bus;
use channel::ServerTls;
use kit::clock::Clock;
use kit::health::Health;
use kit::http::{Plain, Server};
use kit::meter::Meter;
use kit::task::Tasks;
use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::epochs::Driver;
use crate::keys::{self, Keys};
use crate::masters;
use crate::node::Nodes;

/// Life of a token where no app is configured.
const TTL_S_DEFAULT: u16 = 60;

/// What the service is given.
#[derive(Debug)]
pub struct Parts {
    /// Tells the time.
    pub clock: Clock,
    /// Counts.
    pub meter: Meter,
    /// Knows what fails.
    pub health: Health,
    /// Carries `control`.
    pub global_bus: Arc<dyn Bus>,
    /// Who may fetch keys.
    pub nodes: Arc<[NodeSecret]>,
    /// Whose keys links get.
    pub apps: Arc<[App]>,
    /// How nodes connect; without it, `listen` must be loopback.
    pub tls: Option<ServerTls>,
}

/// Bound, not yet serving.
pub struct Service {
    listener: TcpListener,
    addr: SocketAddr,
    server: Server,
    tls: Option<ServerTls>,
    keys: Arc<Keys>,
    driver: Driver,
}

impl Service {
    /// Checks the configuration, reads or draws the masters, and binds the port.
    ///
    /// # Errors
    /// When the configuration is wrong, the masters cannot be used, or the port is taken.
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        ensure!(
            parts.tls.is_some() || config.listen.ip().is_loopback(),
            "keys go over TLS or stay on loopback: {} is neither",
            config.listen,
        );
        let masters = masters::load_or_create(&config.data, config.interval_s)?;
        let ttl_s =
            parts.apps.iter().map(|it| it.policy.token_ttl_s).max().unwrap_or(TTL_S_DEFAULT);
        let plan = Plan::new(masters.interval_s, &config.algs, config.ahead, ttl_s)?;
        let horizon = plan.horizon();
        let mut epochs = Epochs::new(plan);
        let kids: Vec<u8> = masters.masters.iter().map(|it| it.kid).collect();
        epochs.handle(&Input::Masters(&kids));
        let keys = Arc::new(Keys {
            clock: parts.clock,
            nodes: Nodes::new(parts.nodes)?,
            apps: parts.apps.iter().map(|it| it.id).collect(),
            keyring: RwLock::new(Keyring::new(&masters)?),
            masters,
            meter: parts.meter,
        });
        let driver = Driver {
            bus: parts.global_bus,
            keys: Arc::clone(&keys),
            epochs,
            answer_max: Duration::from_millis(config.bus_ms_max.into()),
            horizon_min: horizon / 4,
            health: parts.health.part("auth"),
        };
        let listener = TcpListener::bind(config.listen)
            .await
            .with_context(|| format!("could not listen on {}", config.listen))?;
        let addr = listener.local_addr()?;
        let server = Server::new(config.http, &keys.meter, "auth");
        Ok(Self { listener, addr, server, tls: parts.tls, keys, driver })
    }

    /// Where nodes fetch their keys.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown`; then finishes the requests in progress.
    ///
    /// # Errors
    /// When a task fails, or requests had to be cut off.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self { listener, server, tls, keys, driver, .. } = self;
        let router = keys::router(keys);
        let mut tasks = Tasks::default();
        tasks.spawn("auth.epochs", driver.run(shutdown.clone()));
        tasks.spawn("auth.http", async move {
            match tls {
                Some(tls) => server.serve(listener, tls, router, shutdown).await,
                None => server.serve(listener, Plain, router, shutdown).await,
            }
        });
        tasks.join().await
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "auth::Service({})", self.addr)
    }
}
