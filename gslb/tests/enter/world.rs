//! A running auth service and gslb, a bus between them, and link nodes that report.

mod asking;
mod parts;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use auth_core::app::App;
use auth_core::secret::Secret;
use bus::{Bus, FaultyBus, Limits, MemoryBus, PartitionNo, Publish, topic};
use channel::{DevCerts, ServerTls};
use gslb::{Config, LoadTable, MemoryTable, Parts, Service};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::control::Fact;
use proto::enter::{EnterRequest, EnterResponse};
use proto::head::Base;
use proto::id::{AppId, NodeId};
use proto::load::{Load, LoadReport};
use tempfile::TempDir;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

pub(crate) use asking::check;
pub(crate) use parts::{api_key, node_of, report, secret, sign, ticket, ticket_with};
use parts::{apps, nodes};

pub(crate) const APP: AppId = AppId(1);
pub(crate) const OTHER_APP: AppId = AppId(2);
pub(crate) const GSLB: NodeId = NodeId(1);
pub(crate) const OPERATOR_KEY: &str = "the key of this test's operator, long enough";
/// Versions of HTTP, as TLS names them.
pub(crate) const BOTH: &[&[u8]] = &[b"h2", b"http/1.1"];
/// Any wait for something that will happen.
const DEADLINE: Duration = Duration::from_secs(30);

/// Everything that runs.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) meter: Meter,
    pub(crate) health: Health,
    pub(crate) client: reqwest::Client,
    pub(crate) gslb: SocketAddr,
    pub(crate) table: Arc<dyn LoadTable>,
    /// Length of an epoch of the auth service to be started.
    pub(crate) interval_s: u32,
    /// Whether gslbs to be started serve HTTPS.
    pub(crate) tls: bool,
    /// What gslbs to be started know of.
    pub(crate) apps: Vec<App>,
    /// The bus as gslbs see it.
    pub(crate) cut: Arc<FaultyBus>,
    pub(crate) dir: TempDir,
    pub(crate) bus: Arc<MemoryBus>,
    certs: DevCerts,
    auth: SocketAddr,
    collector: Option<SocketAddr>,
    shutdown: CancellationToken,
    tasks: Tasks,
}

/// A link node that reports every 20 ms until it is dropped.
pub(crate) struct Link {
    pub(crate) load: Arc<Mutex<Load>>,
    _tasks: Tasks,
}

