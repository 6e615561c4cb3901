//! Segment bases: configured or announced, weighed by what viewers report, handed out in turn.

use bus::{Bus, Publish, topic};
use proto::enter::{EnterRequest, EnterResponse};
use proto::head::Base;
use proto::id::NodeId;
use proto::quality::{BaseGauge, BaseGauges, StoreGauge};
use proto::time::Wall;

use crate::world::{World, ticket};

const A: &str = "https://cdn-a.example";
const B: &str = "https://cdn-b.example";

#[tokio::test]
async fn an_announced_base_is_handed_out_and_published() {
    let world = World::start().await;

    world.until(async || announce(&world).await.first() == Some(&(A.to_owned(), 10_000))).await;
}

#[tokio::test]
async fn configured_bases_take_turns_and_a_bad_one_is_drained() {
    let world = World::start_with(|it| {
        it.segments.resize_with(2, Default::default);
        (it.segments[0].base, it.segments[0].weight) = (A.to_owned(), 3);
        (it.segments[1].base, it.segments[1].weight) = (B.to_owned(), 1);
    });
    let world = world.await;
    world.until(async || !segments(&world).await.is_empty()).await;

    let mut firsts = [0, 0];
    for _ in 0..8 {
        firsts[usize::from(segments(&world).await[0].0 == B)] += 1;
    }
    assert_eq!(firsts, [6, 2]);

    let votes = [(A, 50, 50), (B, 50, 0)].map(|(base, reports, bad)| {
        let base = base.to_owned();
        BaseGauge { base, reports, bad, fetch_ms: 2_000 }
    });
    let is_drained = async || {
        gauge(&world, BaseGauges { bases: votes.to_vec(), ..gauges() }).await;
        let mut segments = segments(&world).await;
        segments.sort();
        segments == [(A.to_owned(), 3), (B.to_owned(), 100)]
    };
    world.until(is_drained).await;
}

#[tokio::test]
async fn viewers_of_a_region_get_its_bases_first() {
    let world = World::start_with(|it| {
        it.region = "south".to_owned();
        it.segments.resize_with(2, Default::default);
        (it.segments[0].base, it.segments[0].weight) = (A.to_owned(), 3);
        (it.segments[1].base, it.segments[1].weight) = (B.to_owned(), 1);
        it.segments[1].region = "south".to_owned();
    });
    let world = world.await;
    world.until(async || !segments(&world).await.is_empty()).await;

    assert_eq!(segments(&world).await, [(B.to_owned(), 100), (A.to_owned(), 0)]);
}

/// A broadcaster says that it serves at A; then what is handed out.
async fn announce(world: &World) -> Vec<(String, u32)> {
    let base = A.to_owned();
    let store = StoreGauge { base, weight: 100, stored: 1, unstored: 0, store_ms: 5 };
    gauge(world, BaseGauges { store: Some(store), ..gauges() }).await;
    segments(world).await
}

/// What the next viewer is handed out.
async fn segments(world: &World) -> Vec<(String, u32)> {
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };
    let answer = world.ask(&request).await;
    if answer.status() != 200 {
        return Vec::new();
    }
    let answer: EnterResponse = answer.json().await.unwrap();
    answer.segments.into_iter().map(|Base { base, weight }| (base, weight)).collect()
}

const fn gauges() -> BaseGauges {
    BaseGauges { node: NodeId(7), at: Wall(0), bases: Vec::new(), store: None }
}

async fn gauge(world: &World, gauges: BaseGauges) {
    let topic = topic::gauges();
    let partition = topic.partition_of_node(gauges.node);
    let value = gauges.encode();
    let record = Publish { topic, partition, term: None, key: None, value };
    let published = world.bus.publish(vec![record]).await;
    assert!(published.iter().all(Result::is_ok), "{published:?}");
}
