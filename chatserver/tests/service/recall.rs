//! What rooms showed, and what is taken back: a tombstone goes the way of gifts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::envelope::RoomEvent;
use proto::id::{Gen, ItemId, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed};
use proto::time::Wall;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::world::*;

#[tokio::test]
async fn a_recalled_item_gets_one_tombstone_however_often_it_is_recalled() {
    let world = World::start().await;
    world.room(json!({})).await;

    let (status, first) = recall(&world, "r", "18446744073709551615").await;
    let (again, second) = recall(&world, "r", "18446744073709551615").await;

    assert_eq!((status, again), (StatusCode::ACCEPTED, StatusCode::OK));
    assert_eq!(first, second);
    let tombstone = world.accepted().await.next().await.item;
    assert_eq!(first["id"], tombstone.id.to_string());
    assert_eq!(tombstone.lane, Lane::Notice);
    assert_eq!(tombstone.body.recalls().map(|it| it.0), Some(u64::MAX));
    assert!(matches!(tombstone.body, Body::Tombstone { .. }));
}

#[tokio::test]
async fn an_erasure_is_asked_of_the_broadcaster_once_also_after_a_recall() {
    let world = World::start().await;
    world.room(json!({})).await;
    recall(&world, "r", "7").await;

    let path = "/v1/rooms/r/items/7/erase";
    let (status, first) = world.call(Method::POST, path, &[], None).await;
    let (again, second) = world.call(Method::POST, path, &[], None).await;

    assert_eq!((status, again), (StatusCode::ACCEPTED, StatusCode::OK));
    assert_eq!(first, second);
    let mut accepted = world.accepted().await;
    assert_eq!(accepted.next().await.item.body, Body::Tombstone { of: ItemId(7) });
    assert_eq!(accepted.next().await.item.body, Body::Erasure { of: ItemId(7) });
}

#[tokio::test]
async fn what_is_no_id_and_another_rooms_item_are_refused() {
    let world = World::start().await;
    world.room(json!({})).await;

    let (no_number, problem) = recall(&world, "r", "one").await;
    let (elsewhere, _) = recall(&world, "another", "1").await;

    assert_eq!(no_number, StatusCode::BAD_REQUEST);
    assert!(problem["title"].as_str().unwrap().starts_with("id: "), "{problem}");
    assert_eq!(elsewhere, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_room_says_what_it_showed_last_without_what_was_recalled_and_what_the_banned_said() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut accepted = world.accepted().await;
    let mut items = Vec::new();
    for (cid, viewer) in [(1, "a"), (2, "b"), (3, "c")] {
        world.say(viewer, &[(cid, viewer)]).await;
        items.push(accepted.next().await.item);
    }

    world.seal(vec![flush(1, items.clone())]).await;
    let first = shown(&world, &["a", "b", "c"]).await;
    recall(&world, "r", &items[0].id.to_string()).await;
    let tombstone = accepted.next().await.item;
    world.seal(vec![flush(2, vec![tombstone])]).await;
    shown(&world, &["b", "c"]).await;
    world.post("/v1/rooms/r/bans", json!({"viewer": "b"})).await;
    shown(&world, &["c"]).await;
    let late = Item { id: ItemId(7), ..items[1].clone() };
    world.seal(vec![flush(3, vec![late, Item { id: ItemId(8), ..items[2].clone() }])]).await;
    shown(&world, &["c", "c"]).await;

    assert_eq!(first["room"], "r");
    let item = &first["items"][0];
    assert_eq!((&item["kind"], &item["gen"]), (&json!("comment"), &json!(1)));
    assert_eq!(item["id"], items[0].id.to_string());
    let (status, _) = world.call(Method::GET, "/v1/rooms/other/items", &[], None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_room_that_is_closed_and_shows_no_notices_takes_recalls_and_erasures() {
    let world = World::start().await;
    let lanes = json!({"notice": 0, "high_gift": 10, "low_gift": 10, "comment": 10});
    world.room(json!({"lanes": lanes})).await;
    let open = recall(&world, "r", "6").await;
    let (status, _) = world.post("/v1/rooms/r/close", json!({})).await;
    assert_eq!(status, StatusCode::OK);

    let recalled = recall(&world, "r", "7").await;
    let erased = world.call(Method::POST, "/v1/rooms/r/items/7/erase", &[], None).await;

    let statuses = [open.0, recalled.0, erased.0];
    assert_eq!(statuses, [StatusCode::ACCEPTED; 3], "{open:?} {recalled:?} {erased:?}");
}

#[tokio::test]
async fn recalls_take_nothing_from_what_notices_may_be() {
    let world = World::start().await;
    world.room(json!({"items_per_s": 10})).await;

    for id in 0..40 {
        assert_eq!(recall(&world, "r", &id.to_string()).await.0, StatusCode::ACCEPTED, "{id}");
    }

    let (status, _) = world.post("/v1/rooms/r/notices", json!({"text": "hello"})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_recall_of_which_nobody_heard_that_it_was_written_is_recorded() {
    let world = World::start().await;
    world.room(json!({})).await;
    world.store_is_mute.store(true, Ordering::Relaxed);
    let (unheard, _) = recall(&world, "r", "7").await;
    world.store_is_mute.store(false, Ordering::Relaxed);

    let (again, _) = recall(&world, "r", "7").await;

    assert_eq!((unheard, again), (StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK));
    let (_, page) = world.call(Method::GET, "/v1/rooms/r/audit", &[], None).await;
    let rows = page["rows"].as_array().unwrap();
    let recalls: Vec<_> = rows.iter().filter(|it| it["act"] == "recall").collect();
    assert_eq!(recalls.len(), 1, "{page}");
    assert_eq!(recalls[0]["on"], "7");
}

/// Waits until the room says that it showed these texts last.
async fn shown(world: &World, texts: &[&str]) -> serde_json::Value {
    let waited = async {
        loop {
            let (_, told) = world.call(Method::GET, "/v1/rooms/r/items", &[], None).await;
            let items = told["items"].as_array().unwrap();
            if items.iter().map(|it| it["text"].as_str().unwrap()).eq(texts.iter().copied()) {
                return told;
            }
            world.clock.sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waited).await;
    waited.unwrap_or_else(|_| panic!("not {texts:?}"))
}

pub(crate) fn flush(slot: u64, items: Vec<Item>) -> RoomEvent {
    let items = (1..).zip(items).map(|(seq, item)| Placed { seq: Seq(seq), item }).collect();
    RoomEvent::Flush { gen_no: Gen(1), slot: SlotNo(slot), part: 0, at: Wall(0), items }
}

async fn recall(world: &World, room: &str, id: &str) -> (StatusCode, serde_json::Value) {
    world.call(Method::DELETE, &format!("/v1/rooms/{room}/items/{id}"), &[], None).await
}
