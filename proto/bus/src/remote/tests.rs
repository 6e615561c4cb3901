//! The contracts of both ports across a connection, and what happens when it breaks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kit::clock::Clock;
use kit::quota::{MemoryQuota, Use};
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::id::NodeId;
use proto::limits::RECORD_BYTES_MAX;
use proto::time::Wall;
use tokio::net::UnixStream;

use super::{Ports, connect, serve};
use crate::memory::{Limits, MemoryBus};
use crate::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, contract, topic};

/// Both ends of connections; they end when it is dropped.
#[derive(Default)]
struct Carriers(Mutex<Tasks>);

impl Carriers {
    /// The ports at the far end of a connection to `ports`.
    fn reach(&self, ports: Ports) -> Ports {
        let (near, far) = UnixStream::pair().unwrap();
        let (remote, carried) = connect(far);
        let mut tasks = self.0.lock();
        tasks.spawn("served", async move { Ok(serve(near, ports).await?) });
        tasks.spawn("carried", async move { Ok(carried.await?) });
        remote
    }
}

fn ports(limits: Limits) -> Ports {
    let bus = || MemoryBus::new(Clock::system(), limits.clone());
    Ports { global: bus(), unit: bus(), quota: Arc::new(MemoryQuota::new(100)) }
}

#[tokio::test]
async fn a_remote_bus_keeps_the_contract() {
    let carriers = Carriers::default();
    let limits = Limits { records_max: contract::RECORDS_MAX, ..Limits::default() };

    contract::check(|| carriers.reach(ports(limits.clone())).unit).await;
    contract::check(|| carriers.reach(ports(limits.clone())).global).await;
}

#[tokio::test]
async fn a_remote_quota_keeps_the_contract() {
    let carriers = Carriers::default();
    let remote = carriers.reach(ports(Limits::default()));

    kit::quota::contract::check(remote.quota.as_ref(), Wall(1_800_000_000_000)).await;
}

#[tokio::test]
async fn the_two_buses_are_two() {
    let carriers = Carriers::default();
    let remote = carriers.reach(ports(Limits::default()));

    assert_eq!(remote.unit.publish(vec![record("a".into())]).await, [Ok(Offset(0))]);

    let end = |bus: Arc<dyn Bus>| async move {
        bus.locate(topic::sealed(), PartitionNo(0), At::End).await.unwrap()
    };
    assert_eq!((end(remote.unit).await, end(remote.global).await), (Offset(1), Offset(0)));
}

#[tokio::test]
async fn records_that_fill_many_frames_come_all_and_in_order() {
    let carriers = Carriers::default();
    let limits = Limits { bytes_max: usize::MAX, ..Limits::default() };
    let remote = carriers.reach(ports(limits)).unit;
    let values: Vec<Bytes> = (0..20).map(|it| vec![it; RECORD_BYTES_MAX].into()).collect();

    let mut sent: Vec<_> = values.iter().cloned().map(record).collect();
    sent.insert(7, record(vec![0; RECORD_BYTES_MAX + 1].into()));
    let results = remote.publish(sent).await;
    let mut read = Vec::new();
    while read.len() < values.len() {
        let from = Offset(read.len() as u64);
        let next = remote.read(topic::sealed(), PartitionNo(0), from, 500, Duration::ZERO).await;
        read.extend(next.unwrap().into_iter().map(|it| it.value));
    }

    let refused = PublishError::TooLarge { bytes: RECORD_BYTES_MAX + 1 };
    assert_eq!(results[7], Err(refused));
    assert_eq!(results.iter().filter(|it| it.is_ok()).count(), values.len());
    assert_eq!(read, values);
}

#[tokio::test]
async fn when_the_other_process_ends_every_call_says_so() {
    let (near, far) = UnixStream::pair().unwrap();
    let (remote, carried) = connect(far);
    let mut tasks = Tasks::default();
    tasks.spawn("carried", async move { Ok(carried.await?) });
    let bus = Arc::clone(&remote.unit);
    let wait = Duration::from_secs(60);
    let waiting = bus.read(topic::sealed(), PartitionNo(0), Offset(0), 1, wait);

    let (waited, ended) = tokio::join!(waiting, async {
        drop(near);
        tasks.next().await.unwrap()
    });

    assert!(ended.is_ok());
    assert_eq!(waited.unwrap_err(), ReadError::Away);
    assert_eq!(remote.global.publish(vec![record("a".into())]).await, [Err(PublishError::Away)]);
    let told = Use { key: "key".into(), wanted_per_s: 1, passed: 1 };
    assert!(remote.quota.share(NodeId(1), vec![told], Wall(1)).await.is_err());
}

#[tokio::test]
async fn who_speaks_another_language_is_not_served() {
    let (near, far) = UnixStream::pair().unwrap();
    let served = serve(near, ports(Limits::default()));

    far.try_write(b"GET / HTTP/1.1\r\n\r\n").unwrap();

    assert_eq!(served.await.unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}

fn record(value: Bytes) -> Publish {
    Publish { topic: topic::sealed(), partition: PartitionNo(0), term: None, key: None, value }
}
