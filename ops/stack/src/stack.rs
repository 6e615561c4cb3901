//! All services of one unit in one process, wired together and run.

mod bind;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bus::{Bus, MemoryBus, Publish, PublishError};
use kit::clock::Clock;
use kit::health::Health;
use kit::http::{Plain, Server};
use kit::meter::Meter;
use kit::quota::MemoryQuota;
use kit::task::Tasks;
use proto::address::Address;
use proto::envelope::{RoomBatch, RoomEntry};
use proto::id::UnitId;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::apart::{Auth, AuthSwitch, Clocks};
use crate::config::Config;
use crate::identity::Identity;
use crate::links::{self, Links};
use crate::tls::{Certificates, Follow, Trust};

/// Keys of the embedded quota: a room's lanes, its flow, and who comes in.
const QUOTA_KEYS_MAX: usize = 100_000;
/// Longest time for one service to end beside what is configured for its requests in progress. The
/// link says itself how long its drain takes.
const DRAIN_MAX: Duration = Duration::from_secs(20);
/// So much more has the link: its workers are killed before it is over.
const LINK_SPARE: Duration = Duration::from_secs(2);

/// All services, bound and not yet serving.
#[derive(Debug)]
pub struct Stack {
    addrs: Addrs,
    parts: Shared,
    identity: Identity,
    trust: Trust,
    follow: Follow,
    auth: Auth,
    gslb: gslb::Service,
    chatservers: Vec<chatserver::Service>,
    broadcaster: broadcaster::Service,
    links: Links,
    links_end_max: Duration,
    others_end_max: Duration,
    admin: TcpListener,
}

/// What all services of the process share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Time; stepping it steps every service's.
    pub clock: Clock,
    /// Metrics.
    pub meter: Meter,
    /// Health.
    pub health: Health,
    /// The bus of everything that is global, and of the unit.
    pub bus: Arc<dyn Bus>,
}

impl Shared {
    /// Tells the links of `unit` what happened to a room, as the broadcaster does: so a benchmark
    /// measures links alone.
    ///
    /// # Errors
    /// [`PublishError`]; then no link hears it.
    pub async fn tell_links(&self, unit: UnitId, entry: RoomEntry) -> Result<(), PublishError> {
        let topic = bus::topic::downlink(unit);
        let record = Publish {
            partition: topic.partition_of_room(&entry.room),
            topic,
            term: None,
            key: None,
            value: RoomBatch { entries: vec![entry] }.encode(),
        };
        let told = self.bus.publish(vec![record]).await;
        told.into_iter().try_for_each(|it| it.map(|_| ()))
    }
}

/// Where everything listens.
#[derive(Clone, Debug, Serialize)]
pub struct Addrs {
    /// `POST` here to enter.
    pub enter: String,
    /// Where viewers connect; `enter` hands these out.
    pub link: Vec<Address>,
    /// Base of the segments, before `/dm/1/…`.
    pub origin: String,
    /// Base of the business API.
    pub api: String,
    /// Base of `/metrics`, `/livez`, `/readyz`.
    pub metrics: String,
    /// The same of each worker of the link, where it has workers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worker_metrics: Vec<String>,
    /// Base of the auth service.
    pub auth: String,
}

impl Stack {
    /// Binds every service, in the order in which they need each other's addresses.
    ///
    /// # Errors
    /// Says what could not be opened, read or bound.
    pub async fn bind(config: Config, clock: Clock, seed: u64) -> anyhow::Result<Self> {
        Box::pin(Self::bind_with(config, clock, seed, |bus| bus)).await
    }

