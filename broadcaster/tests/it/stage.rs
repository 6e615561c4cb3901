//! What a test needs around a broadcaster: the buses, the folder, items in, events out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use broadcaster::archive::Archive;
use broadcaster::store::{Directory, SegmentStore};
use broadcaster::{Config, Parts, Service};
use bus::{At, Bus, Limits, MemoryBus, Publish, Tail, Tailed, Topic, topic};
use channel::{ClientTls, DevCerts};
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::task::Tasks;
use proto::control::{Fact, RoomFact, RoomSettings, Segments};
use proto::envelope::{Accepted, AcceptedBatch, RoomBatch, RoomEvent};
use proto::head::Head;
use proto::id::{AppId, ItemId, NodeId, RoomId, SenderRef, UnitId};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use tokio_util::sync::CancellationToken;

use crate::get::{Got, get};

/// Nothing here takes longer, unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const UNIT: UnitId = UnitId(1);

/// The world outside of broadcasters.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) unit_buses: BTreeMap<UnitId, Arc<dyn Bus>>,
    pub(crate) stores: Vec<Arc<dyn SegmentStore>>,
    pub(crate) archive: Archive,
}

/// A broadcaster that runs.
pub(crate) struct Running {
    pub(crate) addr: SocketAddr,
    pub(crate) meter: Meter,
    pub(crate) health: Health,
    shutdown: CancellationToken,
    tasks: Tasks,
}

impl World {
    /// Fresh buses around a folder that may have been used before.
    pub(crate) fn new(folder: &Path) -> Self {
        let clock = Clock::system();
        let memory = || MemoryBus::new(clock.clone(), Limits::default()) as Arc<dyn Bus>;
        let store: Arc<dyn SegmentStore> = Arc::new(Directory::open(folder, 0).unwrap());
        Self {
            bus: memory(),
            unit_buses: BTreeMap::from([(UNIT, memory())]),
            stores: vec![store],
            archive: Archive::new(&folder.join("archive")),
            clock,
        }
    }

    /// Starts a broadcaster.
    pub(crate) async fn start(&self, config: Config) -> Running {
        self.try_start(config).await.unwrap()
    }

    /// The same, where it may be refused.
    pub(crate) async fn try_start(&self, config: Config) -> anyhow::Result<Running> {
        let (meter, health) = (Meter::new(), Health::default());
        let parts = Parts {
            clock: self.clock.clone(),
            meter: meter.clone(),
            health: health.clone(),
            seed: 1,
            global_bus: Arc::clone(&self.bus),
            unit_buses: self.unit_buses.clone(),
            archive: Some(self.archive.clone()),
            stores: self.stores.clone(),
            auth_tls: Some(trust()),
        };
        let service = Service::bind(config, parts).await?;
        let addr = service.addr();
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::default();
        tasks.spawn("broadcaster", service.run(shutdown.clone()));
        Ok(Running { addr, meter, health, shutdown, tasks })
    }

    /// Says that a room exists.
    pub(crate) async fn set_room(&self, settings: RoomSettings, open: bool) {
        let fact = Fact::Room(RoomFact { app: AppId(1), room: room(), version: 1, open, settings });
        let record = Publish {
            topic: topic::control(),
            partition: bus::PartitionNo(0),
            term: None,
            key: Some(fact.key().into()),
            value: fact.encode().into(),
        };
        self.publish(record).await;
    }

    /// Admits items.
    pub(crate) async fn admit(&self, items: Vec<Item>) {
        let entry = |item| Accepted { app: AppId(1), room: room(), item };
        let batch = AcceptedBatch { entries: items.into_iter().map(entry).collect() };
        let topic = topic::accepted();
        let partition = topic.partition_of_room(&room());
        let value = batch.encode();
        self.publish(Publish { topic, partition, term: None, key: None, value }).await;
    }

    pub(crate) async fn publish(&self, record: Publish) {
        let results = self.bus.publish(vec![record]).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }

    /// Listens to `sealed` from its beginning.
    pub(crate) async fn sealed(&self) -> Events {
        Events::open(&self.bus, topic::sealed()).await
    }

    /// Listens to the unit's `downlink` from its beginning.
    pub(crate) async fn downlink(&self) -> Events {
        Events::open(&self.unit_buses[&UNIT], topic::downlink(UNIT)).await
    }
}

