//! What is taken back: a tombstone goes the way of gifts.

use proto::item::{Body, Lane};
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
async fn what_is_no_id_and_another_rooms_item_are_refused() {
    let world = World::start().await;
    world.room(json!({})).await;

    let (no_number, problem) = recall(&world, "r", "one").await;
    let (elsewhere, _) = recall(&world, "another", "1").await;

    assert_eq!((no_number, &problem["field"]), (StatusCode::BAD_REQUEST, &json!("id")));
    assert_eq!(elsewhere, StatusCode::NOT_FOUND);
}

async fn recall(world: &World, room: &str, id: &str) -> (StatusCode, serde_json::Value) {
    world.call(Method::DELETE, &format!("/v1/rooms/{room}/items/{id}"), &[], None).await
}
