//! A running service, and everything around it.

use std::sync::Arc;
use std::time::Duration;

use auth::{Config, Parts, Service};
use auth_core::app::App;
use auth_core::keyring::LinkKeyring;
use auth_core::link_id;
use auth_core::node::{NodeRole, NodeSecret};
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::revocation::Revocations;
use auth_core::secret::Secret;
use auth_core::token::{Claims, Scope, TokenRefusal, verify};
use bus::{At, Bus, Limits, MemoryBus, PartitionNo, Publish, Tail, Tailed, topic};
use channel::DevCerts;
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::task::Tasks;
use proto::control::{EpochFact, Fact};
use proto::enter::Problem;
use proto::id::{AppId, NodeId, RoomId, UnitId, ViewerId};
use proto::keys::LinkKeysRequest;
use proto::time::Wall;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

pub(crate) const T: u32 = 600;
pub(crate) const LINK: NodeId = NodeId(7);
pub(crate) const OTHER_LINK: NodeId = NodeId(8);
pub(crate) const GSLB: NodeId = NodeId(1);
pub(crate) const BROADCASTER: NodeId = NodeId(4);
pub(crate) const ADDRESS: &str = "link-07.example:443";
pub(crate) const OPERATOR_KEY: &str = "the key of an operator, long enough for anyone";
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A running service, and everything around it.
pub(crate) struct World {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) certs: DevCerts,
    pub(crate) clock: Clock,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) meter: Meter,
    pub(crate) health: Health,
    pub(crate) client: reqwest::Client,
    pub(crate) base: String,
    pub(crate) shutdown: CancellationToken,
    pub(crate) tasks: Tasks,
}

impl World {
    pub(crate) async fn start() -> Self {
        let clock = early_in_an_epoch();
        let bus = memory_bus(&clock);
        Self::start_on(clock, bus).await
    }

    pub(crate) async fn start_on(clock: Clock, bus: Arc<dyn Bus>) -> Self {
        Self::start_in(Arc::new(TempDir::new().unwrap()), clock, bus).await
    }

    /// Another service with the same files and the same clock.
    pub(crate) async fn beside(&self, bus: Arc<dyn Bus>) -> Self {
        Self::start_in(Arc::clone(&self.dir), self.clock.clone(), bus).await
    }

    async fn start_in(dir: Arc<TempDir>, clock: Clock, bus: Arc<dyn Bus>) -> Self {
        let mut world = Self::new(dir, clock, bus);
        let service = Service::bind(world.config(), world.parts()).await.unwrap();
        world.base = format!("https://localhost:{}", service.addr().port());
        world.tasks.spawn("auth", service.run(world.shutdown.clone()));
        world
    }

    /// Everything but the service.
    pub(crate) fn new(dir: Arc<TempDir>, clock: Clock, bus: Arc<dyn Bus>) -> Self {
        let certs = DevCerts::load_or_create(dir.path(), &[]).unwrap();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(certs.client().unwrap().config())
            .build()
            .unwrap();
        Self {
            dir,
            certs,
            clock,
            bus,
            meter: Meter::new(),
            health: Health::default(),
            client,
            base: String::new(),
            shutdown: CancellationToken::new(),
            tasks: Tasks::default(),
        }
    }

    pub(crate) async fn restart(self) -> Self {
        let bus = Arc::clone(&self.bus);
        self.restart_on(bus).await
    }

