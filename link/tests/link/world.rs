//! Everything around a link: bus, certificates, the auth service's keys, rooms.

mod auth;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use auth_core::derive::link_id;
use auth_core::keyring::Keyring;
use auth_core::policy::Policies;
use auth_core::secret::Secret;
use auth_core::token::{Claims, flag};
use bus::memory::{Limits, MemoryBus};
use bus::tail::{Tail, Tailed};
use bus::{At, Bus, Fault, FaultyBus, Publish, Topic};
use channel::{DevCerts, ServerTls};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::quota::{MemoryQuota, Quota};
use kit::task::Tasks;
use link::{Binder, Config, ListenerConfig, Parts, Service};
use proto::address::{Address, Carrier, Transport};
use proto::control::{Fact, RoomFact, RoomSettings};
use proto::envelope::{
    Reply, ReplyBatch, RoomBatch, RoomEntry, RoomEvent, UplinkBatch, UplinkEntry,
};
use proto::id::{AppId, Gen, ItemId, NodeId, RoomId, SenderRef, Seq, SlotNo, UnitId, ViewerId};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::time::Wall;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use auth::{keyring, serve_keys};

pub(crate) const APP: AppId = AppId(1);
pub(crate) const NODE: NodeId = NodeId(7);
pub(crate) const UNIT: UnitId = UnitId(3);
pub(crate) const SECRET: &str = "a secret of at least thirty-two bytes";

