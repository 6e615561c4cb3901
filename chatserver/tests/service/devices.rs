//! A room that takes one device: the newer session closes the older, and records that come again
//! close nobody.

use std::time::Duration;

use bus::{PartitionNo, Publish, topic};
use chatserver::Config;
use proto::close::CloseCode;
use proto::control::Fact;
use proto::envelope::{Act, Reply, UplinkBatch, UplinkEntry};
use proto::frame::Outcome;
use proto::id::{NodeId, SessionId, UnitId};
use proto::policy::{Policy, PolicyFact};
use proto::verdict::{Reason, Verdict};
use serde_json::json;

use super::world::*;

/// A session comes in.
const CAME: Act = Act::Join { age_ms: 0 };

#[tokio::test]
async fn the_newer_session_closes_the_older_one_within_a_second() {
    let world = single_device_room().await;
    let mut facts = world.facts().await;

    world.come(LINK, 1, CAME).await;
    world.come(NodeId(71), 2, CAME).await;
    let told = world.clock.mono();

    let closed = facts.find(is_close).await;
    assert!(world.clock.mono().since(told) < Duration::from_secs(1));
    assert_eq!(closed, close(LINK, 1));
    assert_eq!(world.metric("chatserver_devices_closed_total"), Some(1));
}

#[tokio::test]
async fn the_rule_holds_across_units() {
    const OTHER: UnitId = UnitId(2);
    let mut world = single_device_room().await;
    let other = Config { node: NodeId(4), unit: OTHER, shard: 1, ..Config::default() };
    world.serve(other).await;
    let mut facts = world.facts().await;

    world.come_in(OTHER, NodeId(90), 1, CAME).await;
    world.come(LINK, 2, CAME).await;
    assert_eq!(facts.find(is_close).await, close(NodeId(90), 1));

    world.come_in(OTHER, NodeId(90), 3, CAME).await;
    facts.find(|it| *it == close(LINK, 2)).await;
}

#[tokio::test]
async fn after_a_restart_the_newest_session_is_still_known() {
    let world = single_device_room().await;
    world.come(LINK, 1, CAME).await;
    world.come(LINK, 1, Act::Leave).await;
    world.come(LINK, 2, CAME).await;
    world.come(LINK, 3, CAME).await;
    world.facts().await.find(|it| *it == close(LINK, 2)).await;

    let world = world.restart().await;
    world.take_one_device().await;
    let mut facts = world.facts().await;
    // Both renew themselves; the first one is told that it has to go.
    world.come(LINK, 2, ago(1)).await;
    world.come(LINK, 3, ago(1)).await;
    world.come(NodeId(71), 4, CAME).await;

    assert_eq!(facts.find(is_close).await, close(LINK, 3), "the only one that has to go");
}

#[tokio::test]
async fn of_those_who_were_in_before_the_rule_the_younger_stays_whichever_renews_first() {
    let (older, younger) = ((LINK, 1, ago(120)), (NodeId(71), 2, ago(60)));
    for renewals in [[older.clone(), younger.clone()], [younger, older]] {
        let world = World::start().await;
        world.room(json!({})).await;
        world.come(LINK, 1, CAME).await;
        world.come(NodeId(71), 2, CAME).await;
        world.take_one_device().await;
        let mut facts = world.facts().await;

        for (node, session, act) in renewals {
            world.come(node, session, act).await;
        }
        assert_eq!(facts.find(is_close).await, close(LINK, 1));

        world.come(LINK, 3, CAME).await;
        assert_eq!(facts.find(is_close).await, close(NodeId(71), 2), "it was there until now");
    }
}

#[tokio::test]
async fn without_a_room_store_comments_go_on() {
    let world = single_device_room().await;
    let mut replies = world.replies().await;

    world.store_is_away.store(true, std::sync::atomic::Ordering::Relaxed);
    world.come(LINK, 1, CAME).await;
    world.say("v", &[(1, "hello")]).await;

    replies.next().await;
    world.until("counted", |it| it.metric("chatserver_devices_failed_total") == Some(1)).await;
}

async fn single_device_room() -> World {
    let world = World::start().await;
    world.room(json!({})).await;
    world.take_one_device().await;
    world
}

/// A session says again that it is there, so long after it came in.
fn ago(age_s: u32) -> Act {
    Act::Join { age_ms: age_s * 1000 }
}

fn is_close(fact: &Fact) -> bool {
    matches!(fact, Fact::Close { .. })
}

fn close(node: NodeId, session: u64) -> Fact {
    Fact::Close { node, session: SessionId(session), code: CloseCode::OtherDevice.code() }
}

impl World {
    /// Lets the room take one device of a viewer, and waits until the chatserver knows.
    async fn take_one_device(&self) {
        let policy = Policy { single_device: true, ..Policy::default() };
        let (app, room, policy) = (APP, Some(room()), Some(policy));
        self.tell(Fact::Policy(PolicyFact { app, room, version: 1, policy })).await;
        // A mute that is told later bites: all facts before it were learned.
        let until = self.clock.wall() + Duration::from_secs(60);
        let (room, viewer) = (self::room(), viewer_id("m"));
        self.tell(Fact::Mute { app, room, viewer, until }).await;
        let mut replies = self.replies().await;
        for cid in 1.. {
            self.say("m", &[(cid, "hello")]).await;
            if let Reply::Ack { outcome: Outcome::Verdict(verdict), .. } = replies.next().await
                && matches!(verdict, Verdict::Drop { reason: Reason::Muted, .. })
            {
                return;
            }
        }
    }

    async fn tell(&self, fact: Fact) {
        let (topic, key, value) = (topic::control(), fact.key().into(), fact.encode().into());
        let partition = PartitionNo(0);
        self.publish(Publish { topic, partition, term: None, key: Some(key), value }).await;
    }

    /// Publishes that a session of `v` came or went.
    async fn come(&self, node: NodeId, session: u64, act: Act) {
        self.come_in(UNIT, node, session, act).await;
    }

    async fn come_in(&self, unit: UnitId, node: NodeId, session: u64, act: Act) {
        let session = SessionId(session);
        let entry = UplinkEntry { session, act, ..entry("v", 0, "") };
        let uplink = topic::uplink(unit);
        let partition = uplink.partition_of_viewer(&entry.room, &entry.viewer);
        let value = UplinkBatch { node, entries: vec![entry] }.encode();
        self.publish(Publish { topic: uplink, partition, term: None, key: None, value }).await;
        let taken = self.clock.wall();
        self.until("later", |it| it.clock.wall() > taken).await;
    }
}
