//! Segment bases: announced on `gauges`, and passed on to viewers who poll.

use broadcaster_core::pack::expand;
use bus::{At, PartitionNo, Publish, Tail, Tailed, topic};
use proto::control::Fact;
use proto::head::Base;
use proto::id::NodeId;
use proto::quality::{BaseGauges, StoreGauge};
use proto::segment::Segment;

use crate::stage::{Events, Running, World, config, settings};

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcaster_says_where_it_serves_and_how_its_stores_take_slots() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let topic = topic::gauges();
    let mut gauges =
        Tail::open(world.bus.clone(), topic.clone(), Tail::all(&topic), At::End).await.unwrap();
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;

    let mut stored = 0;
    while stored < 2 {
        let store = next_store(&mut gauges).await;
        assert_eq!(store.base, format!("http://{}", broadcaster.addr));
        assert_eq!((store.weight, store.unstored), (100, 0));
        stored += store.stored;
    }

    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pollers_are_told_of_new_weights_in_segments_and_heads() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;
    assert!(broadcaster.head().await.bases.is_empty());

    let bases: Vec<Base> = [("https://cdn-a.example", 1), ("https://cdn-b.example", 100)]
        .map(|(base, weight)| Base { base: base.to_owned(), weight })
        .into();
    let fact = Fact::Bases { bases: bases.clone() };
    let topic = topic::control();
    let key = Some(fact.key().into());
    let value = fact.encode().into();
    world.publish(Publish { topic, partition: PartitionNo(0), term: None, key, value }).await;

    let segment = first_that_names_bases(&mut sealed, &broadcaster).await;
    assert_eq!(segment.header.bases, bases);
    assert_eq!(broadcaster.head().await.bases, bases);
    broadcaster.stop().await;
}

async fn first_that_names_bases(sealed: &mut Events, broadcaster: &Running) -> Segment {
    for slot in 1.. {
        sealed.seal_of(1, slot).await;
        let got = broadcaster.segment(1, slot).await;
        let segment = Segment::decode(&expand(&got.body).unwrap()).unwrap();
        if !segment.header.bases.is_empty() {
            return segment;
        }
        assert!(slot < 10, "no segment names bases");
    }
    unreachable!("the loop has no end of its own")
}

pub(crate) async fn next_store(gauges: &mut Tail) -> StoreGauge {
    loop {
        let Tailed::Records(records) = gauges.next(1).await.unwrap() else { continue };
        let gauges = BaseGauges::decode(&records[0].value).unwrap();
        assert_eq!(gauges.node, NodeId(1));
        if let Some(store) = gauges.store {
            return store;
        }
    }
}
