//! Puts the parts together.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use broadcaster_core::Packing;
use broadcaster_core::pack::Lexicon;
use bus::Bus;
use channel::ClientTls;
use kit::clock::Clock;
use kit::health::{Health, Part};
use kit::http::{Plain, Server};
use kit::meter::Meter;
use kit::shutdown;
use kit::task::Tasks;
use proto::dictionary::Dictionary;
use proto::head::Base;
use proto::id::UnitId;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;
use crate::bases::{Announcer, Storing};
use crate::config::{Config, millis};
use crate::counts::Counts;
use crate::display::Display;
use crate::downlink::Downlink;
use crate::live::Live;
use crate::opener::Opener;
use crate::origin::Origin;
use crate::press::Printer;
use crate::push::{Pushes, target};
use crate::room_keys::{RoomKeys, Source};
use crate::store::SegmentStore;
use crate::{driver, origin, press};

/// Time for writers and downlinks to end after the driver did.
const TASKS_MAX: Duration = Duration::from_secs(5);
/// Time to connect to the auth service.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Weight of this process's base among the others'.
const WEIGHT: u32 = 100;

/// What a broadcaster is given.
#[derive(Debug)]
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Metrics.
    pub meter: Meter,
    /// Health; the broadcaster adds `broadcaster_bus`, `broadcaster_store` and
    /// `broadcaster_keys`, and `broadcaster_push`
    /// where rooms are pushed.
    pub health: Health,
    /// For when pushes connect again.
    pub seed: u64,
    /// `accepted`, `sealed`, `gauges`, `control`.
    pub global_bus: Arc<dyn Bus>,
    /// `downlink` of every unit.
    pub unit_buses: BTreeMap<UnitId, Arc<dyn Bus>>,
    /// Where rooms are recorded, as far as the configuration says so; without one, none are.
    pub archive: Option<Archive>,
    /// Where segments lie; each gets all of them. Without one, gens start anew with the bus.
    pub stores: Vec<Arc<dyn SegmentStore>>,
    /// Whom it believes to be the auth service, which has the keys of sealed rooms; without it, the
    /// service is asked over plain HTTP only.
    pub auth_tls: Option<ClientTls>,
}

/// A broadcaster that listens and does not serve yet.
#[derive(Debug)]
pub struct Service {
    config: Config,
    parts: Parts,
    printer: Printer,
    listener: TcpListener,
    addr: SocketAddr,
}

impl Service {
    /// Checks the configuration and listens.
    ///
    /// # Errors
    /// When the configuration cannot work, its dictionary cannot be read, or the address is taken.
    pub async fn bind(config: Config, parts: Parts) -> anyhow::Result<Self> {
        config.check().context("the broadcaster's configuration")?;
        let printer = printer(&config)?;
        let listener = TcpListener::bind(config.listen).await;
        let listener = listener.with_context(|| format!("cannot listen on {}", config.listen))?;
        let addr = listener.local_addr()?;
        Ok(Self { config, parts, printer, listener, addr })
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
        let Self { config, parts, printer, listener, .. } = self;
        let Parts { clock, meter, health, seed, global_bus, unit_buses, archive, stores, auth_tls } =
            parts;
        let counts = Counts::new(&meter);
        // The origin ends after the driver: until then pollers get the slots being sealed.
        let closing = CancellationToken::new();
        let mut workers = Tasks::default();
        let source = source(&config, auth_tls, health.part("broadcaster_keys"))?;
        let keys = RoomKeys::start(source, (&clock, &counts), &closing, &mut workers);
        let display = Arc::new(Display::new(config.recent_bytes_max));
        let live = Arc::new(Live::new(config.live_max, Arc::clone(&keys), counts.clone()));
        let storing = Arc::new(Storing::default());
        let mirrors = mirrors(&config);
        let (jobs, jobs_queue) = mpsc::channel(press::JOBS_MAX);
        let (stored_sender, stored) = mpsc::channel(press::JOBS_MAX);
        let tools = press::Tools {
            clock: clock.clone(),
            counts: counts.clone(),
            health: health.part("broadcaster_store"),
            display: Arc::clone(&display),
            live: Arc::clone(&live),
            keys: Arc::clone(&keys),
            printer,
            stores: stores.clone(),
            storing: Arc::clone(&storing),
            archive,
            mirrors: mirrors.iter().map(|it| it.as_ref().map(|it| Arc::clone(&it.1))).collect(),
        };
        press::start(&config, tools, jobs_queue, stored_sender, &mut workers);
        let downlink =
            Downlink::start(unit_buses, config.queues_max, &clock, &counts, &mut workers);
        let targets = target::targets(&config.pushes)?;
        let watched = (&clock, &counts, &health);
        let pushes = Pushes::start(targets, watched, seed, &closing, &mut workers);
        let origin = Origin::new(
            &config,
            clock.clone(),
            counts.clone(),
            display,
            Arc::clone(&live),
            stores.clone(),
            closing.clone(),
        );
        let places = std::iter::once((base, storing)).chain(mirrors.into_iter().flatten());
        let opener = opener(&config, Arc::clone(&global_bus), stores, (&clock, &counts, &keys));
        let announcer =
            Announcer { places: places.collect(), ..Announcer::of(&opener, config.node) };
        let serving = serve(origin, (&config, &meter), listener, announcer, &closing);

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
            keys,
            pushes,
            jobs,
            stored,
            gauge_max: millis(config.gauge_ms_max),
            drain_max: millis(config.drain_ms_max),
        };
        let mut driving = Tasks::default();
        driving.spawn("driver", driver::run(tools, shutdown));
        see_through(driving, serving, workers, &closing).await
    }
}

