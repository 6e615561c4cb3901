//! Puts the parts together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bus::Bus;
use kit::clock::Clock;
use kit::health::Health;
use kit::http::{Plain, Server};
use kit::meter::Meter;
use kit::shutdown;
use kit::task::Tasks;
use proto::head::Base;
use proto::id::UnitId;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::bases::{Announcer, Storing};
use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::display::Display;
use crate::downlink::Downlink;
use crate::live::Live;
use crate::opener::Opener;
use crate::origin::Origin;
use crate::store::SegmentStore;
use crate::{driver, origin, press};

/// Time for writers and downlinks to end after the driver did.
const TASKS_MAX: Duration = Duration::from_secs(5);
/// Weight of this process's base among the others'.
const WEIGHT: u32 = 100;

/// What a broadcaster is given.
#[derive(Debug)]
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Metrics.
    pub meter: Meter,
    /// Health; the broadcaster adds `broadcaster_bus` and `broadcaster_store`.
    pub health: Health,
    /// For what needs chance; nothing here does yet.
    pub seed: u64,
    /// `accepted`, `sealed`, `gauges`, `control`.
    pub global_bus: Arc<dyn Bus>,
    /// `downlink` of every unit.
    pub unit_buses: BTreeMap<UnitId, Arc<dyn Bus>>,
    /// Where segments lie; each gets all of them. Without one, gens start anew with the bus.
    pub stores: Vec<Arc<dyn SegmentStore>>,
}

/// A broadcaster that listens and does not serve yet.
#[derive(Debug)]
pub struct Service {
    config: Config,
    parts: Parts,
    listener: TcpListener,
    addr: SocketAddr,
}

impl Service {
    /// Checks the configuration and listens.
    ///
    /// # Errors
    /// When the configuration cannot work, or the address is taken.
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        config.check().context("the broadcaster's configuration")?;
        let listener = TcpListener::bind(config.listen).await;
        let listener = listener.with_context(|| format!("cannot listen on {}", config.listen))?;
        let addr = listener.local_addr()?;
        Ok(Self { config, parts, listener, addr })
    }

    /// Where the origin listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL that is advertised: everything before `/dm/1/…`.
    #[must_use]
    pub fn base(&self) -> String {
        match self.config.base.as_str() {
            "" => format!("http://{}", self.addr),
            base => base.to_owned(),
        }
    }

    /// Serves until `shutdown`, then seals the open slots, gives its partitions up and returns.
    ///
    /// # Errors
    /// When a part failed, or did not end in time.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let base = Base { base: self.base(), weight: WEIGHT };
        let Self { config, parts, listener, .. } = self;
        let Parts { clock, meter, health, seed: _, global_bus, unit_buses, stores } = parts;
        let counts = Counts::new(&meter);
        let display = Arc::new(Display::new(config.recent_bytes_max));
        let live = Arc::new(Live::new(config.live_max, counts.clone()));
        let storing = Arc::new(Storing::default());
        let mirrors = mirrors(&config);
        let mut workers = Tasks::default();
        let (jobs, jobs_queue) = mpsc::channel(press::JOBS_MAX);
        let (stored_sender, stored) = mpsc::channel(press::JOBS_MAX);
        let tools = press::Tools {
            clock: clock.clone(),
            counts: counts.clone(),
            health: health.part("broadcaster_store"),
            display: Arc::clone(&display),
            live: Arc::clone(&live),
            stores: stores.clone(),
            storing: Arc::clone(&storing),
            mirrors: mirrors.iter().map(|it| it.as_ref().map(|it| Arc::clone(&it.1))).collect(),
        };
        press::start(&config, tools, jobs_queue, stored_sender, &mut workers);
        let queues_max = config.queues_max;
        let downlink = Downlink::start(unit_buses, queues_max, &clock, &counts, &mut workers);

        // The origin ends after the driver: until then pollers get the slots being sealed.
        let closing = CancellationToken::new();
        let origin = Origin::new(
            &config,
            clock.clone(),
            counts.clone(),
            display,
            Arc::clone(&live),
            stores.clone(),
            closing.clone(),
        );
        let router = origin::router(Arc::new(origin));
        let server = Server::new(config.http.clone(), &meter, "origin");
        let mut serving = Tasks::default();
        serving.spawn("origin", server.serve(listener, Plain, router, closing.clone()));
        let places = std::iter::once((base, storing)).chain(mirrors.into_iter().flatten());
        let opener = opener(&config, Arc::clone(&global_bus), stores, (&clock, &counts));
        let announcer =
            Announcer { places: places.collect(), ..Announcer::of(&opener, config.node) };
        serving.spawn("announce", announcer.run(closing.clone()));

        let tools = driver::Tools {
            node: config.node,
            house: config.house(),
            clock,
            counts,
            health: health.part("broadcaster_bus"),
            bus: global_bus,
            opener,
            downlink,
            live,
            jobs,
            stored,
            gauge_max: millis(config.gauge_ms_max),
            drain_max: millis(config.drain_ms_max),
        };
        let mut driving = Tasks::default();
        driving.spawn("driver", driver::run(tools, shutdown));
        let ended = tokio::select! {
            Some(ended) = driving.next() => ended,
            Some(ended) = serving.next() => ended.and(Err(anyhow::anyhow!("the origin ended"))),
        };
        drop(driving);
        closing.cancel();
        let drained = shutdown::drain(workers, TASKS_MAX).await;
        ended.and(drained).and(serving.join().await)
    }
}

/// By the number of its store, each mirror's base and how it takes slots; the first store has none,
/// since this process's own base serves it.
fn mirrors(config: &Config) -> Vec<Option<(Base, Arc<Storing>)>> {
    let mirrors = config.mirrors.iter().map(|it| {
        let base = Base { base: it.base.clone(), weight: WEIGHT };
        (!it.base.is_empty()).then(|| (base, Arc::default()))
    });
    std::iter::once(None).chain(mirrors).collect()
}

/// Who finds out how rooms go on.
fn opener(
    config: &Config,
    bus: Arc<dyn Bus>,
    stores: Vec<Arc<dyn SegmentStore>>,
    (clock, counts): (&Clock, &Counts),
) -> Opener {
    Opener {
        bus,
        stores,
        clock: clock.clone(),
        counts: counts.clone(),
        call_max: millis(config.store_ms_max),
        wait_max: millis(config.store_wait_ms_max),
        takeover: Duration::from_secs(config.takeover_s.into()),
    }
}
