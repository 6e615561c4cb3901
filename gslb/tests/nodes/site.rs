//! A running system with one link of its own, to which tests add nodes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use auth_core::node::{NodeRole, NodeSecret};
use auth_core::policy::Policies;
use auth_core::secret::Secret;
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::quota::MemoryQuota;
use kit::task::Tasks;
use link::{Binder, ListenerConfig};
use proto::address::{Address, Carrier, Transport};
use proto::control::{RoomSettings, Segments};
use proto::enter::{EnterRequest, EnterResponse};
use proto::frame::Path;
use proto::id::{NodeId, RoomId, UnitId, ViewerId};
use sdk::{Client, Events, Options};
use stack::crowd::{signer, ticket_source};
use stack::{Addrs, Business, Config, Identity, Shared, Stack, Trust};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The node that tests add.
pub(crate) const NODE: NodeId = NodeId(50);
/// A second one.
pub(crate) const OTHER_NODE: NodeId = NodeId(51);
/// Any wait for something that will happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// How long the system lets a silent node live: a busy machine starves everybody alike.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// A link that a test added.
pub(crate) struct Added {
    pub(crate) addresses: Vec<Address>,
    pub(crate) reserve: Vec<Address>,
    pub(crate) meter: Meter,
    /// Drains it.
    pub(crate) drain: CancellationToken,
}

/// Everything that runs.
pub(crate) struct Site {
    pub(crate) addrs: Addrs,
    pub(crate) collector: SocketAddr,
    pub(crate) clock: Clock,
    pub(crate) room: RoomId,
    pub(crate) shared: Shared,
    data: TempDir,
    trust: Trust,
    identity: Identity,
    pub(crate) business: Business,
    http: reqwest::Client,
    shutdown: CancellationToken,
    tasks: Tasks,
}

impl Site {
    pub(crate) async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let data = TempDir::new().unwrap();
        let clock = Clock::system();
        let mut config = Config::demo(data.path());
        config.gslb.rate.enabled = false;
        config.gslb.lease_ms = 3_000;
        let unit = config.link.unit;
        config.node.extend([NODE, OTHER_NODE].map(|node| NodeSecret {
            node,
            role: NodeRole::Link,
            secret: Secret::new(secret(node)),
            unit,
            hosts: vec!["127.0.0.1".to_owned()],
        }));
        change(&mut config);
        let stack = Box::pin(Stack::bind(config, clock.clone(), 7)).await.unwrap();
        let (addrs, trust) = (stack.addrs().clone(), stack.trust().clone());
        let (identity, shared) = (stack.identity().clone(), stack.shared().clone());
        let collector = stack.collector_addr().unwrap();
        let (mut tasks, shutdown) = (Tasks::default(), CancellationToken::new());
        tasks.spawn("stack", Box::pin(stack.run(shutdown.clone())));

        let room = RoomId::parse("demo").unwrap();
        let settings = RoomSettings {
            segments: Segments::Always,
            viewer_burst: 1000,
            ..RoomSettings::default()
        };
        let http = sdk::http::client(&trust.tls).unwrap();
        let business = Business::new(http.clone(), addrs.api.clone(), identity.api_key.clone());
        business.create_room(&room, &settings).await.unwrap();
        let site = Self {
            addrs,
            collector,
            clock,
            room,
            shared,
            data,
            trust,
            identity,
            business,
            http,
            shutdown,
            tasks,
        };
        within(site.until(|it| !it.is_empty())).await;
        site
    }

    /// Another link of the unit, in this process.
    pub(crate) async fn add_link(&mut self, mut config: link::Config) -> Added {
        config.secret = Secret::new(secret(config.node));
        config.data = self.data.path().join(format!("link-{}", config.node));
        config.auth_url.clone_from(&self.addrs.auth);
        config.collectors = vec![self.collector.to_string()];
        config.control_ms_max = 10_000;
        let meter = Meter::new();
        let parts = link::Parts {
            clock: self.clock.clone(),
            meter: meter.clone(),
            health: Health::default(),
            seed: 9,
            global_bus: Arc::clone(&self.shared.bus),
            unit_bus: Arc::clone(&self.shared.bus),
            quota: Arc::new(MemoryQuota::new(100)),
            policies: Policies::default(),
            auth_tls: self.trust.tls.clone(),
            tls: None,
            national: None,
        };
        let service = link::Service::bind(config, parts).await.unwrap();
        let (addresses, reserve) = (service.addrs(), service.reserve());
        let drain = self.shutdown.child_token();
        self.tasks.spawn("another link", service.run(drain.clone()));
        Added { addresses, reserve, meter, drain }
    }

    /// The addresses of one answer, for a viewer over plain TCP.
    pub(crate) async fn ask(&self) -> Vec<Address> {
        let client = proto::enter::Client {
            transports: vec![Transport::Tcp],
            ..proto::enter::Client::default()
        };
        let ticket = self.tickets("asker")();
        let request = EnterRequest { ticket, client, ..EnterRequest::default() };
        let sent = self.http.post(&self.addrs.enter).json(&request).send();
        let response = within(sent).await.unwrap();
        // Before the keys are there it is a refusal.
        let answer = response.json::<EnterResponse>().await.map(|it| it.addresses);
        answer.unwrap_or_default().into_iter().map(|it| it.address).collect()
    }

    /// Asks until an answer is so.
    pub(crate) async fn until(&self, is_so: impl Fn(&[Address]) -> bool) {
        while !is_so(&self.ask().await) {}
    }

    /// A viewer with the real SDK over plain TCP.
    pub(crate) fn viewer(&self, account: &str) -> (Client, Events) {
        let mut options = Options::new(
            self.addrs.enter.clone(),
            Arc::new(self.tickets(account)),
            self.http.clone(),
            self.clock.clone(),
            kit::seed::fresh().unwrap(),
        );
        options.rooms = vec![(self.room.clone(), Path::Push)];
        options.transports = vec![Transport::Tcp];
        Client::start(options)
    }

    /// Ends everything well.
    pub(crate) async fn end(self) {
        self.shutdown.cancel();
        within(self.tasks.join()).await.unwrap();
    }

    fn tickets(&self, account: &str) -> impl Fn() -> String + Send + Sync + use<> {
        let app = self.identity.app();
        let account = ViewerId::parse(account).unwrap();
        let signer = Arc::new(signer(&app).unwrap());
        ticket_source(&signer, &app, &account, &self.room, &self.clock)
    }
}

/// A link that listens for plain TCP, in a machine room by which answers tell it.
pub(crate) fn link_config(machine_room: &str) -> link::Config {
    link::Config {
        node: NODE,
        unit: UnitId(0),
        listeners: vec![listener(machine_room)],
        handshakes_per_s_max: 0,
        ..link::Config::default()
    }
}

pub(crate) fn listener(machine_room: &str) -> ListenerConfig {
    ListenerConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        transport: Transport::Tcp,
        host: "127.0.0.1".to_owned(),
        port: 0,
        carrier: Carrier::Bgp,
        machine_room: machine_room.to_owned(),
        reserve: false,
        binder: Binder::Auto,
    }
}

pub(crate) fn secret(node: NodeId) -> String {
    format!("the secret of node {node}, which is long enough")
}

/// Whether an answer names a machine room.
pub(crate) fn names(answer: &[Address], machine_room: &str) -> bool {
    answer.iter().any(|it| it.machine_room == machine_room)
}

pub(crate) async fn within<T>(happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, happens).await.expect("it never happened")
}