/// Nothing in these tests takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) clock: Clock,
    /// The bus behind the faults; the unit's bus has none.
    pub(crate) bus: Arc<MemoryBus>,
    global_bus: Arc<FaultyBus>,
    pub(crate) certs: DevCerts,
    pub(crate) national: DevCerts,
    /// What the listeners show.
    pub(crate) tls: ServerTls,
    /// What all links share.
    pub(crate) quota: Arc<MemoryQuota>,
    pub(crate) meter: Meter,
    pub(crate) health: Health,
    keyring: Arc<Keyring>,
    config: Config,
    addresses: BTreeMap<&'static str, Address>,
    shutdown: CancellationToken,
    /// Drains one link, in the order of their starts.
    drains: Vec<CancellationToken>,
    tasks: Tasks,
    uplinks: Tail,
    jti: AtomicU64,
    _certs_dir: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Limits::default(), |_| {}).await
    }

    pub(crate) async fn with(limits: Limits, change: impl FnOnce(&mut Config)) -> Self {
        Self::with_bus(limits, change, |bus| bus).await
    }

    /// With something of the test's own around the global bus.
    pub(crate) async fn with_bus(
        limits: Limits,
        change: impl FnOnce(&mut Config),
        wrap: impl FnOnce(Arc<dyn Bus>) -> Arc<dyn Bus>,
    ) -> Self {
        let clock = Clock::system();
        let bus = MemoryBus::new(clock.clone(), limits);
        let certs_dir = tempfile::tempdir().unwrap();
        let certs = DevCerts::load_or_create(certs_dir.path(), &[]).unwrap();
        let national_dir = certs_dir.path().join("national");
        let national = DevCerts::load_or_create_national(&national_dir, &[]).unwrap();
        let keyring = Arc::new(keyring(clock.wall()));
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::default();
        let auth_url = serve_keys(&certs, &keyring, &shutdown, &mut tasks).await;

        let mut config = Config {
            node: NODE,
            unit: UNIT,
            secret: Secret::new(SECRET.to_owned()),
            data: certs_dir.path().join("link"),
            auth_url,
            // A busy machine may stand still for a while.
            control_ms_max: 10_000,
            listeners: vec![
                listener(Transport::Tcp, Binder::None),
                listener(Transport::Tls, Binder::Required),
                listener(Transport::Ws, Binder::None),
                listener(Transport::Wss, Binder::None),
                listener(Transport::National, Binder::Required),
                listener(Transport::Quic, Binder::Required),
            ],
            ..Config::default()
        };
        change(&mut config);
        let uplink = bus::topic::uplink(UNIT);
        let uplinks = Tail::open(bus.clone(), uplink.clone(), Tail::all(&uplink), At::Oldest);
        let mut world = Self {
            uplinks: uplinks.await.unwrap(),
            global_bus: FaultyBus::new(wrap(Arc::clone(&bus) as Arc<dyn Bus>)),
            clock,
            bus,
            tls: certs.server(&[]).unwrap(),
            certs,
            national,
            quota: Arc::new(MemoryQuota::new(1000)),
            meter: Meter::new(),
            health: Health::default(),
            keyring,
            config: config.clone(),
            addresses: BTreeMap::new(),
            shutdown,
            drains: Vec::new(),
            tasks,
            jti: AtomicU64::new(0),
            _certs_dir: certs_dir,
        };
        world.addresses = world.start(config).await;
        world.until("the link is healthy", || world.health.failures().is_empty()).await;
        world.open_room("r").await;
        world
    }

    /// Starts a link; gives its addresses by transport.
    async fn start(&mut self, config: Config) -> BTreeMap<&'static str, Address> {
        let parts = Parts {
            clock: self.clock.clone(),
            meter: self.meter.clone(),
            health: self.health.clone(),
            seed: 1,
            global_bus: Arc::clone(&self.global_bus) as Arc<dyn Bus>,
            unit_bus: Arc::clone(&self.bus) as Arc<dyn Bus>,
            quota: Arc::clone(&self.quota) as Arc<dyn Quota>,
            policies: Policies::default(),
            auth_tls: self.certs.client().unwrap(),
            tls: Some(self.tls.clone()),
            national: Some(self.national.server(&[]).unwrap()),
        };
        let service = Service::bind(config, parts).await.unwrap();
        let addresses = service.addrs().into_iter().map(|it| (it.transport.name(), it)).collect();
        let drain = self.shutdown.child_token();
        self.drains.push(drain.clone());
        self.tasks.spawn("link", service.run(drain));
        addresses
    }

    /// Starts another link of the unit on the same buses; clients connect to it from now on.
    pub(crate) async fn move_to_another_link(&mut self) {
        let number = u32::try_from(self.drains.len()).unwrap();
        let node = NodeId(self.config.node.0 + number);
        let data = self.config.data.with_file_name(format!("another-{number}"));
        let config = Config { node, data, ..self.config.clone() };
        self.addresses = self.start(config).await;
        self.until("the other link is healthy", || self.health.failures().is_empty()).await;
    }

    /// Ends the link and the auth service, and starts the link again at the same addresses, with a
    /// change.
    pub(crate) async fn restart(&mut self, change: impl FnOnce(&mut Config)) {
        let kept = self.config.data.join("link-keys.sealed");
        self.until("the keys are kept", || kept.exists()).await;
        self.shutdown.cancel();
        while let Some(ended) = self.tasks.next().await {
            ended.unwrap();
        }
        self.shutdown = CancellationToken::new();
        for listener in &mut self.config.listeners {
            listener.listen.set_port(self.addresses[listener.transport.name()].port);
        }
        change(&mut self.config);
        self.start(self.config.clone()).await;
    }

    /// The link fails: nothing of it goes on, and nobody is told.
    pub(crate) fn fail(&mut self) {
        self.tasks = Tasks::default();
    }

    /// Breaks or mends the global bus.
    pub(crate) fn set_bus(&self, fault: Fault) {
        self.global_bus.set(fault);
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        let waited = tokio::time::timeout(PATIENCE, async {
            while !holds() {
                ticks.tick().await;
            }
        });
        assert!(waited.await.is_ok(), "{what}");
    }

    /// Opens a room, and waits until a viewer can join it.
    pub(crate) async fn open_room(&self, name: &str) {
        self.tell(Fact::Room(RoomFact {
            app: APP,
            room: room(name),
            version: 1,
            open: true,
            // Nobody is refused for what a room shows, unless a test says so.
            settings: RoomSettings { items_per_s: 2000, ..RoomSettings::default() },
        }))
        .await;
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        for _ in 0..1000 {
            let mut probe = self.connect("tcp").await;
            if probe.login(&self.token("tcp", "probe", name), name).await.is_in() {
                return;
            }
            ticks.tick().await;
        }
        panic!("the room {name} did not open");
    }

    pub(crate) fn address(&self, transport: &str) -> &Address {
        &self.addresses[transport]
    }

    pub(crate) async fn connect(&self, transport: &str) -> Client {
        Client::connect(self, transport).await
    }

    /// A client in the room, past its login.
    pub(crate) async fn enter(&self, transport: &str, viewer: &str, name: &str) -> Client {
        let mut client = self.connect(transport).await;
        let login = client.login(&self.token(transport, viewer, name), name).await;
        assert!(login.is_in(), "{login:?}");
        client
    }

    pub(crate) fn token(&self, transport: &str, viewer: &str, name: &str) -> String {
        self.token_with(transport, viewer, name, |_| {})
    }

    pub(crate) fn token_with(
        &self,
        transport: &str,
        viewer: &str,
        name: &str,
        change: impl FnOnce(&mut Claims),
    ) -> String {
        let mut claims = Claims {
            app: APP,
            link: link_id(&self.address(transport).authority()),
            iat_s: u32::try_from(self.clock.wall().unix_s()).unwrap(),
            ttl_s: 60,
            flags: flag::SINGLE_USE | flag::MAY_SEND,
            caps: 0,
            jti: u128::from(self.jti.fetch_add(1, Ordering::Relaxed)).to_be_bytes(),
            account: ViewerId::parse(viewer).unwrap(),
            device: None,
            rooms: room(name).into(),
        };
        change(&mut claims);
        self.keyring.mint(&claims).unwrap()
    }

    /// Publishes a fact.
    pub(crate) async fn tell(&self, fact: Fact) {
        let key = Some(fact.key().into());
        self.publish(bus::topic::control(), 0, key, fact.encode().into()).await;
    }

    /// Answers as a chatserver.
    pub(crate) async fn reply(&self, reply: Reply) {
        let replies = ReplyBatch { node: NODE, entries: vec![reply] };
        let topic = bus::topic::reply(UNIT);
        let partition = topic.partition_of_node(NODE).0;
        self.publish(topic, partition, None, replies.encode()).await;
    }

    /// Publishes what happened to a room.
    pub(crate) async fn happen(&self, name: &str, events: Vec<RoomEvent>) {
        let topic = bus::topic::downlink(UNIT);
        let partition = topic.partition_of_room(&room(name)).0;
        let entries =
            events.into_iter().map(|event| RoomEntry { app: APP, room: room(name), event });
        let batch = RoomBatch { entries: entries.collect() };
        self.publish(topic, partition, None, batch.encode()).await;
    }

    pub(crate) async fn publish(
        &self,
        topic: Topic,
        partition: u32,
        key: Option<Arc<str>>,
        value: bytes::Bytes,
    ) {
        let partition = bus::PartitionNo(partition);
        let record = Publish { topic, partition, term: None, key, value };
        for result in self.bus.publish(vec![record]).await {
            result.unwrap();
        }
    }

    /// The next act of a viewer for which `pick` says so.
    pub(crate) async fn act(&mut self, pick: impl Fn(&UplinkEntry) -> bool) -> UplinkEntry {
        let uplinks = &mut self.uplinks;
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let Tailed::Records(records) = uplinks.next(100).await.unwrap() else { continue };
                for record in records {
                    let batch = UplinkBatch::decode(&record.value).unwrap();
                    if let Some(entry) = batch.entries.into_iter().find(&pick) {
                        return entry;
                    }
                }
            }
        });
        found.await.expect("no such act")
    }

    /// Asks one of several links to drain, by the order of their starts.
    pub(crate) fn drain(&self, number: usize) {
        self.drains[number].cancel();
    }

    /// Asks the link to drain.
    pub(crate) fn shut_down(&self) {
        self.shutdown.cancel();
    }

    /// Waits until everything has ended well.
    pub(crate) async fn ended(self) {
        tokio::time::timeout(PATIENCE, self.tasks.join()).await.unwrap().unwrap();
    }

    /// A metric's value, by its line.
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let text = self.meter.render();
        let found = text.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(' '));
        found.map_or(0, |it| it.parse().unwrap())
    }
}

fn listener(transport: Transport, binder: Binder) -> ListenerConfig {
    ListenerConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        transport,
        host: "127.0.0.1".to_owned(),
        port: 0,
        carrier: Carrier::default(),
        machine_room: String::new(),
        reserve: false,
        binder,
    }
}

pub(crate) fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}

/// A flush of comments.
pub(crate) fn flush(slot: u64, seqs: std::ops::RangeInclusive<u64>) -> RoomEvent {
    let items = seqs.map(|seq| placed(seq, Lane::Comment, "a comment of some length")).collect();
    flush_of(slot, items)
}

pub(crate) fn flush_of(slot: u64, items: Vec<Placed>) -> RoomEvent {
    RoomEvent::Flush { gen_no: Gen(1), slot: SlotNo(slot), part: 0, at: Wall(1), items }
}

pub(crate) fn placed(seq: u64, lane: Lane, text: &str) -> Placed {
    let body =
        Body::Comment { text: text.into(), style: Style::default(), media_ms: None, count: 1 };
    let item =
        Item { id: ItemId(seq), lane, sender: SenderRef(1), role: Role::Viewer, at: Wall(1), body };
    Placed { seq: Seq(seq), item }
}
