//! A broadcaster between buses and a folder, and who floods it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use broadcaster::store::{Directory, Ext, File, SegmentStore};
use broadcaster::{Config, Parts, Service};
use bus::{Bus, Limits, MemoryBus, PartitionNo, Publish, topic};
use channel::DevCerts;
use kit::clock::Clock;
use kit::health::Health;
use kit::meter::Meter;
use kit::task::Tasks;
use proto::control::{Fact, RoomFact, RoomSettings, Segments};
use proto::encoding::expand;
use proto::envelope::{Accepted, AcceptedBatch};
use proto::head::Tier;
use proto::id::{AppId, Gen, ItemId, RoomId, SenderRef, SlotNo, UnitId};
use proto::item::{Body, Item, Lane, Role, Style};
use proto::segment::Segment;
use proto::time::{Wall, millis};
use tokio_util::sync::CancellationToken;

use super::Plan;

/// Comments are said in so many steps a second.
const STEPS_PER_S: u64 = 100;
/// Length of a step.
const STEP: Duration = Duration::from_millis(1000 / STEPS_PER_S);
/// Steps from a gift to the next; every fifth is a notice. Less than is guaranteed to either.
const STEPS_PER_GIFT: u64 = 10;
/// Comments of one record: what a chatserver judges at once.
const RECORD_ITEMS: usize = 500;
/// Senders, in turn.
const SENDERS: u64 = 50_000;
/// What a partition of the bus keeps: comments stay until the last one beside them has its fate, so
/// that is four seconds of the flood at most.
const BUS: (usize, usize) = (65_536, 128 << 20);
/// What is told is kept so long: far less than half of the flood, whose memory would grow with it.
const RECENT_MS: u64 = 4_000;
/// The broadcaster ends within this time.
const END_MAX: Duration = Duration::from_secs(10);
/// The first comment's time; ids are made of it.
const START: Wall = Wall(1_800_000_000_000);
const APP: AppId = AppId(1);

/// What was said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub(super) comments: u64,
    /// Gifts and notices.
    pub(super) protected: u64,
    /// How late the last step was.
    pub(super) behind_ms: u64,
}

/// A broadcaster and its room.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) clock: Clock,
    pub(super) meter: Meter,
    pub(super) room: RoomId,
    pub(super) bus: Arc<dyn Bus>,
    store: Arc<dyn SegmentStore>,
    stop: CancellationToken,
    services: Tasks,
}

impl Plan {
    /// All comments.
    pub(super) const fn comments(self) -> u64 {
        self.step() * self.steps()
    }

    const fn steps(self) -> u64 {
        self.length.as_secs() * STEPS_PER_S
    }

    /// Comments of a step.
    const fn step(self) -> u64 {
        self.comments_per_s / STEPS_PER_S
    }
}

