//! Whose reports count, and for how long.

use std::net::SocketAddr;
use std::sync::Arc;

use gslb::table::{Fault, FaultyTable};
use gslb::{LoadTable, MemoryTable};
use proto::id::NodeId;
use proto::load::{Load, LoadReport};
use proto::time::Wall;

use crate::world::{GSLB, World, node_of, report, secret, sign, ticket};

#[tokio::test]
async fn a_node_that_falls_silent_or_drains_leaves_the_answers() {
    let world = World::start().await;
    let silent = world.link(2).await;
    let draining = world.link(3).await;
    let _staying = world.link(4).await;
    world.ready().await;
    world.until(async || nodes(&world).await.len() == 3).await;

    drop(silent);
    world.until(async || nodes(&world).await.len() == 2).await;
    draining.load.lock().draining = true;
    world.until(async || nodes(&world).await.len() == 1).await;

    for _ in 0..20 {
        assert_eq!(nodes(&world).await, [NodeId(4)]);
    }
}

#[tokio::test]
async fn only_what_a_link_signed_itself_counts() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let load = Load { sessions_max: 1_000, ..Load::default() };
    let forged = |node, by| sign(&report(node, Wall(1), 1, load), &secret(NodeId(by)));
    let mut flipped = forged(3, 3);
    flipped[20] ^= 1;

    world.send(&forged(3, 2)).await;
    world.send(&forged(99, 99)).await;
    world.send(&forged(GSLB.0, GSLB.0)).await;
    world.send(&flipped).await;
    world.send(b"").await;
    world.send(&[7; 1_000]).await;
    world.send(&[7; 9_000]).await;

    let heard = |outcome| world.count(&format!("gslb_datagrams_total{{outcome=\"{outcome}\"}}"));
    let refused = || {
        let refused = ["wrong_mac", "unknown_node", "malformed", "too_large"];
        refused.map(heard).iter().sum::<u64>()
    };
    world.until(async || refused() == 7).await;
    assert_eq!(heard("unknown_node"), 2);
    assert_eq!(heard("too_large"), 1);
    assert!(heard("wrong_mac") >= 1);
    assert_eq!(heard("joined"), 1);
    assert_eq!(nodes(&world).await, [NodeId(2)]);
}

#[tokio::test]
async fn a_node_counts_only_where_it_is_configured_to_be() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let load = Load { sessions_max: 1_000, ..Load::default() };
    let elsewhere = report(4, Wall(1), 1, load).addresses;
    let own = report(3, Wall(1), 1, load);
    let published = LoadReport { addresses: elsewhere.clone(), ..own.clone() };
    let reserve = LoadReport { reserve: elsewhere, ..own };

    world.send(&sign(&published, &secret(NodeId(3)))).await;
    world.send(&sign(&reserve, &secret(NodeId(3)))).await;

    let foreign = r#"gslb_datagrams_total{outcome="foreign_host"}"#;
    world.until(async || world.count(foreign) == 2).await;
    assert_eq!(nodes(&world).await, [NodeId(2)]);
}

#[tokio::test]
async fn a_replayed_report_counts_for_nothing() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let full = Load { sessions_max: 1_000, sessions: 1_000, ..Load::default() };
    let old = sign(&report(2, Wall(1), 1, full), &secret(NodeId(2)));

    world.send(&old).await;

    let replayed = r#"gslb_datagrams_total{outcome="replayed"}"#;
    world.until(async || world.count(replayed) == 1).await;
    assert_eq!(nodes(&world).await, [NodeId(2)]);
}

#[tokio::test]
async fn a_gslb_without_a_collector_answers_from_the_table() {
    let mut world = World::start().await;
    let _link = world.link(2).await;
    world.start_gslb(|config| config.collector.enabled = false).await;
    world.ready().await;

    world.until(async || nodes(&world).await == [NodeId(2)]).await;

    let values = world.table.get().await.unwrap();
    assert_eq!(values.iter().map(|it| &*it.region).collect::<Vec<_>>(), ["local"]);
}

#[tokio::test]
async fn while_the_table_is_away_answers_go_on_from_the_last_picture() {
    let table = FaultyTable::new(MemoryTable::new());
    let mut world = World::start_without_auth(SocketAddr::from(([127, 0, 0, 1], 0)));
    world.table = Arc::clone(&table) as Arc<dyn LoadTable>;
    world.start_auth(world.gslb).await;
    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;
    world.ready().await;
    let is_told = async || world.health.warnings().iter().any(|it| it.0 == "gslb.table");

    for fault in [Fault::Away, Fault::Stale, Fault::Silent] {
        table.set(fault);
        world.until(is_told).await;
        assert_eq!(nodes(&world).await, [NodeId(2)], "{fault:?}");

        table.set(Fault::None);
        world.until(async || !is_told().await).await;
        assert_eq!(nodes(&world).await, [NodeId(2)], "{fault:?}");
    }
    assert!(world.count(r#"gslb_table_failures_total{operation="get"}"#) > 0);
    assert!(world.count(r#"gslb_table_failures_total{operation="put"}"#) > 0);
}

/// The nodes that one viewer is sent to, by number.
async fn nodes(world: &World) -> Vec<NodeId> {
    let answer = world.enter(&ticket("viewer")).await;
    let mut nodes: Vec<_> = answer.addresses.iter().map(|it| node_of(&it.address)).collect();
    nodes.sort();
    nodes.dedup();
    nodes
}
