//! What fails does not take the rest with it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use broadcaster::Config;
use broadcaster::store::{Created, File, Replaced, SegmentStore, Stamp, StoreError};
use bus::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use proto::head::Head;
use proto::id::UnitId;

use crate::stage::{PATIENCE, Running, World, comment, config, settings};

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
    let store = Arc::new(Moody::new(inner, None));
    world.stores.push(Arc::clone(&store) as Arc<dyn SegmentStore>);
    world.set_room(settings(), true).await;
    let broadcaster = world.start(Config { store_wait_ms_max: 100, ..config(1) }).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;

    store.turn(Some(AWAY));
    world.admit(vec![comment(1)]).await;
    let (_, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(1, slot).await;
    assert_eq!(broadcaster.segment(1, slot).await.status, 200);
    assert_eq!(broadcaster.health.failures().len(), 1);
    let file = folder.path().join(format!("dm/1/room-1/1/full/{slot}.bin"));
    assert!(!file.exists());

    store.turn(None);
    until(|| file.exists()).await;
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_opens_on_a_full_disk_and_is_stored_once_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let (world, store) = moody(folder.path(), FULL);
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    world.admit(vec![comment(1)]).await;

    let mut downlink = world.downlink().await;
    let (gen_no, slot, _) = downlink.flush_of(1).await;
    downlink.seal_of(gen_no, slot).await;
    assert_eq!(broadcaster.segment(gen_no, slot).await.status, 200);
    let failures = broadcaster.health.failures();
    assert!(failures[0].1.contains("only 7 bytes of its disk are free"), "{failures:?}");
    let metrics = broadcaster.meter.render();
    assert!(metrics.contains("broadcaster_stores_refusing 1"), "{metrics}");

    store.turn(None);
    let files = folder.path().join(format!("dm/1/room-1/{gen_no}"));
    until(|| files.join("gen.json").exists()).await;
    until(|| files.join(format!("full/{slot}.bin")).exists()).await;
    until(|| broadcaster.health.failures().is_empty()).await;
    broadcaster.stop().await;

    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    world.admit(vec![comment(1), comment(2)]).await;
    let mut downlink = world.downlink().await;
    let (next, ..) = downlink.flush_of(2).await;
    assert_eq!(next, gen_no + 1, "a bus that lost everything begins the next gen");
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_opens_though_no_store_can_be_reached() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _store) = moody(folder.path(), AWAY);
    world.set_room(settings(), true).await;
    let broadcaster = world.start(Config { store_wait_ms_max: 100, ..config(1) }).await;
    world.admit(vec![comment(1)]).await;

    let mut downlink = world.downlink().await;
    let (gen_no, slot, _) = downlink.flush_of(1).await;
    downlink.seal_of(gen_no, slot).await;

    assert_eq!(broadcaster.segment(gen_no, slot).await.status, 200);
    broadcaster.stop().await;
}

/// A world whose one store refuses from the start.
pub(crate) fn moody(folder: &Path, refusal: StoreError) -> (World, Arc<Moody>) {
    let mut world = World::new(folder);
    let inner = world.stores.remove(0);
    let store = Arc::new(Moody::new(inner, Some(refusal)));
    world.stores.push(Arc::clone(&store) as Arc<dyn SegmentStore>);
    (world, store)
}

pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it happens in time");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_stepped_by_ten_minutes_either_way_opens_a_gen_and_shows_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 1).await;

    for (gen_no, step_ms) in [(2, 600_000), (3, -600_000)] {
        world.clock.step(step_ms);
        world.admit(vec![comment(u64::from(gen_no))]).await;
        let (shown_in, slot, _) = sealed.flush_of(u64::from(gen_no)).await;
        sealed.seal_of(shown_in, slot).await;

        assert_eq!(shown_in, gen_no, "after {step_ms} ms");
        assert_eq!(broadcaster.segment(gen_no, slot).await.status, 200, "after {step_ms} ms");
        let head = broadcaster.head().await;
        assert_eq!((head.gen_no.0, head.end), (gen_no, None));
        has_all_it_names(&broadcaster, &head).await;
    }
    broadcaster.stop().await;
}

/// Every slot that a head names is there, of its own gen and of those before.
async fn has_all_it_names(broadcaster: &Running, head: &Head) {
    let past = head.past.iter().map(|it| (it.info.gen_no.0, it.oldest.0..=it.end.0));
    for (gen_no, slots) in past.chain([(head.gen_no.0, head.oldest.0..=head.slot.0)]) {
        for slot in slots {
            let status = broadcaster.segment(gen_no, slot).await.status;
            assert_eq!(status, 200, "slot {slot} of gen {gen_no}");
        }
    }
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
pub(crate) struct Moody {
    inner: Arc<dyn SegmentStore>,
    refusal: Mutex<Option<StoreError>>,
}

pub(crate) const AWAY: StoreError = StoreError::Away(String::new());
const FULL: StoreError = StoreError::Full { free_bytes: 7, free_bytes_min: 8 };

impl Moody {
    pub(crate) fn new(inner: Arc<dyn SegmentStore>, refusal: Option<StoreError>) -> Self {
        Self { inner, refusal: Mutex::new(refusal) }
    }

    pub(crate) fn turn(&self, refusal: Option<StoreError>) {
        *self.refusal.lock().unwrap() = refusal;
    }

    fn check(&self) -> Result<(), StoreError> {
        self.refusal.lock().unwrap().clone().map_or(Ok(()), Err)
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
            Err(error @ StoreError::Away(_)) => ready(Err(error)).boxed(),
            Ok(()) | Err(StoreError::Full { .. }) => self.inner.get(file),
        }
    }

    fn remove(&self, files: Vec<File>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.inner.remove(files)
    }
}
