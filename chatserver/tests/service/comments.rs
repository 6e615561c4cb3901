//! Comments: from uplink to their verdicts and fates.

use proto::frame::Outcome;
use proto::item::Lane;
use proto::verdict::{Fate, Reason, Verdict};

use super::world::*;
use bus::Limits;
use bus::topic;
use proto::envelope::RoomEvent;
use serde_json::json;

#[tokio::test]
async fn a_comment_is_admitted_published_and_answered() {
    let world = World::start().await;
    world.room(json!({})).await;

    world.say("v", &[(1, "hello"), (2, "a\u{202E}b")]).await;
    let accepted = world.accepted().await.next().await;
    let mut replies = world.replies().await;

    assert_eq!((accepted.app, accepted.room), (APP, room()));
    assert_eq!(accepted.item.body.text(), Some("hello"));
    assert_eq!(accepted.item.lane, Lane::Comment);
    let answers = [replies.next().await, replies.next().await];
    assert!(answers.contains(&admitted(1, accepted.item.id)), "{answers:?}");
    assert!(answers.contains(&refused(2, Reason::Shape, 0)), "{answers:?}");
    assert_eq!(world.metric(r#"chatserver_comments_total{verdict="admit"}"#), Some(1));
    assert_eq!(world.metric(r#"chatserver_comments_total{verdict="shape"}"#), Some(1));
}

#[tokio::test]
async fn a_record_that_comes_again_makes_no_second_item() {
    let world = World::start().await;
    world.room(json!({})).await;
    let (mut accepted, mut replies) = (world.accepted().await, world.replies().await);

    world.say("v", &[(1, "hello")]).await;
    let first = replies.next().await;
    world.say("v", &[(1, "hello")]).await;
    let again = replies.next().await;
    world.say("v", &[(2, "another")]).await;

    assert_eq!(first, again);
    assert_eq!(accepted.next().await.item.body.text(), Some("hello"));
    assert_eq!(accepted.next().await.item.body.text(), Some("another"));
}

#[tokio::test]
async fn a_full_bus_is_told_to_the_sender() {
    let world = World::start_with(Limits { records_max: 2, ..Limits::default() }).await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;
    let mut answers = Vec::new();

    for cid in 1..=3 {
        world.say("v", &[(cid, "hello")]).await;
        answers.push(replies.next().await);
    }

    // Nobody reads `accepted` here, so its partition is full after two records.
    assert!(matches!(
        answers[1],
        proto::envelope::Reply::Ack { outcome: Outcome::Verdict(Verdict::Admit(_)), .. }
    ));
    assert_eq!(answers[2], refused(3, Reason::Busy, 1000));
}

#[tokio::test]
async fn a_damaged_record_is_passed_over() {
    let world = World::start().await;
    world.room(json!({})).await;
    let uplink = topic::uplink(proto::id::UnitId(1));
    let partition = uplink.partition_of_viewer(&room(), &viewer_id("v"));
    let value = bytes::Bytes::from_static(b"not a batch");
    world.publish(bus::Publish { topic: uplink, partition, term: None, key: None, value }).await;

    world.say("v", &[(1, "hello")]).await;

    assert_eq!(world.accepted().await.next().await.item.body.text(), Some("hello"));
    assert_eq!(world.metric("chatserver_records_damaged_total"), Some(1));
}

#[tokio::test]
async fn the_sender_hears_that_its_comment_was_shed() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;
    world.say("v", &[(1, "hello")]).await;
    let id = world.accepted().await.next().await.item.id;

    assert_eq!(replies.next().await, admitted(1, id));
    let fates = vec![(id, Fate::Shed { reason: Reason::OverBudget })];
    world.seal(vec![RoomEvent::Fates { fates }]).await;

    assert_eq!(replies.next().await, ack(1, Outcome::Shed(Reason::OverBudget)));
}

#[tokio::test]
async fn it_is_ready_once_buses_and_store_answer() {
    let world = World::start().await;

    world.until("ready", |it| it.health.failures().is_empty()).await;
}

fn admitted(cid: u64, id: proto::id::ItemId) -> proto::envelope::Reply {
    ack(cid, Outcome::Verdict(Verdict::Admit(id)))
}