    /// Ends in order, and starts again with another bus.
    pub(crate) async fn restart_on(mut self, bus: Arc<dyn Bus>) -> Self {
        self.shutdown.cancel();
        self.tasks.next().await.unwrap().unwrap();
        Self::start_in(self.dir, self.clock, bus).await
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            data: self.dir.path().join("auth"),
            seal: Secret::new("seals the masters of this test".to_owned() + "'s services"),
            operator_keys: vec![Secret::new(OPERATOR_KEY.to_owned())],
            bus_ms_max: 50,
            ..Config::default()
        }
    }

    pub(crate) fn parts(&self) -> Parts {
        let node = |node, role| NodeSecret {
            node,
            role,
            secret: Secret::new(secret(node)),
            unit: UnitId(1),
            hosts: vec![format!("link-{:02}.example", node.0)],
        };
        let app: App = serde_json::from_str(r#"{"id": 1}"#).unwrap();
        Parts {
            clock: self.clock.clone(),
            meter: self.meter.clone(),
            health: self.health.clone(),
            global_bus: Arc::clone(&self.bus),
            nodes: [
                node(GSLB, NodeRole::Gslb),
                node(BROADCASTER, NodeRole::Broadcaster),
                node(LINK, NodeRole::Link),
                node(OTHER_LINK, NodeRole::Link),
            ]
            .into(),
            apps: [app].into(),
            tls: Some(self.certs.server(&[b"h2", b"http/1.1"]).unwrap()),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn epoch(&self) -> u32 {
        epoch_of(&self.clock)
    }

    pub(crate) async fn masters(&self, node: NodeId) -> reqwest::Response {
        let request = self.client.post(self.url("/v1/keys/masters"));
        let request = request.header("x-barrage-node", node.0).bearer_auth(secret(node));
        request.send().await.unwrap()
    }

    /// `node` asks for the keys of `asked`.
    pub(crate) async fn link_keys(&self, node: NodeId, asked: NodeId) -> reqwest::Response {
        self.post_link(node, asked, &secret(node)).await
    }

    pub(crate) async fn post_link(
        &self,
        node: NodeId,
        asked: NodeId,
        secret: &str,
    ) -> reqwest::Response {
        let addresses = vec![ADDRESS.to_owned()];
        let body = LinkKeysRequest { node: asked, unit: UnitId(1), addresses };
        let request = self.client.post(self.url("/v1/keys/link")).json(&body);
        let request = request.header("x-barrage-node", node.0).bearer_auth(secret);
        request.send().await.unwrap()
    }

    /// Every epoch on `control` in its order, once `last` is among them.
    pub(crate) async fn epochs_until(&self, last: u32) -> Vec<EpochFact> {
        let control = topic::control();
        let partitions = Tail::all(&control);
        let bus = Arc::clone(&self.bus);
        let mut tail = Tail::open(bus, control, partitions, At::Oldest).await.unwrap();
        let mut facts: Vec<EpochFact> = Vec::new();
        while facts.iter().all(|it| it.epoch != last) {
            let tailed = tokio::time::timeout(DEADLINE, tail.next(100)).await.unwrap().unwrap();
            let Tailed::Records(records) = tailed else { panic!("control keeps every key") };
            for record in records {
                if let Ok(Fact::Epoch(fact)) = Fact::decode(&record.value) {
                    facts.push(fact);
                }
            }
        }
        facts.sort_by_key(|it| it.epoch);
        facts
    }

    /// Waits until the service says that it can do its job.
    pub(crate) async fn ready(&self) {
        self.health_becomes(|failures| failures.is_empty()).await;
    }

    /// Waits until the service says that it cannot.
    pub(crate) async fn failing(&self) {
        self.health_becomes(|failures| !failures.is_empty()).await;
    }

    pub(crate) async fn failing_with(&self, why: &str) {
        self.health_becomes(|failures| failures.iter().any(|(_, it)| it == why)).await;
    }

    pub(crate) async fn health_becomes(&self, is_it: impl Fn(&[(&'static str, String)]) -> bool) {
        let becomes = async {
            while !is_it(&self.health.failures()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, becomes).await.unwrap();
    }

    /// Waits until this is the newest fact of its key on `control`.
    pub(crate) async fn on_control(&self, fact: &Fact) {
        let control = topic::control();
        let partitions = Tail::all(&control);
        let bus = Arc::clone(&self.bus);
        let mut tail = Tail::open(bus, control, partitions, At::Oldest).await.unwrap();
        let mut newest = None;
        while newest.as_ref() != Some(fact) {
            let tailed = tokio::time::timeout(DEADLINE, tail.next(100)).await.unwrap().unwrap();
            let Tailed::Records(records) = tailed else { panic!("control keeps every key") };
            let facts = records.iter().filter_map(|it| Fact::decode(&it.value).ok());
            newest = facts.filter(|it| it.key() == fact.key()).last().or(newest);
        }
    }

    /// A service with a folder of its own, into which the other's masters were copied.
    pub(crate) async fn start_with_copy(other: &Self) -> Self {
        let dir = Arc::new(TempDir::new().unwrap());
        let world = Self::new(Arc::clone(&dir), other.clock.clone(), Arc::clone(&other.bus));
        world.copy_masters(other);
        Self::start_in(dir, other.clock.clone(), Arc::clone(&other.bus)).await
    }

    pub(crate) fn copy_masters(&self, other: &Self) {
        let file = "auth/masters.sealed";
        let bytes = std::fs::read(other.dir.path().join(file)).unwrap();
        kit::private::write(&self.dir.path().join(file), &bytes).unwrap();
    }

    /// Waits until a part warns in these words.
    pub(crate) async fn warning(&self, why: &str) {
        let warns = async {
            while !self.health.warnings().iter().any(|(_, it)| it.contains(why)) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, warns).await.unwrap();
    }

    /// Waits until this service draws the epochs, or until it does not.
    pub(crate) async fn leading(&self, leads: bool) {
        let line = format!("auth_leads {}\n", u8::from(leads));
        let becomes = async {
            while !self.meter.render().contains(&line) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, becomes).await.unwrap();
    }

    pub(crate) fn claims(&self, ahead: u32) -> Claims {
        Claims {
            app: AppId(1),
            link: link_id(ADDRESS),
            iat_s: (self.epoch() + ahead) * T + 1,
            ttl_s: 60,
            flags: 0,
            caps: 0,
            jti: [1; 16],
            account: ViewerId::parse("user-42").unwrap(),
            device: None,
            rooms: RoomId::parse("room-1").unwrap().into(),
        }
    }
}

pub(crate) fn verify_on(
    keys: &LinkKeyring,
    address: &str,
    text: &str,
    now: Wall,
) -> Result<Claims, TokenRefusal> {
    let revocations = Revocations::new(1);
    let policies = Policies::default();
    let links = [link_id(address)];
    let scope = Scope { keys, links: &links, policies: &policies, revocations: &revocations };
    verify(text, &scope, &mut Replays::new(1), now)
}

pub(crate) async fn check(response: reqwest::Response, status: u16, code: &str) {
    assert_eq!(response.status().as_u16(), status);
    let problem: Problem = response.json().await.unwrap();
    assert_eq!(problem.code, code);
}

pub(crate) async fn publish(bus: &dyn Bus, fact: Fact) {
    let record = Publish {
        topic: topic::control(),
        partition: PartitionNo(0),
        term: None,
        key: Some(fact.key().into()),
        value: fact.encode().into(),
    };
    assert!(bus.publish(vec![record]).await[0].is_ok());
}

pub(crate) fn memory_bus(clock: &Clock) -> Arc<dyn Bus> {
    MemoryBus::new(clock.clone(), Limits::default())
}

/// So that no epoch ends while a test runs.
pub(crate) fn early_in_an_epoch() -> Clock {
    let clock = Clock::system();
    let into_ms = clock.wall().0 % (u64::from(T) * 1000);
    clock.step(-i64::try_from(into_ms).unwrap());
    clock
}

pub(crate) fn epoch_of(clock: &Clock) -> u32 {
    u32::try_from(clock.wall().unix_s() / u64::from(T)).unwrap()
}

pub(crate) fn secret(node: NodeId) -> String {
    format!("the secret of node {node}, long enough for anyone")
}
