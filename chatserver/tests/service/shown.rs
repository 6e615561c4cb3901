//! System messages, entry effects and items of an app's own: once for their key, as gifts.

use proto::id::KindName;
use proto::item::{Body, Lane};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::*;

#[tokio::test]
async fn each_kind_goes_to_the_lane_of_its_value_and_is_shown_once_for_its_key() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut accepted = world.accepted().await;
    let custom = json!({"name": "lottery", "text": "{\"prize\": 1}", "lane": "notice"});
    let effect = |lane: &str| json!({"viewer": "v", "effect_no": 7, "lane": lane});
    let came_in = Body::Effect { effect_no: 7, text: String::new() };
    let name = KindName::parse("lottery").unwrap();
    let lottery = Body::Custom { name, text: "{\"prize\": 1}".to_owned() };
    let begins = Body::System { text: "the match begins".to_owned() };
    let rows = [
        ("system-messages", json!({"text": "the match begins"}), Lane::Notice, begins),
        ("entry-effects", effect("high"), Lane::HighGift, came_in.clone()),
        ("entry-effects", effect("low"), Lane::LowGift, came_in),
        ("custom-items", custom, Lane::Notice, lottery),
    ];

    for (no, (path, body, lane, shown)) in rows.into_iter().enumerate() {
        let key = format!("k-{no}");
        let (first, given) = show(&world, path, &key, body.clone()).await;
        let (again, repeated) = show(&world, path, &key, body.clone()).await;
        let item = accepted.next().await.item;

        assert_eq!((first, again), (StatusCode::ACCEPTED, StatusCode::OK), "{given}");
        assert_eq!((&given, &given["id"]), (&repeated, &json!(item.id)));
        assert_eq!((item.lane, item.body), (lane, shown), "{path}");
    }
}

#[tokio::test]
async fn one_key_is_one_item_whatever_its_kind() {
    let world = World::start().await;
    world.room(json!({})).await;

    let (first, _) = show(&world, "system-messages", "k", json!({"text": "a"})).await;
    let (other, problem) = show(&world, "notices", "k", json!({"text": "a"})).await;

    assert_eq!((first, other), (StatusCode::ACCEPTED, StatusCode::CONFLICT));
    assert_eq!(problem["code"], "key_reused");
}

#[tokio::test]
async fn what_is_out_of_bounds_is_refused() {
    let world = World::start().await;
    world.room(json!({})).await;
    let long = "x".repeat(2049);
    let rows = [
        ("system-messages", json!({"text": ""}), 400),
        ("system-messages", json!({"text": long}), 400),
        ("entry-effects", json!({"viewer": "v", "effect_no": 1}), 422),
        ("entry-effects", json!({"viewer": "", "effect_no": 1, "lane": "low"}), 400),
        ("custom-items", json!({"name": "two words", "lane": "low"}), 400),
        ("custom-items", json!({"name": "n", "text": long, "lane": "low"}), 400),
        ("custom-items", json!({"name": "n", "lane": "comment"}), 422),
    ];

    for (path, body, expected) in rows {
        let (status, problem) = show(&world, path, "k", body).await;
        assert_eq!(status.as_u16(), expected, "{path} {problem}");
    }
    let body = json!({"name": "n", "lane": "low"});
    let (status, problem) = world.post("/v1/rooms/r/custom-items", body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
}

async fn show(world: &World, path: &str, key: &str, body: Value) -> (StatusCode, Value) {
    let headers = [("idempotency-key", key)];
    world.call(Method::POST, &format!("/v1/rooms/r/{path}"), &headers, Some(body)).await
}
