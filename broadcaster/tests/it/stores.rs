//! Several stores at once: what stands still or refuses is late alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use broadcaster::store::{Created, Directory, File, Replaced, SegmentStore, Stamp, StoreError};
use broadcaster::{Config, Mirror};
use bus::{At, Tail, topic};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kit::clock::Clock;
use proto::head::Head;

use crate::bases::next_store;
use crate::faults::{AWAY, Moody, until};
use crate::stage::{World, config, settings};

const OTHER: &str = "https://other.example";

#[tokio::test(flavor = "multi_thread")]
async fn of_two_stores_the_one_that_fails_is_late_alone_and_never_names_what_it_missed() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = World::new(folder.path());
    let inner = Arc::new(Directory::open(other.path(), 0).unwrap());
    let failing = Arc::new(Moody::new(inner, Some(AWAY)));
    world.stores.push(failing.clone());
    let gauges = topic::gauges();
    let mut gauges =
        Tail::open(world.bus.clone(), gauges.clone(), Tail::all(&gauges), At::End).await.unwrap();
    world.set_room(settings(), true).await;
    let mirror = Mirror { directory: other.path().to_owned(), base: OTHER.to_owned() };
    let broadcaster = world
        .start(Config {
            mirrors: vec![mirror],
            store_queue_max: 1,
            writers: 1,
            store_wait_ms_max: 500,
            ..config(1)
        })
        .await;

    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 5).await;
    assert!(folder.path().join("dm/1/room-1/1/full/5.bin").exists());
    assert_eq!(head_of(other.path()), None);
    assert_eq!(broadcaster.health.failures(), [], "one store is enough");
    let metrics = broadcaster.meter.render();
    for line in [
        "broadcaster_stores_refusing 1",
        "broadcaster_store_errors_total{call=\"create\",store=\"1\"}",
        "broadcaster_store_errors_total{call=\"queue_full\",store=\"1\"}",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let late = async {
        loop {
            let store = next_store(&mut gauges).await;
            if store.base == OTHER && store.unstored > 0 {
                return;
            }
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, late).await.expect("gslb hears of it");

    failing.turn(None);
    until(|| head_of(other.path()).is_some_and(|it| it.oldest.0 > 5)).await;
    let head = head_of(other.path()).unwrap();
    for slot in head.oldest.0..=head.slot.0 {
        assert!(other.path().join(format!("dm/1/room-1/1/full/{slot}.bin")).exists(), "{slot}");
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_stores_the_one_that_is_slow_by_three_seconds_is_late_alone() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = World::new(folder.path());
    let inner = Arc::new(Directory::open(other.path(), 0).unwrap());
    world.stores.push(Arc::new(Slow { inner, clock: world.clock.clone() }));
    let gauges = topic::gauges();
    let mut gauges =
        Tail::open(world.bus.clone(), gauges.clone(), Tail::all(&gauges), At::End).await.unwrap();
    world.set_room(settings(), true).await;
    let mirror = Mirror { directory: other.path().to_owned(), base: OTHER.to_owned() };
    let broadcaster = world.start(Config { mirrors: vec![mirror], ..config(1) }).await;

    let mut sealed = world.sealed().await;
    for slot in 0..10 {
        sealed.seal_of(1, slot).await;
        let path = folder.path().join(format!("dm/1/room-1/1/full/{slot}.bin"));
        assert!(path.exists(), "slot {slot} is in the other store when it is told");
    }

    let newest = head_of(folder.path()).unwrap();
    assert!(newest.slot.0 >= 9, "{newest:?}");
    assert_eq!(broadcaster.health.failures(), [], "one store is enough");
    assert_eq!(head_of(other.path()), None, "nothing is named that nobody said is there");
    let late = async {
        loop {
            let store = next_store(&mut gauges).await;
            if store.base == OTHER && store.unstored > 0 {
                return;
            }
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, late).await.expect("gslb hears of it");
    let metrics = broadcaster.meter.render();
    let errors = "broadcaster_store_errors_total{call=\"create\",store=\"1\"}";
    assert!(metrics.contains(errors), "{metrics}");
    broadcaster.stop().await;
}

/// A store that does everything and says so three seconds later.
#[derive(Debug)]
struct Slow {
    inner: Arc<Directory>,
    clock: Clock,
}

impl Slow {
    /// The answer, late.
    fn late<'a, R: Send + 'a>(&'a self, done: BoxFuture<'a, R>) -> BoxFuture<'a, R> {
        let late = async move {
            let done = done.await;
            self.clock.sleep(Duration::from_secs(3)).await;
            done
        };
        late.boxed()
    }
}

impl SegmentStore for Slow {
    fn create(&self, files: Vec<(File, Bytes)>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        self.late(self.inner.create(files))
    }

    fn replace(
        &self,
        file: File,
        bytes: Bytes,
        stamp: Stamp,
    ) -> BoxFuture<'_, Result<Replaced, StoreError>> {
        self.late(self.inner.replace(file, bytes, stamp))
    }

    fn get(&self, file: File) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        self.late(self.inner.get(file))
    }

    fn remove(&self, files: Vec<File>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.late(self.inner.remove(files))
    }
}

fn head_of(folder: &Path) -> Option<Head> {
    let bytes = std::fs::read(folder.join("dm/1/room-1/head.json")).ok()?;
    serde_json::from_slice(&bytes).ok()
}
