//! The service, put together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::app::App;
use auth_core::node::NodeSecret;
use auth_core::policy::Policies;
use auth_core::sealed::SECRET_BYTES_MIN;
use auth_core::ticket::TicketKeys;
use bus::Bus;
use channel::{ClientTls, ServerTls};
use gslb_core::fleet::{Fleet, Limits};
use gslb_core::policy::Policy;
use kit::clock::Clock;
use kit::health::Health;
use kit::http::{Plain, Server};
use kit::meter::Meter;
use kit::seed;
use kit::task::Tasks;
use tokio::net::{TcpListener, UdpSocket};
use tokio_util::sync::CancellationToken;

use crate::collector::{self, Collector};
use crate::config::Config;
use crate::control::{Control, Refused};
use crate::enter::{Answerer, router};
use crate::jwks::Files;
use crate::known::Known;
use crate::masters::{Copy, Fetcher, Keeper};
use crate::sync::Sync;
use crate::table::LoadTable;
use crate::watch::Watch;

/// What the service is given.
#[derive(Debug)]
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Metrics of the process.
    pub meter: Meter,
    /// Health of the process; the parts are `gslb.keys`, `gslb.jwks`, `gslb.snapshot`,
    /// `gslb.fleet` and `gslb.control`.
    pub health: Health,
    /// For jitter and the first turn; nothing secret follows from it.
    pub seed: u64,
    /// The customers' applications.
    pub apps: Arc<[App]>,
    /// All nodes; links sign their reports with these secrets.
    pub nodes: Arc<[NodeSecret]>,
    /// Carries `control`.
    pub global_bus: Arc<dyn Bus>,
    /// Where loads are left and found.
    pub load_table: Arc<dyn LoadTable>,
    /// Whom the auth service's certificate must come from.
    pub auth_tls: ClientTls,
    /// TLS of the listener; plain HTTP without, for loopback and behind a proxy.
    pub tls: Option<ServerTls>,
}

/// The service, bound, not yet serving.
#[derive(Debug)]
pub struct Service {
    config: Config,
    clock: Clock,
    meter: Meter,
    seed: u64,
    load_table: Arc<dyn LoadTable>,
    tls: Option<ServerTls>,
    listener: TcpListener,
    addr: SocketAddr,
    collector: Option<Collector>,
    collector_addr: Option<SocketAddr>,
    known: Arc<Known>,
    enter: Arc<Answerer>,
    keeper: Keeper,
    files: Files,
    control: Control,
    watch: Watch,
}

impl Service {
    /// Binds the listener and the collector's socket, and reads what is on disk: the copy of the
    /// master keys, and files of ticket keys.
    ///
    /// # Errors
    /// When the configuration is wrong, an address cannot be bound, an app's ticket keys cannot be
    /// used, or others could use the copy.
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        config.check()?;
        ensure!(
            config.secret.expose().len() >= SECRET_BYTES_MIN,
            "the secret of node {} has fewer than {SECRET_BYTES_MIN} bytes",
            config.node
        );
        let Parts { clock, meter, health, seed, apps, .. } = parts;
        let listener = TcpListener::bind(config.listen).await;
        let listener = listener.with_context(|| format!("{} cannot be bound", config.listen))?;
        let collector = match config.collector.enabled {
            true => Some(bind_collector(&config, &parts.nodes, &clock, &meter).await?),
            false => None,
        };
        let (collector, collector_addr) = collector.unzip();

