//! The business API: rooms, keys, and every "no" as a problem document.

use bus::{Publish, topic};
use proto::control::Fact;
use proto::envelope::{LinkGauges, RoomGauge};
use proto::id::UnitId;
use reqwest::Method;
use serde_json::json;

use super::world::*;

#[tokio::test]
async fn a_room_is_made_once_and_belongs_to_its_app() {
    let world = World::start().await;
    let body = json!({"room": "r", "settings": {"slow_mode_ms": 500}});

    let (first, made) = world.post("/v1/rooms", body.clone()).await;
    let (again, there) = world.post("/v1/rooms", json!({"room": "r"})).await;
    let other = world.request(Method::POST, "/v1/rooms").bearer_auth("key-2").json(&body);
    let (taken, problem) = answer(other).await;
    let (hidden, _) = answer(world.request(Method::GET, "/v1/rooms/r").bearer_auth("key-2")).await;

    assert_eq!((first.as_u16(), again.as_u16()), (201, 200));
    assert_eq!(made["settings"]["slow_mode_ms"], 500);
    assert_eq!(made, there);
    assert_eq!((taken.as_u16(), &problem["code"]), (409, &json!("room_taken")));
    assert_eq!(hidden, 404);
}

#[tokio::test]
async fn settings_change_by_name_and_by_version() {
    let world = World::start().await;
    world.room(json!({"graphemes_max": 50})).await;
    let patch = async |headers: &[(&str, &str)], body| {
        let (status, body) = world.call(Method::PATCH, "/v1/rooms/r", headers, Some(body)).await;
        (status.as_u16(), body)
    };

    let (status, changed) = patch(&[], json!({"mute_all": true})).await;
    assert_eq!((status, &changed["version"]), (200, &json!(2)));
    assert_eq!(changed["settings"]["graphemes_max"], 50);
    assert_eq!(patch(&[("if-match", "\"2\"")], json!({"mute_all": false})).await.0, 200);
    assert_eq!(patch(&[("if-match", "\"2\"")], json!({"mute_all": true})).await.0, 412);
    assert_eq!(patch(&[], json!({"graphemes_max": 0})).await.0, 400);
    assert_eq!(patch(&[], json!({"no_such": 1})).await.0, 400);
    let (_, now) = world.call(Method::GET, "/v1/rooms/r", &[], None).await;
    assert_eq!((&now["version"], &now["settings"]["mute_all"]), (&json!(3), &json!(false)));
    world.facts().await.find(|it| matches!(it, Fact::Room(it) if it.version == 3)).await;
}

#[tokio::test]
async fn a_closed_room_takes_nothing_more() {
    let world = World::start().await;
    world.room(json!({})).await;

    let (status, closed) = world.post("/v1/rooms/r/close", json!({})).await;
    let (again, _) = world.post("/v1/rooms/r/close", json!({})).await;
    let (notice, problem) = world.post("/v1/rooms/r/notices", json!({"text": "late"})).await;

    assert_eq!((status.as_u16(), again.as_u16()), (200, 200));
    assert_eq!((&closed["open"], &closed["version"]), (&json!(false), &json!(2)));
    assert_eq!((notice.as_u16(), &problem["code"]), (409, &json!("room_closed")));
}

#[tokio::test]
async fn an_apps_rooms_are_listed_without_those_of_others() {
    let world = World::start().await;
    for room in ["b", "a"] {
        world.post("/v1/rooms", json!({"room": room})).await;
    }
    let other = world.request(Method::POST, "/v1/rooms").bearer_auth("key-2");
    answer(other.json(&json!({"room": "c"}))).await;

    let (_, all) = world.call(Method::GET, "/v1/rooms", &[], None).await;
    let (_, rest) = world.call(Method::GET, "/v1/rooms?after=a", &[], None).await;

    assert_eq!(all["rooms"].as_array().unwrap().len(), 2);
    assert_eq!(all["next"], json!(null));
    assert_eq!(rest["rooms"][0]["room"], "b");
}

#[tokio::test]
async fn an_app_has_so_many_rooms() {
    let world =
        World::start_as(chatserver::Config { app_rooms_max: 2, ..Default::default() }).await;
    let made = async |room: &str| world.post("/v1/rooms", json!({ "room": room })).await;

    let statuses = [made("a").await.0, made("a").await.0, made("b").await.0];
    let (status, problem) = made("c").await;
    let other = world.request(Method::POST, "/v1/rooms").bearer_auth("key-2");
    let (others, _) = answer(other.json(&json!({"room": "c"}))).await;

    assert_eq!(statuses.map(|it| it.as_u16()), [201, 200, 201]);
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("too_many")));
    assert_eq!(others, 201);
}

