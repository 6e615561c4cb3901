//! What fails does not take the rest with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use broadcaster::Config;
use broadcaster::store::{Created, File, Replaced, SegmentStore, Stamp, StoreError};
use bus::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use proto::id::UnitId;

use crate::stage::{World, comment, config, settings};

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_never_answers_delays_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    world.unit_buses.insert(UnitId(2), Arc::new(Silent));
    world.set_room(settings(), true).await;
    let broadcaster = world.start(Config { queues_max: 1, ..config(1) }).await;

    world.admit(vec![comment(1)]).await;

    let mut downlink = world.downlink().await;
    let (_, slot, _) = downlink.flush_of(1).await;
    downlink.seal_of(1, slot + 3).await;
    let metrics = broadcaster.meter.render();
    assert!(metrics.contains("topic=\"downlink\",why=\"queue_full\""), "{metrics}");
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_go_on_from_memory_while_the_store_refuses_and_are_stored_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    let inner = world.stores.remove(0);
    let store = Arc::new(Moody { inner, refuses: AtomicBool::new(false) });
    world.stores.push(Arc::clone(&store) as Arc<dyn SegmentStore>);
    world.set_room(settings(), true).await;
    let broadcaster = world.start(Config { store_wait_ms_max: 100, ..config(1) }).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;

    store.refuses.store(true, Ordering::Relaxed);
    world.admit(vec![comment(1)]).await;
    let (_, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(1, slot).await;
    assert_eq!(broadcaster.segment(1, slot).await.status, 200);
    assert_eq!(broadcaster.health.failures().len(), 1);
    let file = folder.path().join(format!("dm/1/room-1/1/full/{slot}.bin"));
    assert!(!file.exists());

    store.refuses.store(false, Ordering::Relaxed);
    while !file.exists() {
        tokio::task::yield_now().await;
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stepped_clock_makes_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 1).await;

    world.clock.step(3000);
    sealed.seal_of(1, 8).await;
    world.clock.step(-5000);
    world.admit(vec![comment(1)]).await;
    let (gen_no, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(1, slot).await;

    assert_eq!(gen_no, 1);
    for at in 0..=slot {
        assert_eq!(broadcaster.segment(1, at).await.status, 200, "slot {at}");
    }
    broadcaster.stop().await;
}

/// A bus that takes everything and never says so.
#[derive(Debug)]
struct Silent;

impl Bus for Silent {
    fn publish(&self, _: Vec<Publish>) -> BoxFuture<'_, Vec<Result<Offset, PublishError>>> {
        pending().boxed()
    }

    fn read(
        &self,
        _: Topic,
        _: PartitionNo,
        _: Offset,
        _: usize,
        _: Duration,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        pending().boxed()
    }

    fn locate(&self, _: Topic, _: PartitionNo, _: At) -> BoxFuture<'_, Result<Offset, ReadError>> {
        pending().boxed()
    }

    fn commit(
        &self,
        _: Arc<str>,
        _: Topic,
        _: PartitionNo,
        _: Offset,
    ) -> BoxFuture<'_, Result<(), ReadError>> {
        pending().boxed()
    }
}

/// A store that can be made to refuse.
#[derive(Debug)]
struct Moody {
    inner: Arc<dyn SegmentStore>,
    refuses: AtomicBool,
}

impl Moody {
    fn check(&self) -> Result<(), StoreError> {
        let refusal = Err(StoreError::Away("moody".to_owned()));
        if self.refuses.load(Ordering::Relaxed) { refusal } else { Ok(()) }
    }
}

impl SegmentStore for Moody {
    fn create(&self, files: Vec<(File, Bytes)>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        match self.check() {
            Ok(()) => self.inner.create(files),
            Err(error) => ready(vec![Err(error); files.len()]).boxed(),
        }
    }

    fn replace(
        &self,
        file: File,
        bytes: Bytes,
        stamp: Stamp,
    ) -> BoxFuture<'_, Result<Replaced, StoreError>> {
        match self.check() {
            Ok(()) => self.inner.replace(file, bytes, stamp),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    fn get(&self, file: File) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        match self.check() {
            Ok(()) => self.inner.get(file),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    fn remove(&self, files: Vec<File>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.inner.remove(files)
    }
}
