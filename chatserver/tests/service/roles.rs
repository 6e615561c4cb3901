//! What people are in a room, who may do what to whom, and the record of it.

use proto::control::{Excluded, Fact, Standing};
use proto::item::Role;
use proto::verdict::Reason;
use reqwest::Method;
use serde_json::{Value, json};

use super::world::*;

#[tokio::test]
async fn a_room_says_who_speaks_and_the_refused_learn_why() {
    let world = World::start().await;
    world.room(json!({"speakers": "listed"})).await;
    let mut replies = world.replies().await;

    world.say("v", &[(1, "hello")]).await;
    assert_eq!(replies.next().await, refused(1, Reason::ListedOnly, 0));
    put(&world, "v", json!({"listed": true})).await;
    world.say("v", &[(2, "hello")]).await;
    let accepted = world.accepted().await.next().await;
    replies.next().await;

    assert_eq!((accepted.item.body.text(), accepted.item.role), (Some("hello"), Role::Viewer));
    let followers = json!({"speakers": "followers"});
    world.call(Method::PATCH, "/v1/rooms/r", &[], Some(followers)).await;
    world.say("w", &[(1, "hello")]).await;
    assert_eq!(replies.next().await, refused(1, Reason::FollowersOnly, 0));
    let many = json!({"viewers": ["w", "x"], "standing": {"follows": true}});
    assert_eq!(world.post("/v1/rooms/r/people", many).await.0, 204);
    world.say("w", &[(2, "hi")]).await;
    assert!(!matches!(replies.next().await, it if it == refused(2, Reason::FollowersOnly, 0)));
}

#[tokio::test]
async fn the_rooms_word_on_a_role_is_what_others_see_and_outlives_a_restart() {
    let world = World::start().await;
    world.room(json!({"mute_all": true})).await;
    put(&world, "v", json!({"role": "moderator"})).await;

    let world = world.restart().await;
    world.say("v", &[(1, "order!")]).await;

    assert_eq!(world.accepted().await.next().await.item.role, Role::Moderator);
    let (_, person) = world.call(Method::GET, "/v1/rooms/r/people/v", &[], None).await;
    assert_eq!(person["role"], "moderator");
    let (_, people) = world.call(Method::GET, "/v1/rooms/r/people", &[], None).await;
    assert_eq!(people["rows"].as_array().unwrap().len(), 1);
    let removed = world.call(Method::DELETE, "/v1/rooms/r/people/v", &[], None).await;
    assert_eq!(removed.0, 204);
    let nobody = Standing::default();
    let ended = Fact::Person { app: APP, room: room(), viewer: viewer_id("v"), standing: nobody };
    world.facts().await.find(|it| *it == ended).await;
}

#[tokio::test]
async fn what_is_done_in_a_persons_name_needs_the_rank_and_is_recorded() {
    let world = World::start().await;
    world.room(json!({})).await;
    put(&world, "mod", json!({"role": "moderator"})).await;
    put(&world, "host", json!({"role": "host"})).await;
    let mute = json!({"viewer": "v", "seconds": 60});

    let by = async |path: &str, body: &Value| world.post(path, body.clone()).await;
    assert_eq!(by("/v1/rooms/r/mutes?by=v", &mute).await.1["code"], "not_allowed");
    assert_eq!(by("/v1/rooms/r/mutes?by=mod&why=spam", &mute).await.0, 200);
    let kick = json!({"viewer": "host"});
    assert_eq!(by("/v1/rooms/r/kicks?by=mod", &kick).await.0, 403);
    assert_eq!(by("/v1/rooms/r/mutes?by=mod&on_role=host", &mute).await.0, 403);
    assert_eq!(by("/v1/rooms/r/close?by=mod", &json!({})).await.0, 403);

    let (_, audit) = world.call(Method::GET, "/v1/rooms/r/audit", &[], None).await;
    let rows = audit["rows"].as_array().unwrap();
    let acts: Vec<_> = rows.iter().map(|it| it["act"].as_str().unwrap()).collect();
    assert_eq!(acts, ["mute", "appoint", "appoint", "create"]);
    assert_eq!((&rows[0]["by"], &rows[0]["on"]), (&json!("mod"), &json!("v")));
    assert_eq!((&rows[0]["why"], &rows[3]["by"]), (&json!("spam"), &Value::Null));
    assert!(rows[0]["until"].as_u64() > rows[0]["at"].as_u64());
}

#[tokio::test]
async fn whoever_is_on_the_allow_list_is_neither_kicked_nor_banned() {
    let world = World::start().await;
    world.room(json!({})).await;
    put(&world, "v", json!({"listed": true})).await;
    let viewer = json!({"viewer": "v"});

    for path in ["/v1/rooms/r/kicks", "/v1/rooms/r/bans"] {
        let (status, problem) = world.post(path, viewer.clone()).await;
        assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("protected")));
    }
    world.call(Method::DELETE, "/v1/rooms/r/people/v", &[], None).await;

    assert_eq!(world.post("/v1/rooms/r/kicks", viewer).await.0, 204);
}

#[tokio::test]
async fn devices_and_ranges_are_excluded_listed_and_readmitted() {
    let world = World::start().await;
    world.room(json!({})).await;
    let path = "/v1/rooms/r/exclusions";
    let range = json!({"range": "203.0.113.0/24"});

    assert_eq!(world.post(path, range.clone()).await.0, 200);
    assert_eq!(world.post(path, json!({"device": "d-1", "seconds": 60})).await.0, 200);
    for bad in [
        json!({}),
        json!({"range": "203.0.113.1/24"}),
        json!({"range": "0.0.0.0/7"}),
        json!({"range": "::/0"}),
        json!({"device": "d", "range": "203.0.113.0/24"}),
    ] {
        assert_eq!(world.post(path, bad.clone()).await.0, 400, "{bad}");
    }
    let (_, listed) = world.call(Method::GET, path, &[], None).await;
    assert_eq!(listed["rows"].as_array().unwrap().len(), 2);
    assert_eq!(listed["rows"][1]["range"], "203.0.113.0/24");
    let gone = format!("{path}/range/203.0.113.0%2F24");
    assert_eq!(world.call(Method::DELETE, &gone, &[], None).await.0, 204);

    let world = world.restart().await;
    let (_, listed) = world.call(Method::GET, path, &[], None).await;
    assert_eq!(listed["rows"].as_array().unwrap().len(), 1);
    let is_device = |it: &Fact| matches!(it, Fact::Exclude { what: Excluded::Device(it), .. } if it.as_str() == "d-1");
    world.facts().await.find(is_device).await;
}

async fn put(world: &World, viewer: &str, standing: Value) {
    let path = format!("/v1/rooms/r/people/{viewer}");
    let (status, body) = world.call(Method::PUT, &path, &[], Some(standing)).await;
    assert_eq!(status, 200, "{body}");
}
