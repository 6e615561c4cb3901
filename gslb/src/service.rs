//! The service, put together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, ensure};
use auth_core::app::App;
use auth_core::node::NodeSecret;
use auth_core::policy::Policies;
use auth_core::sealed::SECRET_BYTES_MIN;
use auth_core::ticket::TicketKeys;
use bus::Bus;
use channel::{ClientTls, ServerTls};
use gslb_core::policy::Policy;
use kit::clock::Clock;
use kit::health::Health;
use kit::http::{Hot, Plain, Server};
use kit::meter::Meter;
use kit::seed;
use kit::task::Tasks;
use tokio::net::{TcpListener, UdpSocket};
use tokio_util::sync::CancellationToken;

use crate::bases::Scheduler;
use crate::collector::{self, Collector};
use crate::config::Config;
use crate::control::{Control, Refused};
use crate::enter::{Answerer, router};
use crate::jwks::Files;
use crate::known::Known;
use crate::lead::Lead;
use crate::masters::{Copy, Fetcher, Keeper};
use crate::moves::{self, Teller};
use crate::nodes::{self, Asked};
use crate::place::{self, Carriers};
use crate::sync::{Found, Sync};
use crate::table::LoadTable;
use crate::watch::Watch;

/// What the service is given.
#[derive(Debug)]
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Metrics of the process.
    pub meter: Meter,
    /// Health of the process; the parts are `gslb.keys`, `gslb.jwks`, `gslb.snapshot`, `gslb.table`,
    /// `gslb.fleet`, `gslb.place` and `gslb.control`.
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
    meter: Meter,
    seed: u64,
    load_table: Arc<dyn LoadTable>,
    tls: Option<ServerTls>,
    listener: TcpListener,
    addr: SocketAddr,
    collector: Option<Collector>,
    collector_addr: Option<SocketAddr>,
    enter: Arc<Answerer>,
    /// Operators who want to see the fleet.
    asked: Asked,
    keeper: Keeper,
    files: Files,
    places: place::Keeper,
    control: Control,
    watch: Watch,
    sync: Sync,
    /// Where this process collects.
    leading: Option<(Lead, Teller)>,
    bases: Scheduler,
}

impl Service {
    /// Binds the listener and the collector's socket, and reads what is on disk: the copy of the
    /// master keys, and files of ticket keys.
    ///
    /// # Errors
    /// When the configuration is wrong, an address cannot be bound, an app's ticket keys cannot be
    /// used, or others could use the copy.
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        check(&config)?;
        let Parts { clock, meter, health, seed, apps, .. } = parts;
        let listener = listen(config.listen).await?;
        let collector = bind_collector(&config, &parts.nodes, &clock, &meter).await?;
        let (collector, collector_addr) = collector.unzip();

