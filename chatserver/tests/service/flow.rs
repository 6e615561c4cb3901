//! More than a room shows: what passes, what the refused are told, and what links are told.

use bus::{Publish, topic};
use chatserver::Config;
use proto::control::Fact;
use proto::envelope::{LinkGauges, Reply, RoomGauge, UplinkBatch, UplinkEntry};
use proto::frame::Outcome;
use proto::id::NodeId;
use proto::item::Role;
use proto::verdict::{Reason, Verdict};
use serde_json::json;

use super::world::*;

/// Who speaks at once.
const VIEWERS: u64 = 200;

#[tokio::test]
async fn what_a_room_does_not_show_is_refused_with_a_time_to_come_back() {
    let world = World::start().await;
    world.room(json!({"items_per_s": 40})).await;
    let mut replies = world.replies().await;

    speak(&world, Role::Viewer).await;
    let (mut admitted, mut waits) = (0, Vec::new());
    for _ in 0..VIEWERS {
        match outcome(replies.next().await) {
            Verdict::Admit(_) => admitted += 1,
            Verdict::Drop { reason: Reason::RateLimited, retry_after_ms } => {
                waits.push(retry_after_ms);
            }
            other @ (Verdict::Shadow(_) | Verdict::Drop { .. }) => panic!("{other:?}"),
        }
    }

    assert_eq!(admitted, 100, "what it shows in two and a half seconds");
    assert!(waits.iter().all(|it| (1..=10_000).contains(it)), "{waits:?}");
    assert!(waits.is_sorted() && waits.last() > waits.first(), "one after the other: {waits:?}");
}

#[tokio::test]
async fn moderators_are_heard_in_a_room_that_is_full() {
    let world = World::start().await;
    world.room(json!({"items_per_s": 40})).await;
    let mut replies = world.replies().await;

    speak(&world, Role::Moderator).await;

    for _ in 0..VIEWERS {
        let verdict = outcome(replies.next().await);
        assert!(matches!(verdict, Verdict::Admit(_)), "{verdict:?}");
    }
}

#[tokio::test]
async fn links_are_told_to_pass_on_a_share_of_a_flood_and_everything_once_it_is_over() {
    let world = World::start().await;
    world.room(json!({"items_per_s": 40})).await;
    let mut facts = world.facts().await;
    let is_keep = |it: &Fact| matches!(it, Fact::Keep { .. });

    // The first gauges may come before anybody listens.
    let (told, offered) = tokio::join!(facts.find(is_keep), async {
        while world.metric("chatserver_rooms_sampled").unwrap_or(0) == 0 {
            offer(&world, 100).await;
            world.clock.sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    let lapsed = facts.find(is_keep).await;

    let keep = |keep_permille| Fact::Keep { app: APP, room: room(), keep_permille };
    assert_eq!((told, offered), (keep(600), ()), "half as much again as is shown");
    assert_eq!(lapsed, keep(800), "a quarter less a second");
    assert_eq!(facts.find(is_keep).await, keep(1000));
}

#[tokio::test]
async fn chatservers_know_of_each_other() {
    let mut world = World::start().await;
    for shard in 1..=2 {
        let node = NodeId(100 + u32::from(shard));
        world.serve(Config { node, shard, nodes_min: 2, ..Config::default() }).await;
    }

    world.until("three nodes", |it| it.metric("chatserver_flow_nodes") == Some(3)).await;

    let turns = world.metric(r#"chatserver_flow_turns_total{outcome="ok"}"#);
    assert!(turns > Some(0));
}

/// All speak at once.
async fn speak(world: &World, role: Role) {
    let entries = (0..VIEWERS).map(|it| UplinkEntry { role, ..entry(&format!("v{it}"), it, "x") });
    let uplink = topic::uplink(UNIT);
    let partition = uplink.partition_of_viewer(&room(), &viewer_id("v0"));
    let value = UplinkBatch { node: LINK, entries: entries.collect() }.encode();
    world.publish(Publish { topic: uplink, partition, term: None, key: None, value }).await;
}

/// A link says what it was offered.
async fn offer(world: &World, offered: u32) {
    let topic = topic::gauges();
    let partition = topic.partition_of_room(&room());
    let gauge = RoomGauge { app: APP, room: room(), people: 1, sessions: 1, offered };
    let at = world.clock.wall();
    let value = LinkGauges { node: LINK, unit: UNIT, at, rooms: vec![gauge] }.encode();
    world.publish(Publish { topic, partition, term: None, key: None, value }).await;
}

fn outcome(reply: Reply) -> Verdict {
    match reply {
        Reply::Ack { outcome: Outcome::Verdict(verdict), .. } => verdict,
        other @ (Reply::Ack { .. } | Reply::Close { .. }) => panic!("{other:?}"),
    }
}
