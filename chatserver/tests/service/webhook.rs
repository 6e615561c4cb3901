//! Events for a business server.

use std::collections::BTreeSet;

use auth_core::secret::Secret;
use bus::{Bus, Publish, topic};
use chatserver::{Config, WebhookConfig};
use chatserver_core::webhook::Kind;
use proto::envelope::{Act, UplinkBatch, UplinkEntry};
use reqwest::Method;
use serde_json::{Value, json};

use super::hook::{Hook, Mode, SECRET};
use super::world::*;

fn config(hook: &Hook, change: impl FnOnce(&mut WebhookConfig)) -> Config {
    let mut webhook = WebhookConfig {
        app: APP,
        url: hook.url(),
        secret: Secret::new(SECRET.to_owned()),
        linger_ms: 20,
        ..WebhookConfig::default()
    };
    change(&mut webhook);
    Config { outward: hook.outward(), webhook: vec![webhook], ..Config::default() }
}

/// All events that it heard, a batch that came twice counted once.
fn events(hook: &Hook) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let bodies = hook.heard().into_iter();
    let fresh = bodies.filter(|it| seen.insert(format!("{}/{}", it["run"], it["batch"])));
    fresh.flat_map(|it| it["events"].as_array().unwrap().clone()).collect()
}

fn kinds(hook: &Hook) -> Vec<String> {
    events(hook).iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_happens_in_a_room_is_told_signed_and_in_order() {
    let hook = Hook::start(Mode::Says(json!({}))).await;
    let world = World::start_as(config(&hook, |_| {})).await;
    world.room(json!({})).await;
    let act = |act| UplinkEntry { act, ..entry("v", 0, "") };
    let acts = [act(Act::Join { age_ms: 0 }), act(Act::Join { age_ms: 5 }), entry("v", 1, "\0")];
    let entries = [&acts[..], &[act(Act::Leave)]].concat();

    world.uplink("v", UplinkBatch { node: LINK, entries }).await;
    world.until("viewers' acts", |_| kinds(&hook).len() >= 3).await;
    assert_eq!(world.post("/v1/rooms/r/mutes", json!({"viewer": "v", "seconds": 60})).await.0, 200);
    assert_eq!(world.post("/v1/rooms/r/bans", json!({"viewer": "v", "seconds": 60})).await.0, 200);
    assert_eq!(world.post("/v1/rooms/r/close", json!({})).await.0, 200);
    world.until("moderators' acts", |_| kinds(&hook).contains(&"close".to_owned())).await;

    let told = kinds(&hook);
    let own: BTreeSet<&str> = told[..3].iter().map(String::as_str).collect();
    assert_eq!(own, BTreeSet::from(["join", "leave", "refusal"]));
    assert_eq!(told.iter().filter(|it| *it == "mute").count(), 1);
    let all = events(&hook);
    let of = |kind: &str| all.iter().find(|it| it["kind"] == kind).unwrap();
    assert_eq!(
        (&of("refusal")["reason"], &of("refusal")["account"]),
        (&json!("shape"), &json!("v"))
    );
    assert!(of("mute")["until_ms"].as_u64() > Some(0) && of("join")["room"] == "r");
    assert_eq!(hook.unsigned(), 0);
}

#[tokio::test]
async fn a_room_is_told_to_be_closed_when_it_closes_and_never_again() {
    let hook = Hook::start(Mode::Says(json!({}))).await;
    let world = World::start_as(config(&hook, |_| {})).await;
    world.room(json!({})).await;
    let change = Some(json!({"graphemes_max": 7}));

    world.call(Method::PATCH, "/v1/rooms/r", &[], change.clone()).await;
    world.post("/v1/rooms/r/close", json!({})).await;
    world.post("/v1/rooms/r/close", json!({})).await;
    assert_eq!(world.call(Method::PATCH, "/v1/rooms/r", &[], change).await.0, 200);
    assert_eq!(world.post("/v1/rooms", json!({"room": "r"})).await.0, 200);
    world.post("/v1/rooms", json!({"room": "other"})).await;
    world.post("/v1/rooms/other/mutes", json!({"viewer": "v", "seconds": 60})).await;
    world.until("the last act", |_| kinds(&hook).contains(&"mute".to_owned())).await;

    assert_eq!(kinds(&hook), ["close", "mute"]);
}

#[tokio::test]
async fn a_batch_that_was_not_taken_comes_again_under_its_number() {
    let hook = Hook::start(Mode::Status(500)).await;
    let world = World::start_as(config(&hook, |_| {})).await;
    world.room(json!({})).await;

    world.post("/v1/rooms/r/mutes", json!({"viewer": "v", "seconds": 60})).await;
    world.until("tried", |_| hook.calls() >= 2).await;
    hook.turn(Mode::Says(json!({})));
    world
        .until("told", |it| it.metric(r#"chatserver_events_total{outcome="told"}"#) == Some(1))
        .await;

    assert_eq!(kinds(&hook), ["mute"]);
    let heard = hook.heard();
    assert!(
        heard.iter().all(|it| it["batch"] == heard[0]["batch"] && it["run"] == heard[0]["run"])
    );
    assert!(world.metric(r#"chatserver_event_calls_total{outcome="status"}"#) >= Some(2));
}

#[tokio::test]
async fn a_crowd_is_told_up_to_its_rate_and_the_rest_is_counted() {
    let hook = Hook::start(Mode::Says(json!({}))).await;
    let change = |it: &mut WebhookConfig| {
        it.viewers_per_s_max = 10;
        it.kinds = vec![Kind::Refusal, Kind::Mute];
        it.linger_ms = 500;
    };
    let world = World::start_as(config(&hook, change)).await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;

    let refused: Vec<(u64, &str)> = (0..200).map(|it| (it, "\0")).collect();
    world.say("v", &refused).await;
    for _ in &refused {
        replies.next().await;
    }
    world.post("/v1/rooms/r/mutes", json!({"viewer": "v", "seconds": 60})).await;
    world.until("told", |_| kinds(&hook).contains(&"mute".to_owned())).await;

    let told = kinds(&hook).len() as u64 - 1;
    let missed: u64 = hook.heard().iter().map(|it| it["missed"].as_u64().unwrap()).sum();
    assert!((10..=40).contains(&told), "{told} told");
    assert_eq!(told + missed, 200);
    assert_eq!(world.metric(r#"chatserver_events_total{outcome="rate"}"#), Some(missed));
}

#[tokio::test]
async fn a_dead_receiver_holds_back_no_comment() {
    let hook = Hook::start(Mode::Waits).await;
    let world = World::start_as(config(&hook, |_| {})).await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;

    for cid in 0..100 {
        world.say("v", &[(cid, "\0")]).await;
        replies.next().await;
    }

    assert!(hook.busiest() <= 1, "one batch is under way at a time");
}

#[tokio::test]
async fn all_that_a_crowd_does_in_one_turn_is_told_or_missed() {
    let hook = Hook::start(Mode::Says(json!({}))).await;
    let change = |it: &mut WebhookConfig| {
        it.viewers_per_s_max = 10;
        it.kinds = vec![Kind::Refusal, Kind::Mute];
    };
    let world = World::start_as(config(&hook, change)).await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;

    let topic = topic::uplink(UNIT);
    let partition = topic.partition_of_viewer(&room(), &viewer_id("v"));
    let record = |no: u64| {
        let entries = (no * 1000..(no + 1) * 1000).map(|cid| entry("v", cid, "\0")).collect();
        let value = UplinkBatch { node: LINK, entries }.encode();
        Publish { topic: topic.clone(), partition, term: None, key: None, value }
    };
    let sent = world.bus.publish((0..6).map(record).collect()).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    for _ in 0..6000 {
        replies.next().await;
    }
    let mute = |viewer| world.post("/v1/rooms/r/mutes", json!({"viewer": viewer, "seconds": 60}));
    let mutes = || kinds(&hook).iter().filter(|it| *it == "mute").count();
    mute("v").await;
    let outcome = |world: &World, it| {
        world.metric(&format!(r#"chatserver_events_total{{outcome="{it}"}}"#)).unwrap_or(0)
    };
    let all =
        |world: &World| ["told", "rate", "queue"].map(|it| outcome(world, it)).iter().sum::<u64>();
    world.until("all but the last", |it| all(it) == 6001).await;
    assert_eq!(mutes(), 1);
    mute("w").await;
    world.until("what was missed", |_| mutes() == 2).await;

    let missed: u64 = hook.heard().iter().map(|it| it["missed"].as_u64().unwrap()).sum();
    assert_eq!(kinds(&hook).len() as u64 - 2 + missed, 6000);
    assert!(outcome(&world, "queue") > 0);
    assert_eq!(outcome(&world, "queue") + outcome(&world, "rate"), missed);
}