impl Running {
    /// Ends it as an operator does.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.tasks.join()).await.unwrap().unwrap();
    }

    /// Ends it as a crash does: nothing is given up, nothing is finished.
    pub(crate) fn kill(mut self) {
        self.tasks.abort();
    }

    pub(crate) async fn head(&self) -> Head {
        let got = get(self.addr, "/dm/1/room-1/head.json").await;
        assert_eq!(got.status, 200, "{got:?}");
        serde_json::from_slice(&got.body).unwrap()
    }

    pub(crate) async fn segment(&self, gen_no: u32, slot: u64) -> Got {
        get(self.addr, &format!("/dm/1/room-1/{gen_no}/full/{slot}.bin")).await
    }
}

/// The events of the room on one topic.
pub(crate) struct Events {
    tail: Tail,
    waiting: std::collections::VecDeque<RoomEvent>,
}

impl Events {
    async fn open(bus: &Arc<dyn Bus>, topic: Topic) -> Self {
        let partition = topic.partition_of_room(&room());
        let tail = Tail::open(Arc::clone(bus), topic, vec![partition], At::Oldest).await.unwrap();
        Self { tail, waiting: std::collections::VecDeque::new() }
    }

    /// The next event of any kind.
    pub(crate) async fn next(&mut self) -> RoomEvent {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            let tailed = tokio::time::timeout(PATIENCE, self.tail.next(100)).await;
            let Tailed::Records(records) = tailed.expect("an event in time").unwrap() else {
                panic!("events were lost");
            };
            for record in records {
                let batch = RoomBatch::decode(&record.value).unwrap();
                self.waiting.extend(batch.entries.into_iter().map(|it| it.event));
            }
        }
    }

    /// The first thing that `pick` finds in the events.
    pub(crate) async fn find<T>(&mut self, pick: impl Fn(&RoomEvent) -> Option<T>) -> T {
        loop {
            if let Some(found) = pick(&self.next().await) {
                return found;
            }
        }
    }

    /// Waits until this item was flushed: gen, slot and place.
    pub(crate) async fn flush_of(&mut self, id: u64) -> (u32, u64, Placed) {
        self.find(|event| match event {
            RoomEvent::Flush { gen_no, slot, items, .. } => {
                let placed = items.iter().find(|it| it.item.id == ItemId(id))?;
                Some((gen_no.0, slot.0, placed.clone()))
            }
            _ => None,
        })
        .await
    }

    /// Waits until this slot, or a later one, was sealed.
    pub(crate) async fn seal_of(&mut self, gen_no: u32, slot: u64) {
        self.find(|event| match event {
            RoomEvent::Seal { gen_no: it, slot: at, .. } => {
                (it.0 == gen_no && at.0 >= slot).then_some(())
            }
            _ => None,
        })
        .await;
    }
}

/// Whom a broadcaster believes to be the auth service; none is there.
fn trust() -> ClientTls {
    static CERTS: LazyLock<DevCerts> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        DevCerts::load_or_create(folder.path(), &["localhost"]).unwrap()
    });
    CERTS.client().unwrap()
}

pub(crate) fn room() -> RoomId {
    RoomId::parse("room-1").unwrap()
}

/// A room with short slots that writes all of them.
pub(crate) fn settings() -> RoomSettings {
    RoomSettings { segments: Segments::Always, interval_ms: 400, ..RoomSettings::default() }
}

/// A broadcaster with its own number.
pub(crate) fn config(node: u32) -> Config {
    Config { node: NodeId(node), flush_ms: 100, ..Config::default() }
}

pub(crate) fn comment(id: u64) -> Item {
    let text = format!("text {id}").into();
    let body = Body::Comment { text, style: Style::default(), media_ms: None, count: 1 };
    item(id, Lane::Comment, body)
}

pub(crate) fn gift(id: u64) -> Item {
    item(id, Lane::HighGift, Body::Gift { gift_no: 1, count: 1, text: String::new() })
}

pub(crate) fn notice(id: u64) -> Item {
    item(id, Lane::Notice, Body::Notice { text: "notice".to_owned() })
}

fn item(id: u64, lane: Lane, body: Body) -> Item {
    Item {
        id: ItemId(id),
        lane,
        sender: SenderRef(id % 3),
        role: Role::Viewer,
        at: proto::time::Wall(1_800_000_000_000),
        body,
    }
}
