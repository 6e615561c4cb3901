//! A running chatserver and everything around it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use auth_core::app::App;
use bus::{At, Bus, Limits, MemoryBus, Publish, Tail, Tailed, Topic, topic};
use bytes::Bytes;
use channel::DevCerts;
use chatserver::store::{RedbStore, RoomStore};
use chatserver::{Config, Parts, Service};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::quota::MemoryQuota;
use kit::task::Tasks;
use proto::control::Fact;
use proto::envelope::{
    Accepted, AcceptedBatch, Act, Reply, ReplyBatch, RoomBatch, RoomEntry, RoomEvent, UplinkBatch,
    UplinkEntry,
};
use proto::frame::Outcome;
use proto::id::{AppId, Cid, NodeId, RoomId, SessionId, UnitId, ViewerId};
use proto::item::{Role, Style};
use proto::verdict::{Reason, Verdict};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;

use super::faults::FaultyStore;

pub(crate) const APP: AppId = AppId(1);
pub(crate) const LINK: NodeId = NodeId(70);
pub(crate) const UNIT: UnitId = UnitId(1);
/// Longest wait for anything; what never comes fails the test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running chatserver.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) clock: Clock,
    pub(crate) bus: Arc<MemoryBus>,
    pub(crate) health: Health,
    pub(crate) meter: Meter,
    pub(crate) store_is_away: Arc<AtomicBool>,
    /// Writes happen, and nobody is told so.
    pub(crate) store_is_mute: Arc<AtomicBool>,
    /// Whoever holds it keeps writes waiting.
    pub(crate) store_turn: Arc<RwLock<()>>,
    /// Writes that wait.
    pub(crate) store_waits: Arc<AtomicUsize>,
    quota: Arc<MemoryQuota>,
    store: Arc<dyn RoomStore>,
    client: reqwest::Client,
    base: String,
    shutdown: CancellationToken,
    tasks: Tasks,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(Limits::default()).await
    }

    pub(crate) async fn start_with(limits: Limits) -> Self {
        let folder = TempDir::new().unwrap();
        Self::start_in(folder, Clock::system(), limits).await
    }

    /// Starts one that is configured so.
    pub(crate) async fn start_as(config: Config) -> Self {
        let mut world = Self::prepare(TempDir::new().unwrap(), Clock::system(), Limits::default());
        world.base = format!("http://{}", world.serve(config).await);
        world
    }

    /// What one that is configured so says instead of starting.
    pub(crate) async fn refuse(config: Config) -> String {
        let world = Self::prepare(TempDir::new().unwrap(), Clock::system(), Limits::default());
        let config = Config { listen: "127.0.0.1:0".parse().unwrap(), ..config };
        format!("{:#}", Service::bind(config, world.parts()).await.unwrap_err())
    }

    async fn start_in(folder: TempDir, clock: Clock, limits: Limits) -> Self {
        let mut world = Self::prepare(folder, clock, limits);
        world.base = format!("http://{}", world.serve(Config::default()).await);
        world
    }

    /// Everything around a chatserver.
    fn prepare(folder: TempDir, clock: Clock, limits: Limits) -> Self {
        let certs = DevCerts::load_or_create(&folder.path().join("certs"), &[]).unwrap();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(certs.client().unwrap().config())
            .build()
            .unwrap();
        let store_is_away = Arc::<AtomicBool>::default();
        let store_is_mute = Arc::<AtomicBool>::default();
        let store = RedbStore::open(&folder.path().join("rooms.redb")).unwrap();
        let (store_turn, store_waits) = (Arc::<RwLock<()>>::default(), Arc::default());
        let store = FaultyStore {
            store,
            is_away: Arc::clone(&store_is_away),
            is_mute: Arc::clone(&store_is_mute),
            turn: Arc::clone(&store_turn),
            waits: Arc::clone(&store_waits),
        };
        Self {
            store: Arc::new(store),
            bus: MemoryBus::new(clock.clone(), limits),
            folder,
            clock,
            health: Health::default(),
            meter: Meter::new(),
            store_is_away,
            store_is_mute,
            store_turn,
            store_waits,
            quota: Arc::new(MemoryQuota::new(1000)),
            client,
            base: String::new(),
            shutdown: CancellationToken::new(),
            tasks: Tasks::default(),
        }
    }

    /// Starts a chatserver on the same room store and buses; gives its address.
    pub(crate) async fn serve(&mut self, config: Config) -> SocketAddr {
        let config = Config { listen: "127.0.0.1:0".parse().unwrap(), ..config };
        let service = Service::bind(config, self.parts()).await.unwrap();
        let addr = service.addr();
        self.tasks.spawn("chatserver", service.run(self.shutdown.clone()));
        addr
    }

    /// Ends this one and starts another on the same room store and an empty bus.
    pub(crate) async fn restart(self) -> Self {
        self.restart_as(Config::default()).await
    }

    /// The same, with the other one configured so.
    pub(crate) async fn restart_as(mut self, config: Config) -> Self {
        self.shutdown.cancel();
        while let Some(ended) = self.tasks.next().await {
            ended.unwrap();
        }
        // Another can open the file once this one is closed.
        drop(self.store);
        let mut world = Self::prepare(self.folder, self.clock, Limits::default());
        world.base = format!("http://{}", world.serve(config).await);
        world
    }

    fn parts(&self) -> Parts {
        let apps: [App; 2] = serde_json::from_value(json!([
            {"id": 1, "api_keys": ["key-1"]},
            {"id": 2, "api_keys": ["key-2"]},
        ]))
        .unwrap();
        let bus = Arc::clone(&self.bus) as Arc<dyn Bus>;
        Parts {
            clock: self.clock.clone(),
            meter: self.meter.clone(),
            health: self.health.clone(),
            seed: 7,
            apps: apps.into(),
            global_bus: Arc::clone(&bus),
            unit_bus: bus,
            room_store: Arc::clone(&self.store),
            quota: Arc::<MemoryQuota>::clone(&self.quota),
        }
    }

    /// Makes the room `r` with these settings, and waits until `control` tells it.
    pub(crate) async fn room(&self, settings: Value) {
        let body = json!({"room": "r", "settings": settings});
        let (status, body) = self.post("/v1/rooms", body).await;
        assert_eq!(status, 201, "{body}");
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.call(Method::POST, path, &[], Some(body)).await
    }

    /// A request with the first app's key.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.request(method, path).bearer_auth("key-1");
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        answer(request).await
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, self.url(path))
    }

    /// Where the business API has this.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Publishes one record of a link with these comments of `viewer`.
    pub(crate) async fn say(&self, viewer: &str, comments: &[(u64, &str)]) {
        let entries = comments.iter().map(|&(cid, text)| entry(viewer, cid, text)).collect();
        self.uplink(viewer, UplinkBatch { node: LINK, entries }).await;
    }

    /// Publishes one record of a link with acts of `viewer`.
    pub(crate) async fn uplink(&self, viewer: &str, batch: UplinkBatch) {
        let uplink = topic::uplink(UNIT);
        let partition = uplink.partition_of_viewer(&room(), &viewer_id(viewer));
        let value = batch.encode();
        self.publish(Publish { topic: uplink, partition, term: None, key: None, value }).await;
    }

    /// Publishes events of the room `r` on `sealed`.
    pub(crate) async fn seal(&self, events: Vec<RoomEvent>) {
        let entry = |event| RoomEntry { app: APP, room: room(), event };
        let value = RoomBatch { entries: events.into_iter().map(entry).collect() }.encode();
        let topic = topic::sealed();
        let partition = topic.partition_of_room(&room());
        self.publish(Publish { topic, partition, term: None, key: None, value }).await;
    }

    pub(crate) async fn publish(&self, record: Publish) {
        assert!(self.bus.publish(vec![record]).await[0].is_ok());
    }

    pub(crate) async fn accepted(&self) -> Follow<Accepted> {
        self.follow(topic::accepted(), |it| AcceptedBatch::decode(it).unwrap().entries).await
    }

    pub(crate) async fn replies(&self) -> Follow<Reply> {
        self.follow(topic::reply(UNIT), |it| ReplyBatch::decode(it).unwrap().entries).await
    }

    pub(crate) async fn facts(&self) -> Follow<Fact> {
        self.follow(topic::control(), |it| Fact::decode(it).into_iter().collect()).await
    }

    async fn follow<T>(&self, topic: Topic, decode: fn(&[u8]) -> Vec<T>) -> Follow<T> {
        let bus = Arc::clone(&self.bus) as Arc<dyn Bus>;
        let all = Tail::all(&topic);
        let tail = Tail::open(bus, topic, all, At::Oldest).await.unwrap();
        Follow { tail, decode, waiting: Vec::new() }
    }

    /// A metric's line, such as `chatserver_rooms`, with its labels.
    pub(crate) fn metric(&self, line: &str) -> Option<u64> {
        let text = self.meter.render();
        let value = text.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(' '));
        value.map(|it| it.parse().unwrap())
    }

    /// Waits until `done`, looking again whenever something else had its turn.
    pub(crate) async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let waited = async {
            while !done(self) {
                self.clock.sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waited).await.unwrap_or_else(|_| panic!("not {what}"));
    }
}

