//! Several stores at once: what stands still or refuses is late alone.

use std::path::Path;
use std::sync::Arc;

use broadcaster::store::Directory;
use broadcaster::{Config, Mirror};
use bus::{At, Tail, topic};
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

fn head_of(folder: &Path) -> Option<Head> {
    let bytes = std::fs::read(folder.join("dm/1/room-1/head.json")).ok()?;
    serde_json::from_slice(&bytes).ok()
}