impl Scene {
    pub(super) async fn open(folder: &Path) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let (records_max, bytes_max) = BUS;
        let limits = Limits { records_max, bytes_max, recent_ms: RECENT_MS, ..Limits::default() };
        let bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), limits);
        let unit_bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), Limits::default());
        let store: Arc<dyn SegmentStore> = Arc::new(Directory::open(&folder.join("segments"), 0)?);
        // No room here is sealed: nobody is asked for keys.
        let certs = DevCerts::load_or_create(&folder.join("certs"), &["localhost"])?;
        let (meter, stop) = (Meter::new(), CancellationToken::new());
        let parts = Parts {
            clock: clock.clone(),
            meter: meter.clone(),
            health: Health::default(),
            seed: 1,
            global_bus: Arc::clone(&bus),
            unit_buses: BTreeMap::from([(UnitId(1), unit_bus)]),
            archive: None,
            stores: vec![Arc::clone(&store)],
            auth_tls: Some(certs.client()?),
        };
        let service = Service::bind(Config::default(), parts).await?;
        let mut services = Tasks::default();
        services.spawn("broadcaster", service.run(stop.clone()));
        let scene =
            Self { clock, meter, room: RoomId::parse("flood")?, bus, store, stop, services };
        scene.make_room().await?;
        Ok(scene)
    }

    async fn make_room(&self) -> anyhow::Result<()> {
        let settings = RoomSettings { segments: Segments::Always, ..RoomSettings::default() };
        let room = self.room.clone();
        let fact = Fact::Room(RoomFact { app: APP, room, version: 1, open: true, settings });
        self.publish(vec![Publish {
            topic: topic::control(),
            partition: PartitionNo(0),
            term: None,
            key: Some(fact.key().into()),
            value: fact.encode().into(),
        }])
        .await
    }

    /// Says everything, in time.
    pub(super) async fn say(&self, plan: Plan) -> anyhow::Result<Said> {
        let start = self.clock.mono();
        let mut said = Said::default();
        for step in 0..plan.steps() {
            let due = start + STEP * u32::try_from(step)?;
            self.clock.sleep_until(due).await;
            let comments: Vec<Item> = (0..plan.step()).map(|it| comment(plan, step, it)).collect();
            said.comments += comments.len() as u64;
            let records = comments.chunks(RECORD_ITEMS).map(|it| self.record(it.to_vec()));
            let mut records: Vec<Publish> = records.collect();
            if step.is_multiple_of(STEPS_PER_GIFT) {
                records.push(self.record(vec![protected(step)]));
                said.protected += 1;
            }
            self.publish(records).await?;
            said.behind_ms = millis(self.clock.mono().since(due));
        }
        Ok(said)
    }

    /// Items that lie in the files of these slots.
    pub(super) async fn in_files(&self, slots: &[(Gen, SlotNo)]) -> anyhow::Result<u64> {
        let mut items = 0;
        for &(gen_no, slot) in slots {
            let room = self.room.clone();
            let file = File::Segment { room, gen_no, tier: Tier::Full, slot, ext: Ext::Bin };
            let bytes = self.store.get(file).await?;
            let bytes = bytes.with_context(|| format!("slot {slot} is in no file"))?;
            items += Segment::decode(&expand(&bytes)?)?.items.len() as u64;
        }
        Ok(items)
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        kit::shutdown::drain(self.services, END_MAX).await
    }

    fn record(&self, items: Vec<Item>) -> Publish {
        let entry = |item| Accepted { app: APP, room: self.room.clone(), item };
        let topic = topic::accepted();
        let partition = topic.partition_of_room(&self.room);
        let value = AcceptedBatch { entries: items.into_iter().map(entry).collect() }.encode();
        Publish { topic, partition, term: None, key: None, value }
    }

    async fn publish(&self, records: Vec<Publish>) -> anyhow::Result<()> {
        let results = self.bus.publish(records).await;
        let refused = results.into_iter().find_map(Result::err);
        ensure!(refused.is_none(), "the bus took no more: {refused:?}");
        Ok(())
    }
}

fn comment(plan: Plan, step: u64, number: u64) -> Item {
    let number = step * plan.step() + number;
    let at = Wall(START.0 + number / IDS_PER_MS);
    let counter = u16::try_from(number % IDS_PER_MS).unwrap_or_default();
    let text = format!("comment {number}").into();
    Item {
        id: ItemId::compose(at.0, 1, counter),
        lane: Lane::Comment,
        sender: SenderRef(number % SENDERS),
        role: Role::Viewer,
        at,
        body: Body::Comment { text, style: Style::default(), media_ms: None, count: 1 },
    }
}

/// Ids that one millisecond gives.
const IDS_PER_MS: u64 = 1 << 12;

/// A comment's number, from its id.
pub(super) fn number_of(id: ItemId) -> Option<usize> {
    let first = ItemId::compose(START.0, 0, 0).0;
    let ms = (id.0.checked_sub(first)?) >> 22;
    usize::try_from(ms * IDS_PER_MS + id.0 % IDS_PER_MS).ok()
}

/// A gift, or in every fifth place a notice. Their ids are hashes elsewhere.
fn protected(step: u64) -> Item {
    let is_notice = step.is_multiple_of(5 * STEPS_PER_GIFT);
    let (lane, body) = if is_notice {
        (Lane::Notice, Body::Notice { text: "hear".to_owned() })
    } else {
        (Lane::HighGift, Body::Gift { gift_no: 1, count: 1, text: String::new() })
    };
    let (id, sender) = (ItemId(u64::MAX - step), SenderRef(0));
    Item { id, lane, sender, role: Role::Viewer, at: START, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_known_by_its_id() {
        let plan = Plan { comments_per_s: 200_000, length: Duration::from_secs(20) };

        assert_eq!(plan.comments(), 4_000_000);
        for (step, number) in [(0, 0), (0, 1999), (1, 0), (1999, 1999)] {
            let id = comment(plan, step, number).id;
            assert_eq!(number_of(id), usize::try_from(step * 2000 + number).ok());
        }
        assert_eq!(number_of(ItemId(0)), None);
    }
}
