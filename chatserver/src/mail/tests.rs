//! Batches and patience, against a bus that is away now and then.

use std::sync::atomic::AtomicUsize;

use bus::{Limits, MemoryBus, Record};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use kit::health::Health;
use kit::meter::{Meter, list};
use proto::id::{AppId, RoomId, SenderRef, SessionId};
use proto::item::{Body, Item, Lane, Role};
use proto::limits::{RECORD_BYTES_MAX, TEXT_BYTES_MAX};
use proto::time::Wall;

use super::*;

#[tokio::test]
async fn a_bus_that_is_away_twice_is_waited_for_and_health_says_so() {
    let clock = Clock::system();
    let health = Health::default();
    let away = Arc::new(Away {
        bus: MemoryBus::new(clock.clone(), Limits::default()),
        left: AtomicUsize::new(3),
    });
    let counter = Meter::new().counter(list::CHATSERVER_BUS_AWAY_TOTAL, &[]);
    let bus = Arc::clone(&away) as Arc<dyn Bus>;
    let mail = Mail::new(bus, clock, health.part("bus"), counter.clone());

    for _ in 0..2 {
        away.left.store(3, Ordering::Relaxed);
        assert_eq!(mail.send_once(records(1)).await, [Err(PublishError::Away)]);
        assert_eq!(health.failures().len(), 1);
        assert_eq!(mail.send(records(2)).await, [Ok(()), Ok(())]);
        assert_eq!(health.failures(), []);
    }

    assert_eq!(counter.get(), 6);
}

#[test]
fn items_are_cut_into_records_that_the_bus_takes_in_their_order() {
    let room = RoomId::parse("r").unwrap();
    let items = (0..2500).map(|id| item(&room, id, TEXT_BYTES_MAX)).collect();

    let records = accepted(items);

    assert!(records.iter().all(|it| it.record.value.len() <= RECORD_BYTES_MAX));
    let ids: Vec<_> = records.into_iter().flat_map(|it| it.ids).collect();
    assert_eq!(ids, (0..2500).map(ItemId).collect::<Vec<_>>());
}

#[test]
fn answers_go_to_the_link_that_asked() {
    let close = |session| Reply::Close {
        session: SessionId(session),
        code: proto::close::CloseCode::Kicked,
    };
    let mixed = (0..2100_u64).map(|it| (NodeId(1 + u32::from(it % 3 == 0)), close(it))).collect();

    let records = replies(UnitId(1), mixed);

    let batches: Vec<_> = records.iter().map(|it| ReplyBatch::decode(&it.value).unwrap()).collect();
    let sizes: Vec<_> = batches.iter().map(|it| (it.node.0, it.entries.len())).collect();
    assert_eq!(sizes, [(1, 1000), (1, 400), (2, 700)]);
    assert_eq!(records[2].partition, PartitionNo(2));
}

/// A bus that is away for the next publishes.
#[derive(Debug)]
struct Away {
    bus: Arc<MemoryBus>,
    left: AtomicUsize,
}

impl Bus for Away {
    fn publish(&self, records: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>> {
        let less = |it: usize| it.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return ready(vec![Err(PublishError::Away); records.len()]).boxed();
        }
        self.bus.publish(records)
    }

    fn read(
        &self,
        topic: Topic,
        partition: PartitionNo,
        from: Offset,
        records_max: usize,
        wait: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        self.bus.read(topic, partition, from, records_max, wait)
    }

    fn locate(
        &self,
        topic: Topic,
        partition: PartitionNo,
        at: At,
    ) -> BoxFuture<'_, Result<Offset, ReadError>> {
        self.bus.locate(topic, partition, at)
    }

    fn commit(
        &self,
        group: Arc<str>,
        topic: Topic,
        partition: PartitionNo,
        next: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>> {
        self.bus.commit(group, topic, partition, next)
    }
}

fn records(count: usize) -> Vec<Publish> {
    let fact = Fact::Bases { bases: Vec::new() };
    vec![super::fact(&fact); count]
}

fn item(room: &RoomId, id: u64, bytes: usize) -> Accepted {
    let body = Body::Notice { text: "x".repeat(bytes) };
    let item = Item {
        id: ItemId(id),
        lane: Lane::Notice,
        sender: SenderRef(0),
        role: Role::Host,
        at: Wall(0),
        body,
    };
    Accepted { app: AppId(1), room: room.clone(), item }
}