#[tokio::test]
async fn an_app_may_have_more_than_others_and_sees_what_it_has() {
    let own = chatserver::QuotaConfig {
        app: APP,
        rooms_max: Some(2),
        ..chatserver::QuotaConfig::default()
    };
    let config =
        chatserver::Config { app_rooms_max: 1, quota: vec![own], ..chatserver::Config::default() };
    let world = World::start_as(config).await;
    for room in ["r", "s"] {
        assert_eq!(world.post("/v1/rooms", json!({ "room": room })).await.0, 201);
    }
    world.post("/v1/rooms/r/mutes", json!({"viewer": "v", "seconds": 60})).await;
    let words = json!({"words": [{"text": "bad", "action": "refuse"}]});
    world.call(Method::PUT, "/v1/words", &[], Some(words)).await;

    let (status, quota) = world.call(Method::GET, "/v1/quota", &[], None).await;
    let other = async |room: &str| {
        let request = world.request(Method::POST, "/v1/rooms").bearer_auth("key-2");
        answer(request.json(&json!({ "room": room }))).await.0.as_u16()
    };

    assert_eq!((status.as_u16(), &quota["rooms"]), (200, &json!({"used": 2, "max": 2})));
    assert_eq!((&quota["acts"]["used"], &quota["words"]["used"]), (&json!(1), &json!(1)));
    assert_eq!((other("a").await, other("b").await), (201, 409));
}

#[tokio::test]
async fn online_is_what_the_links_count() {
    let world = World::start().await;
    world.room(json!({})).await;
    let gauge = RoomGauge { app: APP, room: room(), people: 3, sessions: 4, offered: 0 };
    let topic = topic::gauges();
    let partition = topic.partition_of_room(&room());

    // Links count every second; the first counts may come before anybody listens.
    let online = loop {
        let at = world.clock.wall();
        let rooms = vec![gauge.clone()];
        let value = LinkGauges { node: LINK, unit: UnitId(1), at, rooms }.encode();
        let topic = topic.clone();
        world.publish(Publish { topic, partition, term: None, key: None, value }).await;
        let (_, online) = world.call(Method::GET, "/v1/rooms/r/online", &[], None).await;
        if online["people"] != 0 {
            break online;
        }
    };

    assert_eq!(online, json!({"room": "r", "people": 3, "sessions": 4}));
}

#[tokio::test]
async fn every_no_is_a_problem_document() {
    let world = World::start().await;
    world.room(json!({})).await;
    let get = |path: &str| world.request(Method::GET, path);
    let post = |body: &'static str| {
        let request = world.request(Method::POST, "/v1/rooms").bearer_auth("key-1");
        request.header("content-type", "application/json").body(body)
    };

    check(get("/v1/rooms/r"), 401, "unauthorized").await;
    check(get("/v1/rooms/r").bearer_auth("wrong"), 401, "unauthorized").await;
    check(get("/v1/rooms/none").bearer_auth("key-1"), 404, "no_room").await;
    check(get("/v1/rooms/..%2fx").bearer_auth("key-1"), 400, "invalid_field").await;
    check(get("/nowhere"), 404, "not_found").await;
    check(world.request(Method::PUT, "/v1/rooms"), 405, "method_not_allowed").await;
    check(get("/v1/rooms/%ff").bearer_auth("key-1"), 400, "invalid_form").await;
    check(get("/v1/rooms?before=x").bearer_auth("key-1"), 400, "invalid_form").await;
    check(post("{"), 400, "invalid_form").await;
    check(post(r#"{"room": "r", "more": 1}"#), 422, "invalid_form").await;
    check(post(r#"{"room": "a b"}"#), 400, "invalid_field").await;
    check(post(r#"{"room": "x", "settings": {"interval_ms": 1}}"#), 400, "invalid_field").await;
    let no_json = world.request(Method::POST, "/v1/rooms").bearer_auth("key-1").body("{}");
    check(no_json, 415, "invalid_form").await;
    let huge = world.request(Method::POST, "/v1/rooms").bearer_auth("key-1");
    check(huge.json(&json!({"room": "x".repeat(300_000)})), 413, "invalid_form").await;
}

async fn check(request: reqwest::RequestBuilder, status: u16, code: &str) {
    let response = request.send().await.unwrap();

    assert_eq!(response.status().as_u16(), status, "{code}");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: serde_json::Value =
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)));
}