impl World {
    /// Auth and gslb are up; nothing reports yet.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let mut world = Self::start_without_auth(SocketAddr::from(([127, 0, 0, 1], 0)));
        world.start_auth(world.auth).await;
        world.start_gslb(change).await;
        world
    }

    /// The app has a file of ticket keys besides.
    pub(crate) async fn start_with_jwks(text: &str) -> Self {
        let mut world = Self::start_without_auth(SocketAddr::from(([127, 0, 0, 1], 0)));
        world.apps[0].jwks = world.jwks();
        std::fs::write(world.jwks(), text).unwrap();
        world.start_auth(world.auth).await;
        world.start_gslb(|_| {}).await;
        world
    }

    /// The file of ticket keys of [`APP`].
    pub(crate) fn jwks(&self) -> PathBuf {
        self.dir.path().join("jwks.json")
    }

    /// Nothing runs; gslbs will look for auth at `auth`.
    pub(crate) fn start_without_auth(auth: SocketAddr) -> Self {
        let clock = Clock::system();
        let dir = TempDir::new().unwrap();
        let certs = DevCerts::load_or_create(dir.path(), &["127.0.0.9"]).unwrap();
        let client = client_builder(&certs, BOTH).build().unwrap();
        let bus = MemoryBus::new(clock.clone(), Limits::default());
        Self {
            apps: apps(),
            cut: FaultyBus::new(Arc::clone(&bus) as Arc<dyn Bus>),
            bus,
            clock,
            meter: Meter::new(),
            health: Health::default(),
            client,
            gslb: auth,
            table: MemoryTable::new(),
            interval_s: 600,
            tls: false,
            certs,
            dir,
            auth,
            collector: None,
            shutdown: CancellationToken::new(),
            tasks: Tasks::default(),
        }
    }

    pub(crate) async fn start_auth(&mut self, listen: SocketAddr) {
        let config = auth::Config {
            listen,
            data: self.dir.path().join("auth"),
            interval_s: self.interval_s,
            operator_keys: vec![Secret::new(OPERATOR_KEY.to_owned())],
            seal: Secret::new("seals the masters of this test's auth service".to_owned()),
            ..auth::Config::default()
        };
        let parts = auth::Parts {
            clock: self.clock.clone(),
            meter: self.meter.clone(),
            health: self.health.clone(),
            global_bus: Arc::clone(&self.bus) as Arc<dyn Bus>,
            nodes: nodes(),
            apps: apps().into(),
            tls: Some(self.server_tls()),
        };
        let service = auth::Service::bind(config, parts).await.unwrap();
        self.auth = service.addr();
        self.tasks.spawn("auth", service.run(self.shutdown.clone()));
    }

    /// Starts a gslb beside those that run; [`World::enter`] asks the newest.
    pub(crate) async fn start_gslb(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            node: GSLB,
            secret: secret(GSLB),
            auth_url: format!("https://{}", self.auth),
            data: self.dir.path().join("gslb"),
            operator_keys: vec![Secret::new(OPERATOR_KEY.to_owned())],
            ..Config::default()
        };
        config.collector.listen = config.listen;
        // A busy machine starves the links' reports for longer than the usual lease.
        config.lease_ms = 1_000;
        change(&mut config);
        let parts = Parts {
            clock: self.clock.clone(),
            meter: self.meter.clone(),
            health: self.health.clone(),
            seed: 7,
            apps: self.apps.clone().into(),
            nodes: nodes(),
            global_bus: Arc::clone(&self.cut) as Arc<dyn Bus>,
            load_table: Arc::clone(&self.table),
            auth_tls: self.certs.client().unwrap(),
            tls: self.tls.then(|| self.server_tls()),
        };
        let service = Service::bind(config, parts).await.unwrap();
        self.gslb = service.addr();
        self.collector = service.collector_addr().or(self.collector);
        self.tasks.spawn("gslb", service.run(self.shutdown.clone()));
    }

    /// A node under lease with 1,000 places.
    pub(crate) async fn link(&self, node: u32) -> Link {
        self.link_that(node, |_| {}).await
    }

    /// The same, with something of its reports changed.
    pub(crate) async fn link_that(
        &self,
        node: u32,
        change: impl Fn(&mut LoadReport) + Send + 'static,
    ) -> Link {
        let load = Arc::new(Mutex::new(Load { sessions_max: 1_000, ..Load::default() }));
        let mut tasks = Tasks::default();
        let (socket, collector) = (self.socket().await, self.collector.unwrap());
        let (start, shared) = (self.clock.wall(), Arc::clone(&load));
        tasks.spawn("link", async move {
            let mut timer = tokio::time::interval(Duration::from_millis(20));
            for counter in 0.. {
                timer.tick().await;
                let mut report = report(node, start, counter, *shared.lock());
                change(&mut report);
                socket.send_to(&sign(&report, &secret(report.node)), collector).await?;
            }
            Ok(())
        });
        Link { load, _tasks: tasks }
    }

    /// Tells everything to end, and waits for it; the bus and the disk stay.
    pub(crate) async fn stop(&mut self) {
        std::mem::take(&mut self.shutdown).cancel();
        for _ in 0..self.tasks.len() {
            let ended = tokio::time::timeout(DEADLINE, self.tasks.next()).await.unwrap();
            assert!(ended.is_some_and(|it| it.is_ok()));
        }
    }

    pub(crate) async fn send(&self, datagram: &[u8]) {
        self.socket().await.send_to(datagram, self.collector.unwrap()).await.unwrap();
    }

    /// Segment bases are announced, keys are there, and nodes report.
    pub(crate) async fn ready(&self) {
        let bases = vec![Base { base: "https://cdn.example".to_owned(), weight: 1 }];
        self.publish(Fact::Bases { bases }).await;
        self.until(async || self.health.failures().is_empty()).await;
        let request = EnterRequest { ticket: ticket("ready"), ..EnterRequest::default() };
        let has_bases = async |it: reqwest::Response| {
            it.status() == 200 && !it.json::<EnterResponse>().await.unwrap().segments.is_empty()
        };
        self.until(async || has_bases(self.ask(&request).await).await).await;
    }

    pub(crate) async fn publish(&self, fact: Fact) {
        let record = Publish {
            topic: topic::control(),
            partition: PartitionNo(0),
            term: None,
            key: Some(fact.key().into()),
            value: fact.encode().into(),
        };
        let published = self.bus.publish(vec![record]).await;
        assert!(published.iter().all(Result::is_ok), "{published:?}");
    }

    /// Looks every few milliseconds until it is so.
    pub(crate) async fn until(&self, mut is_so: impl AsyncFnMut() -> bool) {
        let look = async {
            let mut timer = tokio::time::interval(Duration::from_millis(5));
            while !is_so().await {
                timer.tick().await;
            }
        };
        let failures = || self.health.failures();
        tokio::time::timeout(DEADLINE, look).await.unwrap_or_else(|_| panic!("{:?}", failures()));
    }

    /// A client of its own that offers these versions over TLS and trusts the services.
    pub(crate) fn client_builder(&self, alpn: &[&[u8]]) -> reqwest::ClientBuilder {
        client_builder(&self.certs, alpn)
    }

    fn server_tls(&self) -> ServerTls {
        self.certs.server(&[b"h2", b"http/1.1"]).unwrap()
    }

    async fn socket(&self) -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").await.unwrap()
    }
}

fn client_builder(certs: &DevCerts, alpn: &[&[u8]]) -> reqwest::ClientBuilder {
    let tls = certs.client().unwrap().with_alpn(alpn);
    reqwest::Client::builder().tls_backend_preconfigured(tls.config())
}
