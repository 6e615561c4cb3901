//! Notice, attributes and counters: versions, compare-and-set, bounds.

use futures_util::future::join_all;
use proto::attribute::{Attribute, Value as Standing};
use proto::control::Fact;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::*;

const NOTICE: &str = "/v1/rooms/r/notice";

#[tokio::test]
async fn of_two_who_change_one_attribute_at_once_one_wins_and_the_other_learns_the_version() {
    let world = World::start().await;
    world.room(json!({})).await;
    let path = "/v1/rooms/r/attributes/theme";
    let first = put(&world, path, "*", json!("red")).await;
    let tag = format!("\"{}\"", first.1["version"]);

    let racers = ["green", "blue"].map(|it| put(&world, path, &tag, json!(it)));
    let ended = join_all(racers).await;

    let won: Vec<_> = ended.iter().filter(|it| it.0 == 200).collect();
    let lost: Vec<_> = ended.iter().filter(|it| it.0 == 412).collect();
    assert_eq!((won.len(), lost.len()), (1, 1));
    let version = won[0].1["version"].to_string();
    assert!(lost[0].1["title"].as_str().unwrap().contains(&version), "{ended:?}");
    let (_, now) = world.call(Method::GET, path, &[], None).await;
    assert_eq!(now, won[0].1);
    let is_winner = |it: &Fact| matches!(it, Fact::Attribute { attribute, .. } if serde_json::to_value(attribute).unwrap() == now);
    world.facts().await.find(is_winner).await;
}

#[tokio::test]
async fn a_notice_is_set_cleared_and_told_again_after_a_restart() {
    let world = World::start().await;
    world.room(json!({})).await;

    let set = world.call(Method::PUT, NOTICE, &[], Some(json!({"text": "welcome"}))).await;
    assert_eq!((set.0, &set.1["value"]), (StatusCode::OK, &json!("welcome")));
    let world = world.restart().await;
    let told = world.facts().await.find(|it| matches!(it, Fact::Attribute { .. })).await;
    let Fact::Attribute { attribute: Attribute { name, version, value }, .. } = told else {
        panic!("no attribute")
    };
    assert_eq!((name.as_str(), value), ("notice", Some(Standing::Text("welcome".into()))));
    assert_eq!(world.call(Method::DELETE, NOTICE, &[], None).await.0, 204);
    let is_cleared = |it: &Fact| {
        let Fact::Attribute { attribute, .. } = it else { return false };
        attribute.value.is_none() && attribute.version > version
    };
    world.facts().await.find(is_cleared).await;
    let (status, problem) =
        world.call(Method::GET, "/v1/rooms/r/attributes/notice", &[], None).await;
    assert_eq!((status.as_u16(), &problem["code"]), (404, &json!("no_attribute")));
    let late = put(&world, "/v1/rooms/r/attributes/notice", "\"0\"", json!("again")).await;
    assert!(late.1["version"].as_u64().unwrap() > version);
}

#[tokio::test]
async fn many_who_add_to_a_counter_at_once_all_count_without_a_record() {
    let world = World::start().await;
    world.room(json!({})).await;
    let path = "/v1/rooms/r/counters/votes";

    let ended = join_all((0..10).map(|_| world.post(path, json!({"add": 3})))).await;

    assert!(ended.iter().all(|it| it.0 == 200), "{ended:?}");
    let (_, votes) = world.call(Method::GET, "/v1/rooms/r/attributes/votes", &[], None).await;
    assert_eq!(votes["value"], 30);
    assert_eq!(world.post(path, json!({"add": -31})).await.1["value"], -1);
    let is_told = |it: &Fact| matches!(it, Fact::Attribute { attribute, .. } if attribute.value == Some(Standing::Count(-1)));
    world.facts().await.find(is_told).await;
    let (_, audit) = world.call(Method::GET, "/v1/rooms/r/audit", &[], None).await;
    assert_eq!(audit["rows"].as_array().unwrap().len(), 1, "{audit}");
    assert_eq!(world.post(path, json!({"add": i64::MAX})).await.0, 400);
    put(&world, "/v1/rooms/r/attributes/theme", "*", json!("red")).await;
    assert_eq!(world.post("/v1/rooms/r/counters/theme", json!({"add": 1})).await.0, 400);
}

#[tokio::test]
async fn a_room_has_a_hundred_attributes_of_bounded_texts() {
    let world = World::start().await;
    world.room(json!({})).await;
    let attribute = |no: u32| format!("/v1/rooms/r/attributes/a{no}");
    for no in 0..100 {
        assert_eq!(put(&world, &attribute(no), "*", json!(no)).await.0, 200);
    }

    assert_eq!(put(&world, &attribute(100), "*", json!(1)).await.1["code"], "too_many");
    assert_eq!(put(&world, &attribute(99), "*", json!("x".repeat(256))).await.0, 200);
    assert_eq!(put(&world, &attribute(99), "*", json!("x".repeat(257))).await.0, 400);
    assert_eq!(put(&world, &attribute(99), "*", json!("a\u{202E}b")).await.0, 400);
    assert_eq!(put(&world, "/v1/rooms/r/attributes/a%20b", "*", json!(1)).await.0, 400);
    let long = json!({"text": "x".repeat(2048)});
    assert_eq!(world.call(Method::PUT, NOTICE, &[], Some(long)).await.0, 200);
    let (_, all) = world.call(Method::GET, "/v1/rooms/r/attributes", &[], None).await;
    assert_eq!(all["rows"].as_array().unwrap().len(), 101);
    world.post("/v1/rooms/r/close", json!({})).await;
    assert_eq!(put(&world, &attribute(1), "*", json!(1)).await.1["code"], "room_closed");
}

async fn put(world: &World, path: &str, version: &str, value: Value) -> (u16, Value) {
    let body = Some(json!({ "value": value }));
    let (status, body) = world.call(Method::PUT, path, &[("if-match", version)], body).await;
    (status.as_u16(), body)
}