/// Serves what is shown, and says where.
fn serve(
    origin: Origin,
    (config, meter): (&Config, &Meter),
    listener: TcpListener,
    announcer: Announcer,
    closing: &CancellationToken,
) -> Tasks {
    let router = origin::router(Arc::new(origin));
    let server = Server::new(config.http.clone(), meter, "origin");
    let mut serving = Tasks::default();
    serving.spawn("origin", server.serve(listener, Plain, router, closing.clone()));
    serving.spawn("announce", announcer.run(closing.clone()));
    serving
}

/// Waits for the driver's end, and ends the rest behind it.
async fn see_through(
    mut driving: Tasks,
    mut serving: Tasks,
    workers: Tasks,
    closing: &CancellationToken,
) -> anyhow::Result<()> {
    let ended = tokio::select! {
        Some(ended) = driving.next() => ended,
        Some(ended) = serving.next() => ended.and(Err(anyhow::anyhow!("the origin ended"))),
    };
    drop(driving);
    closing.cancel();
    let drained = shutdown::drain(workers, TASKS_MAX).await;
    ended.and(drained).and(serving.join().await)
}

/// Where the keys of sealed rooms come from.
fn source(config: &Config, tls: Option<ClientTls>, health: Part) -> anyhow::Result<Source> {
    let builder = reqwest::Client::builder().connect_timeout(CONNECT_MAX);
    let builder = match tls {
        Some(tls) => builder.tls_backend_preconfigured(tls.config()),
        None => builder,
    };
    Ok(Source {
        client: builder.build().context("the client of the auth service could not be made")?,
        auth_url: config.auth_url.clone(),
        node: config.node,
        secret: config.secret.clone(),
        health,
    })
}

/// How slots are written.
fn printer(config: &Config) -> anyhow::Result<Printer> {
    let path = &config.dictionary;
    let lexicon = if path.as_os_str().is_empty() {
        None
    } else {
        let cannot = || format!("the dictionary {} cannot be used", path.display());
        let bytes = std::fs::read(path).with_context(cannot)?;
        Some(Lexicon::new(Dictionary::new(bytes.into()).with_context(cannot)?))
    };
    let packing = Packing { encoding: config.encoding, lexicon };
    Ok(Printer { packing, writes_hls: config.hls })
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
    (clock, counts, keys): (&Clock, &Counts, &Arc<RoomKeys>),
) -> Opener {
    Opener {
        bus,
        stores,
        clock: clock.clone(),
        counts: counts.clone(),
        keys: Arc::clone(keys),
        call_max: millis(config.store_ms_max),
        wait_max: millis(config.store_wait_ms_max),
        takeover: Duration::from_secs(config.takeover_s.into()),
    }
}