        let audience = Some(config.audience.clone()).filter(|it| !it.is_empty());
        let tickets = TicketKeys::new(&apps, &BTreeMap::new(), audience.clone());
        let tickets = tickets.context("the apps cannot be used")?;
        let known = Known::new(tickets, Policies::new(&apps), config.revocations_max);
        let known = Arc::new(known);
        let keeper = keeper(&config, &parts.auth_tls, &known, &clock, &meter)?;
        let (desk, asked) = nodes::desk();
        let carriers = Carriers::new(&config.place.carriers)?;
        let enter = Answerer::new(
            &config,
            &apps,
            &carriers,
            Arc::clone(&known),
            clock.clone(),
            &meter,
            desk,
        );
        let part = health.part("gslb.jwks");
        let mut files = Files::new(apps, audience, Arc::clone(&known), clock.clone(), part, &meter);
        files.look().await?;
        let mut places = places(&config, &known, &clock, &health, &meter);
        places.look().await?;
        let found = Found {
            table: Arc::clone(&parts.load_table),
            known: Arc::clone(&known),
            clock: clock.clone(),
            carriers: &carriers,
            health: &health,
            meter: &meter,
        };
        let bases = Scheduler::new(&config, first_turn(seed), &parts.global_bus, &found);
        let (sync, leading) = reader(&config, seed, &parts.global_bus, found)?;
        let bases = bases.led(leading.as_ref().map(|(lead, _)| lead.leads()));
        let control = Control {
            bus: parts.global_bus,
            known: Arc::clone(&known),
            clock: clock.clone(),
            health: health.part("gslb.control"),
            refused: Refused::new(&meter),
            promises: leading.as_ref().map(|(_, teller)| teller.promises()),
        };
        let watch = Watch::new(&known, config.horizon_s_min, clock.clone(), &health, &meter);
        Ok(Self {
            addr: listener.local_addr()?,
            listener,
            collector,
            collector_addr,
            enter: Arc::new(enter),
            asked,
            keeper,
            files,
            places,
            control,
            watch,
            sync,
            bases,
            leading,
            config,
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
        let Self { config, meter, .. } = self;

        let mut tasks = Tasks::default();
        if let Some(collector) = self.collector {
            let table = Arc::clone(&self.load_table);
            let writing = collector::write(collector.packed(), table, meter.clone());
            tasks.spawn("gslb.write", writing);
            tasks.spawn("gslb.collect", collector.collect(shutdown.clone()));
        }
        if let Some((lead, teller)) = self.leading {
            tasks.spawn("gslb.moves", teller.keep());
            tasks.spawn("gslb.lead", lead.keep(shutdown.clone()));
        }
        tasks.spawn("gslb.sync", self.sync.keep(config.snapshot_ms, self.asked, shutdown.clone()));
        tasks.spawn("gslb.control", self.control.keep(shutdown.clone()));
        tasks.spawn("gslb.bases", self.bases.keep(shutdown.clone()));
        tasks.spawn("gslb.watch", self.watch.keep(shutdown.clone()));
        let seed = seed::derive(self.seed, "keys");
        tasks.spawn("gslb.keys", self.keeper.keep(seed, shutdown.clone()));
        tasks.spawn("gslb.jwks", self.files.keep(shutdown.clone()));
        tasks.spawn("gslb.place", self.places.keep(shutdown.clone()));

        let server = Server::new(config.http, &meter, "gslb").behind(config.trusted_proxies);
        let server = server.before(Arc::clone(&self.enter) as Arc<dyn Hot>);
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

async fn listen(addr: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(addr).await.with_context(|| format!("{addr} cannot be bound"))
}

/// Refuses a configuration that cannot work.
fn check(config: &Config) -> anyhow::Result<()> {
    config.check()?;
    ensure!(
        config.secret.expose().len() >= SECRET_BYTES_MIN,
        "the secret of node {} has fewer than {SECRET_BYTES_MIN} bytes",
        config.node
    );
    Ok(())
}

/// Where this process begins to go round.
fn first_turn(seed: u64) -> u32 {
    u32::try_from(seed::derive(seed, "turns") >> 32).unwrap_or(0)
}

/// The reader of the load table, which has besieged nodes' sessions moved if this process collects.
fn reader(
    config: &Config,
    seed: u64,
    bus: &Arc<dyn Bus>,
    found: Found<'_>,
) -> anyhow::Result<(Sync, Option<(Lead, Teller)>)> {
    let policy = Policy { first_turn: first_turn(seed), ..config.policy.clone() };
    let (clock, meter) = (found.clock.clone(), found.meter);
    if !config.collector.enabled {
        return Ok((Sync::new(config, policy, found), None));
    }
    let lead = Lead::new(Arc::clone(bus), clock.clone(), meter)?;
    let (mover, teller) = moves::mover(&lead, Arc::clone(bus), clock, meter);
    Ok((Sync::new(config, policy, found).moving(mover), Some((lead, teller))))
}

/// The keeper of the master keys.
fn keeper(
    config: &Config,
    auth_tls: &ClientTls,
    known: &Arc<Known>,
    clock: &Clock,
    meter: &Meter,
) -> anyhow::Result<Keeper> {
    let secret = config.secret.clone();
    let fetcher = Fetcher::new(&config.auth_url, config.node, secret.clone(), auth_tls)?;
    let copy = Copy::new(&config.data, secret);
    Keeper::new(fetcher, copy, Arc::clone(known), clock.clone(), meter)
}

/// The keeper of the table of addresses.
fn places(
    config: &Config,
    known: &Arc<Known>,
    clock: &Clock,
    health: &Health,
    meter: &Meter,
) -> place::Keeper {
    let (known, part) = (Arc::clone(known), health.part("gslb.place"));
    place::Keeper::new(config.place.clone(), known, clock.clone(), part, meter)
}

async fn bind_collector(
    config: &Config,
    nodes: &[NodeSecret],
    clock: &Clock,
    meter: &Meter,
) -> anyhow::Result<Option<(Collector, SocketAddr)>> {
    if !config.collector.enabled {
        return Ok(None);
    }
    let listen = config.collector.listen;
    let socket = UdpSocket::bind(listen).await;
    let socket = socket.with_context(|| format!("{listen} cannot be bound for datagrams"))?;
    let addr = socket.local_addr()?;
    let settings = &config.collector;
    let collector = Collector::new(socket, settings, nodes, config.fleet(), clock.clone(), meter);
    Ok(Some((collector?, addr)))
}
