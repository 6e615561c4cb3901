//! The service: bound, then run until it is told to end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::app::App;
use auth_core::epochs::Epochs;
use auth_core::keyring::Keyring;
use auth_core::node::NodeSecret;
use auth_core::policy::{self, Policies};
use bus::Bus;
use channel::ServerTls;
use kit::clock::Clock;
use kit::health::{Health, Part};
use kit::http::{Plain, Server};
use kit::meter::Meter;
use kit::task::Tasks;
use parking_lot::{Mutex, RwLock};
use proto::control::Fact;
use proto::id::NodeId;
use proto::keys::Masters;
use proto::policy::PolicyFact;
use proto::time::Mono;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::epochs::Driver;
use crate::masters::{self, MastersFile};
use crate::node::Nodes;
use crate::operators::Operators;
use crate::site::{LedgerFile, Site};
use crate::{keys, lead, operate};

/// File of what operators said, in the service's folder.
const LEDGER_FILE: &str = "facts.json";
/// Time for another service to lead, or for this one to take over, before an alarm is raised.
const ALARM_AFTER: Duration = Duration::from_secs(10);

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
    site: Arc<Site>,
    driver: Driver,
    masters_part: Part,
}

impl Service {
    /// Checks the configuration, opens or draws the masters, and binds the port.
    ///
    /// # Errors
    /// When the configuration is wrong, the masters cannot be used, or the port is taken.
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        ensure!(
            parts.tls.is_some() || config.listen.ip().is_loopback(),
            "keys go over TLS or stay on loopback: {} is neither",
            config.listen,
        );
        config.check(&parts.apps).context("the auth service's configuration is wrong")?;
        let plan = config.plan()?;
        let node = NodeId(u32::from_be_bytes(kit::seed::random_bytes()?));
        let health = parts.health.part("auth");
        let masters_part = parts.health.part("auth masters");
        let server = Server::new(config.http.clone(), &parts.meter, "auth");
        let tls = parts.tls.clone();
        let listener = TcpListener::bind(config.listen)
            .await
            .with_context(|| format!("could not listen on {}", config.listen))?;
        let addr = listener.local_addr()?;
        let horizon_min = plan.horizon() / 4;
        let site = Arc::new(site(&config, parts, horizon_min)?);
        let driver = Driver {
            epochs: Epochs::new(plan),
            node,
            health,
            fence: None,
            say_at: Mono(0),
            alarm_from: site.clock.mono() + ALARM_AFTER,
            is_alarmed: false,
            site: Arc::clone(&site),
        };
        Ok(Self { listener, addr, server, tls, site, driver, masters_part })
    }

    /// Where nodes fetch their keys, and operators call.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown`; then finishes the requests in progress.
    ///
    /// # Errors
    /// When a task fails, or requests had to be cut off.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self { listener, server, tls, site, driver, masters_part: part, .. } = self;
        let router = keys::router(Arc::clone(&site)).merge(operate::router(Arc::clone(&site)));
        let mut tasks = Tasks::default();
        tasks.spawn("auth.lead", lead::run(Arc::clone(&site), driver.node, shutdown.clone()));
        tasks.spawn("auth.masters", masters::watch::run(site, part, shutdown.clone()));
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

/// What is known at the start. Blocks for file access.
fn site(config: &Config, parts: Parts, horizon_min: Duration) -> anyhow::Result<Site> {
    let file = MastersFile::new(&config.data, &config.seal)?;
    let masters = Masters { interval_s: config.interval_s, masters: file.read_or_create()? };
    let ledger = LedgerFile::open(config.data.join(LEDGER_FILE))?;
    let site = Site {
        clock: parts.clock,
        meter: parts.meter,
        bus: parts.global_bus,
        answer_max: Duration::from_millis(config.bus_ms_max.into()),
        interval_s: config.interval_s,
        horizon_min,
        current_at: Mutex::new(None),
        nodes: Nodes::new(parts.nodes)?,
        operators: Operators::new(&config.operator_keys),
        policies: RwLock::new(Policies::new(&parts.apps)),
        apps: parts.apps,
        keyring: RwLock::new(Keyring::new(&masters)?),
        masters: RwLock::new(masters.masters),
        file: Mutex::new(file),
        ledger,
        lead: watch::Sender::new(None),
    };
    let kept: Vec<Fact> = site.ledger.known.lock().facts().cloned().collect();
    check_policies(&kept, config.interval_s)?;
    kept.iter().for_each(|it| site.apply(it));
    Ok(site)
}

/// Policies that operators set while epochs were longer may not fit any more.
fn check_policies(kept: &[Fact], interval_s: u32) -> anyhow::Result<()> {
    for fact in kept {
        if let Fact::Policy(PolicyFact { app, room, policy: Some(policy), .. }) = fact {
            let room = room.as_ref().map_or_else(String::new, |it| format!("room {it} of "));
            policy::check(policy, interval_s)
                .with_context(|| format!("the policy of {room}app {app} in {LEDGER_FILE}"))?;
        }
    }
    Ok(())
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "auth::Service({})", self.addr)
    }
}