    /// As [`Stack::bind`], with `wrap` put round the bus that all services share, and with a clock
    /// of its own for the link where `clocks` has one: drills put a fault there.
    ///
    /// # Errors
    /// As [`Stack::bind`].
    pub async fn bind_with(
        mut config: Config,
        clocks: impl Into<Clocks>,
        seed: u64,
        wrap: impl FnOnce(Arc<dyn Bus>) -> Arc<dyn Bus>,
    ) -> anyhow::Result<Self> {
        let Clocks { all: clock, link: link_clock } = clocks.into();
        std::fs::create_dir_all(&config.data)
            .with_context(|| format!("cannot make the folder {}", config.data.display()))?;
        let identity = Identity::load_or_create(&config.data)?;
        config.embed(&identity);
        let parts = Shared {
            bus: wrap(MemoryBus::new(clock.clone(), bus::memory::Limits::default())),
            clock,
            meter: Meter::new(),
            health: Health::default(),
        };
        let certificates = Certificates::open(&config, &parts).await?;
        let Certificates { trust, internal, tls, national, follow } = certificates;
        let apps: Arc<[_]> = config.app.clone().into();
        let nodes: Arc<[_]> = config.node.clone().into();

        let internal = internal.with_alpn(&[b"h2", b"http/1.1"]);
        let auth =
            bind::auth(&config, &parts, Arc::clone(&apps), Arc::clone(&nodes), internal).await?;
        let auth_url = format!("https://{}", auth.service.addr());
        config.gslb.auth_url.clone_from(&auth_url);
        config.link.auth_url.clone_from(&auth_url);
        config.broadcaster.auth_url.clone_from(&auth_url);

        let gslb = bind::gslb(&config, &parts, Arc::clone(&apps), nodes, &trust, seed).await?;
        config.link.collectors = gslb.collector_addr().iter().map(SocketAddr::to_string).collect();

        // One for each kind of service: those who share a quota are counted.
        let [quota, flow] = [(); 2].map(|()| Arc::new(MemoryQuota::new(QUOTA_KEYS_MAX)));
        let chatservers = bind::chatservers(&config, &parts, apps, flow, seed).await?;
        let api = chatservers.first().context("there is no chatserver")?.addr();
        let broadcaster = bind::broadcaster(&config, &parts, &trust, seed).await?;
        let link_parts = links::Parts {
            clock: link_clock,
            seed,
            quota,
            auth_tls: trust.tls.clone(),
            tls,
            national,
        };
        let links = Links::bind(&config, &parts, link_parts).await?;
        let admin = listen(config.admin.listen).await?;
        let addrs = Addrs {
            enter: format!("http://{}/v1/enter", gslb.addr()),
            link: links.addrs(),
            worker_metrics: links.metrics(),
            origin: broadcaster.base(),
            api: format!("http://{api}"),
            metrics: format!("http://{}", admin.local_addr()?),
            auth: auth_url,
        };
        Ok(Self {
            addrs,
            parts,
            identity,
            trust,
            follow,
            auth,
            gslb,
            chatservers,
            broadcaster,
            links,
            links_end_max: config.link.end_max() + LINK_SPARE,
            others_end_max: DRAIN_MAX + config.requests_drain_max(),
            admin,
        })
    }

    /// Where everything listens.
    #[must_use]
    pub const fn addrs(&self) -> &Addrs {
        &self.addrs
    }

    /// Where link nodes beside this process report their loads.
    #[must_use]
    pub const fn collector_addr(&self) -> Option<SocketAddr> {
        self.gslb.collector_addr()
    }

    /// Clock, metrics, health and bus of the process.
    #[must_use]
    pub const fn shared(&self) -> &Shared {
        &self.parts
    }

    /// The demonstration's secrets.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whom clients believe.
    #[must_use]
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Ends, stops and starts the auth service while the rest goes on.
    #[must_use]
    pub fn auth_switch(&self) -> AuthSwitch {
        self.auth.switch.clone()
    }

    /// Serves until `shutdown`, then drains: first the links, last the auth service, so that what
    /// a viewer said last is still carried to the end.
    ///
    /// # Errors
    /// The first service that failed ends all.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let (end_max, others_end_max) = (self.links_end_max, self.others_end_max);
        let mut services: Vec<Running> = Vec::new();
        let Self { parts, follow, auth, gslb, chatservers, broadcaster, links, admin, .. } = self;
        services.push(Running::start("admin", |stop| serve_admin(admin, parts, stop)));
        services.push(Running::start("certificates", |stop| follow.run(stop)));
        services.push(Running::start("auth", |stop| auth.run(stop)));
        services.push(Running::start("gslb", |stop| gslb.run(stop)));
        services.push(Running::start("broadcaster", |stop| broadcaster.run(stop)));
        for chatserver in chatservers {
            services.push(Running::start("chatserver", |stop| chatserver.run(stop)));
        }
        services.iter_mut().for_each(|it| it.end_max = others_end_max);
        let link = Running::start("link", |stop| links.run(stop));
        services.push(Running { end_max, ..link });

        let first = tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            ended = first_to_end(&mut services) => ended,
        };

        let mut ended = first;
        while let Some(service) = services.pop() {
            ended = ended.and(service.stop().await);
        }
        ended
    }
}

/// One service, running with its own end.
struct Running {
    name: &'static str,
    stop: CancellationToken,
    tasks: Tasks,
    end_max: Duration,
}

impl Running {
    fn start<F>(name: &'static str, run: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let mut tasks = Tasks::default();
        tasks.spawn(name, run(stop.clone()));
        Self { name, stop, tasks, end_max: DRAIN_MAX }
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let ended = kit::shutdown::drain(self.tasks, self.end_max).await;
        ended.with_context(|| format!("{} did not end well", self.name))
    }
}

/// Waits until a service ends that was not told to.
async fn first_to_end(services: &mut [Running]) -> anyhow::Result<()> {
    let waits = services.iter_mut().map(|it| {
        Box::pin(async {
            let ended = it.tasks.next().await.unwrap_or(Ok(()));
            let name = it.name;
            match ended {
                Ok(()) => Err(anyhow::anyhow!("{name} ended by itself")),
                Err(error) => Err(error.context(format!("{name} failed"))),
            }
        })
    });
    futures_util::future::select_all(waits).await.0
}

pub(crate) async fn listen(addr: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(addr).await.with_context(|| format!("cannot listen on {addr}"))
}

pub(crate) async fn serve_admin(
    listener: TcpListener,
    parts: Shared,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let router = kit::admin::router(parts.meter.clone(), parts.health);
    let server = Server::new(kit::http::Limits::default(), &parts.meter, "admin");
    server.serve(listener, Plain, router, stop).await
}
