//! What is done once a second: gauges, and forgetting what is old.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, PartitionNo, Publish};
use proto::envelope::{LinkGauges, RoomGauge};
use proto::limits::ENVELOPE_ENTRIES_MAX;
use proto::quality::BaseGauges;

use crate::node::Node;

const EVERY: Duration = Duration::from_secs(1);

/// Beats for ever.
pub(crate) async fn run(node: Arc<Node>, bus: Arc<dyn Bus>) -> anyhow::Result<()> {
    let mut next = node.clock.mono();
    loop {
        tidy(&node);
        let published = tokio::time::timeout(EVERY, publish(&node, bus.as_ref()));
        if published.await.is_err() {
            tracing::debug!("the bus took no gauges");
        }
        next = (next + EVERY).max(node.clock.mono());
        node.clock.sleep_until(next).await;
    }
}

/// Tells leaves when there are some, until there are none.
pub(crate) async fn leaves(node: Arc<Node>) -> anyhow::Result<()> {
    const STEP: Duration = Duration::from_millis(10);
    loop {
        node.left.notified().await;
        while !node.departures.lock().is_empty() {
            node.tell_leaves();
            node.clock.sleep(STEP).await;
        }
    }
}

fn tidy(node: &Node) {
    let now = node.now();
    node.door.tick(now.wall);
    node.failures.lock().tick(now.mono);
    let mut bytes = 0;
    for room in node.rooms.all() {
        bytes += room.change(|ring| {
            ring.tick(now.mono);
            ring.bytes()
        });
    }
    node.counts.ring_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    let ignored = node.boards.lock().ignored();
    node.counts.facts_ignored.set(i64::try_from(ignored).unwrap_or(i64::MAX));
    let refused = node.hub.lock().refused();
    node.counts.rooms_refused.set(i64::try_from(refused).unwrap_or(i64::MAX));
    node.rooms.prune();
}

async fn publish(node: &Node, bus: &dyn Bus) {
    let topic = bus::topic::gauges();
    let mut rooms: Vec<Vec<RoomGauge>> = vec![Vec::new(); topic.partitions as usize];
    for gauge in node.hub.lock().gauges() {
        rooms[topic.partition_of_room(&gauge.room).0 as usize].push(gauge);
    }
    let at = node.clock.wall();
    let mut records = Vec::new();
    for (partition, rooms) in (0..).map(PartitionNo).zip(&rooms) {
        for rooms in rooms.chunks(ENVELOPE_ENTRIES_MAX) {
            let gauges = LinkGauges {
                node: node.config.bus_node(),
                unit: node.config.unit,
                at,
                rooms: rooms.to_vec(),
            };
            records.push(Publish {
                topic: topic.clone(),
                partition,
                term: None,
                key: None,
                value: gauges.encode(),
            });
        }
    }
    let bases = node.quality.lock().drain();
    if !bases.is_empty() {
        let gauges = BaseGauges { node: node.config.bus_node(), at, bases, store: None };
        records.push(Publish {
            partition: topic.partition_of_node(node.config.bus_node()),
            topic,
            term: None,
            key: None,
            value: gauges.encode(),
        });
    }
    for result in bus.publish(records).await {
        if let Err(error) = result {
            tracing::debug!(%error, "the bus took no gauges");
        }
    }
}