/// Records of a topic as they come, from the oldest on.
pub(crate) struct Follow<T> {
    tail: Tail,
    decode: fn(&[u8]) -> Vec<T>,
    waiting: Vec<T>,
}

impl<T> Follow<T> {
    /// The next one.
    pub(crate) async fn next(&mut self) -> T {
        while self.waiting.is_empty() {
            let tailed = tokio::time::timeout(PATIENCE, self.tail.next(100)).await;
            if let Tailed::Records(records) = tailed.expect("nothing came").unwrap() {
                let values: Vec<Bytes> = records.into_iter().map(|it| it.value).collect();
                self.waiting = values.iter().flat_map(|it| (self.decode)(it)).collect();
            }
        }
        self.waiting.remove(0)
    }

    /// The next one for which `wanted`.
    pub(crate) async fn find(&mut self, wanted: impl Fn(&T) -> bool) -> T {
        loop {
            let next = self.next().await;
            if wanted(&next) {
                return next;
            }
        }
    }
}

pub(crate) async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let bytes = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

pub(crate) fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}

pub(crate) fn viewer_id(name: &str) -> ViewerId {
    ViewerId::parse(name).unwrap()
}

pub(crate) fn entry(viewer: &str, cid: u64, text: &str) -> UplinkEntry {
    UplinkEntry {
        session: SessionId(5),
        app: APP,
        room: room(),
        viewer: viewer_id(viewer),
        role: Role::Viewer,
        may_send: true,
        at: proto::time::Wall(1_800_000_000_000),
        origin: None,
        act: Act::Comment {
            cid: Cid(cid),
            text: text.to_owned(),
            style: Style::default(),
            media_ms: None,
        },
    }
}

pub(crate) fn ack(cid: u64, outcome: Outcome) -> Reply {
    Reply::Ack { session: SessionId(5), cid: Cid(cid), outcome }
}

pub(crate) fn refused(cid: u64, reason: Reason, retry_after_ms: u32) -> Reply {
    ack(cid, Outcome::Verdict(Verdict::Drop { reason, retry_after_ms }))
}
