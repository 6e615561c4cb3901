//! Gifts and notices: durable, once, and shown.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::envelope::{Accepted, RoomEvent};
use proto::id::{Gen, Seq, SlotNo};
use proto::item::{Body, Lane, Placed};
use proto::time::Wall;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::*;

#[tokio::test]
async fn the_same_key_is_one_gift_also_after_a_restart() {
    let world = World::start().await;
    world.room(json!({})).await;

    let (status, first) = give(&world, "k-1", json!({})).await;
    let (again, repeated) = give(&world, "k-1", json!({})).await;
    let gift = world.accepted().await.next().await;
    let world = world.restart().await;
    let (after, remembered) = give(&world, "k-1", json!({})).await;

    assert_eq!((status, again, after), (StatusCode::ACCEPTED, StatusCode::OK, StatusCode::OK));
    assert_eq!(first["id"], gift.item.id.to_string());
    assert_eq!((&repeated, &remembered), (&first, &first));
    assert_eq!(gift.item.lane, Lane::HighGift);
    assert_eq!(gift.item.body, Body::Gift { gift_no: 7, count: 2, text: "wow".into() });
}

#[tokio::test]
async fn the_same_key_with_other_content_is_refused_and_the_first_counts() {
    let world = World::start().await;
    world.room(json!({})).await;
    give(&world, "k-1", json!({})).await;

    let (status, problem) = give(&world, "k-1", json!({"count": 3})).await;

    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("key_reused")));
    let mut accepted = world.accepted().await;
    give(&world, "k-2", json!({"lane": "low"})).await;
    let both = [accepted.next().await, accepted.next().await];
    assert!(matches!(both[0].item.body, Body::Gift { count: 2, .. }));
    assert_eq!(both[1].item.lane, Lane::LowGift);
}

#[tokio::test]
async fn what_was_not_sealed_is_published_again_after_a_restart_and_then_never() {
    let world = World::start().await;
    world.room(json!({})).await;
    give(&world, "k-1", json!({})).await;
    let first = world.accepted().await.next().await;

    let world = world.restart().await;
    world.clock.step(10_000);
    let again = world.accepted().await.next().await;
    assert_eq!(again, first);
    world.seal(vec![flush(again, 1), seal(1)]).await;
    world.until("closed", |it| it.metric("chatserver_journal_closed_total") == Some(1)).await;

    let world = world.restart().await;
    world.clock.step(10_000);
    give(&world, "k-2", json!({"count": 9})).await;
    let next = world.accepted().await.next().await;
    assert!(matches!(next.item.body, Body::Gift { count: 9, .. }), "{next:?}");
    world.seal(vec![flush(next, 1), seal(1)]).await;
    world.until("closed", |it| it.metric("chatserver_journal_closed_total") == Some(1)).await;
    world.until("scanned", |it| it.metric("chatserver_journal_open_entries") == Some(0)).await;
    assert_eq!(world.metric("chatserver_journal_republished_total"), Some(0));
}

#[tokio::test]
async fn an_open_gift_is_published_again_within_seconds() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut accepted = world.accepted().await;
    give(&world, "k-1", json!({})).await;

    let (first, again) = (accepted.next().await, accepted.next().await);

    assert_eq!(first, again);
    assert_eq!(world.metric("chatserver_journal_open_entries"), Some(1));
}