        let audience = Some(config.audience.clone()).filter(|it| !it.is_empty());
        let tickets = TicketKeys::new(&apps, &BTreeMap::new(), audience.clone());
        let tickets = tickets.context("the apps cannot be used")?;
        let (policies, bases) = (Policies::new(&apps), config.segments.clone());
        let known = Arc::new(Known::new(tickets, policies, bases, config.revocations_max));
        let secret = config.secret.clone();
        let fetcher = Fetcher::new(&config.auth_url, config.node, secret.clone(), &parts.auth_tls)?;
        let copy = Copy::new(&config.data, secret);
        let keeper = Keeper::new(fetcher, copy, Arc::clone(&known), clock.clone(), &meter)?;
        let enter =
            Answerer::new(config.clone(), &apps, Arc::clone(&known), clock.clone(), meter.clone())?;
        let part = health.part("gslb.jwks");
        let mut files = Files::new(apps, audience, Arc::clone(&known), clock.clone(), part, &meter);
        files.look().await?;
        let control = Control {
            bus: parts.global_bus,
            known: Arc::clone(&known),
            clock: clock.clone(),
            bases_fixed: !config.segments.is_empty(),
            health: health.part("gslb.control"),
            refused: Refused::new(&meter),
        };
        let horizon_min = Duration::from_secs(config.horizon_s_min.into());
        let watch = Watch::new(Arc::clone(&known), horizon_min, clock.clone(), &health, &meter);
        Ok(Self {
            addr: listener.local_addr()?,
            listener,
            collector,
            collector_addr,
            enter: Arc::new(enter),
            keeper,
            files,
            control,
            watch,
            known,
            config,
            clock,
            meter,
            seed,
            load_table: parts.load_table,
            tls: parts.tls,
        })
    }

    /// Where `POST /v1/enter` is served.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Answers without HTTP; there is something to answer while [`Service::run`] runs.
    #[must_use]
    pub fn answerer(&self) -> Arc<Answerer> {
        Arc::clone(&self.enter)
    }

    /// Where load reports are received, if this process collects.
    #[must_use]
    pub const fn collector_addr(&self) -> Option<SocketAddr> {
        self.collector_addr
    }

    /// Serves until `shutdown`, then drains.
    ///
    /// # Errors
    /// When a task fails or requests had to be cut off.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self { config, clock, meter, known, .. } = self;

        let mut tasks = Tasks::default();
        if let Some(collector) = self.collector {
            let table = Arc::clone(&self.load_table);
            let writing = collector::write(collector.packed(), table, meter.clone());
            tasks.spawn("gslb.write", writing);
            tasks.spawn("gslb.collect", collector.collect(shutdown.clone()));
        }
        let policy = Policy {
            share_max: config.share_max,
            first_turn: u32::try_from(seed::derive(self.seed, "turns") >> 32).unwrap_or(0),
            ..Policy::default()
        };
        let fleet = fleet(&config);
        let sync = Sync::new(self.load_table, known, fleet, policy, clock, &meter);
        tasks.spawn("gslb.sync", sync.keep(config.snapshot_ms, shutdown.clone()));
        tasks.spawn("gslb.control", self.control.keep(shutdown.clone()));
        tasks.spawn("gslb.watch", self.watch.keep(shutdown.clone()));
        let seed = seed::derive(self.seed, "keys");
        tasks.spawn("gslb.keys", self.keeper.keep(seed, shutdown.clone()));
        tasks.spawn("gslb.jwks", self.files.keep(shutdown.clone()));

        let server = Server::new(config.http, &meter, "gslb");
        let router = router(self.enter);
        let (listener, tls) = (self.listener, self.tls);
        tasks.spawn("gslb.http", async move {
            match tls {
                Some(tls) => server.serve(listener, tls, router, shutdown).await,
                None => server.serve(listener, Plain, router, shutdown).await,
            }
        });
        tasks.join().await
    }
}

fn fleet(config: &Config) -> Fleet {
    Fleet::new(Limits {
        lease: Duration::from_millis(config.lease_ms.into()),
        nodes_max: config.nodes_max as usize,
    })
}

async fn bind_collector(
    config: &Config,
    nodes: &[NodeSecret],
    clock: &Clock,
    meter: &Meter,
) -> anyhow::Result<(Collector, SocketAddr)> {
    let listen = config.collector.listen;
    let socket = UdpSocket::bind(listen).await;
    let socket = socket.with_context(|| format!("{listen} cannot be bound for datagrams"))?;
    let addr = socket.local_addr()?;
    let settings = config.collector.clone();
    let collector = Collector::new(socket, settings, nodes, fleet(config), clock.clone(), meter);
    Ok((collector?, addr))
}