#[tokio::test]
async fn a_gift_is_not_acknowledged_while_the_store_is_away() {
    let world = World::start().await;
    world.room(json!({})).await;
    world.until("ready", |it| it.health.failures().is_empty()).await;

    for _ in 0..2 {
        world.store_is_away.store(true, Ordering::Relaxed);
        let (status, problem) = give(&world, "k-1", json!({})).await;
        assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("unavailable")));
        let fails = |it: &World| it.health.failures().iter().any(|it| it.0 == "chatserver_store");
        world.until("unready", fails).await;

        world.store_is_away.store(false, Ordering::Relaxed);
        world.until("ready", |it| it.health.failures().is_empty()).await;
    }

    assert_eq!(give(&world, "k-1", json!({})).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_gift_stays_acknowledged_after_its_room_closed() {
    let world = World::start().await;
    world.room(json!({})).await;
    give(&world, "k-1", json!({})).await;
    world.post("/v1/rooms/r/close", json!({})).await;

    assert_eq!(give(&world, "k-1", json!({})).await.0, StatusCode::OK);
    assert_eq!(give(&world, "k-2", json!({})).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn what_a_lane_cannot_show_in_time_is_refused() {
    let world = World::start().await;
    // A guaranteed share of 20 % of 5 is one a second, and 30 in 30 s.
    world.room(json!({"items_per_s": 5})).await;
    let mut statuses = Vec::new();

    for n in 0..35 {
        let (status, body) = give(&world, &format!("k-{n}"), json!({"lane": "low"})).await;
        statuses.push((status, body["retry_after_ms"].as_u64()));
    }

    let accepted = statuses.iter().filter(|it| it.0 == 202).count();
    assert!((30..35).contains(&accepted), "{accepted}");
    let (status, retry_after_ms) = statuses.last().unwrap();
    assert_eq!(*status, StatusCode::TOO_MANY_REQUESTS);
    assert!((1..=1000).contains(&retry_after_ms.unwrap()));
    assert_eq!(give(&world, "k-0", json!({"lane": "low"})).await.0, StatusCode::OK);
    assert_eq!(give(&world, "other-lane", json!({})).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_notice_needs_no_key_and_with_one_is_shown_once() {
    let world = World::start().await;
    world.room(json!({})).await;
    let notify = async |headers: &[(&str, &str)]| {
        let body = Some(json!({"text": "welcome"}));
        let (status, body) = world.call(Method::POST, "/v1/rooms/r/notices", headers, body).await;
        (status.as_u16(), body["id"].clone())
    };

    let free = [notify(&[]).await, notify(&[]).await];
    let keyed =
        [notify(&[("idempotency-key", "n")]).await, notify(&[("idempotency-key", "n")]).await];

    assert_eq!((free[0].0, free[1].0), (202, 202));
    assert_ne!(free[0].1, free[1].1);
    assert_eq!((keyed[0].0, keyed[1].0), (202, 200));
    assert_eq!(keyed[0].1, keyed[1].1);
    assert_eq!(world.accepted().await.next().await.item.lane, Lane::Notice);
}

#[tokio::test]
async fn a_gift_that_is_no_gift_says_why() {
    let world = World::start().await;
    world.room(json!({})).await;
    let check = async |key: &[(&str, &str)], change: Value, field: &str| {
        let (status, problem) =
            world.call(Method::POST, "/v1/rooms/r/gifts", key, Some(gift(change))).await;
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (400, &json!("invalid_field")),
            "{problem}"
        );
        assert!(problem["title"].as_str().unwrap().starts_with(field), "{problem}");
    };
    let key = [("idempotency-key", "k")];

    check(&[], json!({}), "idempotency-key").await;
    check(&[("idempotency-key", "a b")], json!({}), "idempotency-key").await;
    check(&key, json!({"count": 0}), "count").await;
    check(&key, json!({"viewer": ""}), "viewer").await;
    check(&key, json!({"text": "a\nb"}), "text").await;
    check(&key, json!({"text": "x".repeat(2049)}), "text").await;
}

async fn give(world: &World, key: &str, change: Value) -> (StatusCode, Value) {
    let key = [("idempotency-key", key)];
    world.call(Method::POST, "/v1/rooms/r/gifts", &key, Some(gift(change))).await
}

fn gift(change: Value) -> Value {
    let mut gift = json!({"viewer": "v", "gift_no": 7, "count": 2, "text": "wow", "lane": "high"});
    gift.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    gift
}

fn flush(accepted: Accepted, slot: u64) -> RoomEvent {
    RoomEvent::Flush {
        gen_no: Gen(1),
        slot: SlotNo(slot),
        part: 0,
        at: Wall(0) + Duration::from_secs(1),
        items: vec![Placed { seq: Seq(1), item: accepted.item }],
    }
}

fn seal(slot: u64) -> RoomEvent {
    RoomEvent::Seal { gen_no: Gen(1), slot: SlotNo(slot), items: 1, crc: 0 }
}
