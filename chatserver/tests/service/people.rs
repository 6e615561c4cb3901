//! Mutes, bans and kicks: they bite, they are told, they outlive a restart.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bus::{Bus as _, Limits, PartitionNo, Publish, topic};
use bytes::Bytes;
use chatserver::Config;
use futures_util::future::join_all;
use proto::control::Fact;
use proto::envelope::Reply;
use proto::frame::Outcome;
use proto::id::AppId;
use proto::time::Wall;
use proto::verdict::{Reason, Verdict};
use reqwest::Method;
use serde_json::json;

use super::world::*;

#[tokio::test]
async fn a_mute_bites_until_it_is_taken_back() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;

    let (status, _) = world.post("/v1/rooms/r/mutes", json!({"viewer": "v", "seconds": 60})).await;
    assert_eq!(status, 200);
    world.say("v", &[(1, "hello")]).await;
    let muted = replies.next().await;
    let (status, _) = world.call(Method::DELETE, "/v1/rooms/r/mutes/v", &[], None).await;
    world.say("v", &[(2, "hello")]).await;
    let free = replies.next().await;

    let retry_after_ms = refusal(&muted, Reason::Muted).expect("a mute");
    assert!((50_000..=60_000).contains(&retry_after_ms));
    assert_eq!(status, 204);
    assert_eq!(refusal(&free, Reason::Muted), None);
    let lifted = Fact::Mute { app: APP, room: room(), viewer: viewer_id("v"), until: Wall(0) };
    world.facts().await.find(|it| *it == lifted).await;
}

#[tokio::test]
async fn a_mute_whose_write_happened_unsaid_is_told() {
    let world = World::start().await;
    world.room(json!({})).await;
    world.store_is_mute.store(true, Ordering::Relaxed);

    let mute = json!({"viewer": "v", "seconds": 60});
    let (status, problem) = world.post("/v1/rooms/r/mutes", mute).await;
    world.store_is_mute.store(false, Ordering::Relaxed);

    assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("unavailable")));
    let is_mute = |it: &Fact| matches!(it, Fact::Mute { until, .. } if *until > Wall(0));
    world.facts().await.find(is_mute).await;
}

#[tokio::test]
async fn a_mute_through_another_chatserver_bites_here_within_a_second() {
    let world = World::start().await;
    world.room(json!({"viewer_burst": 1000})).await;
    let mut replies = world.replies().await;
    world.say("v", &[(0, "hello")]).await;
    assert_eq!(refusal(&replies.next().await, Reason::Muted), None);

    let until = world.clock.wall() + Duration::from_secs(60);
    let mute = Fact::Mute { app: APP, room: room(), viewer: viewer_id("v"), until };
    let (topic, key, value) = (topic::control(), mute.key().into(), mute.encode().into());
    let partition = PartitionNo(0);
    world.publish(Publish { topic, partition, term: None, key: Some(key), value }).await;
    let told = world.clock.mono();

    for cid in 1.. {
        world.say("v", &[(cid, "hello")]).await;
        if refusal(&replies.next().await, Reason::Muted).is_some() {
            break;
        }
        assert!(world.clock.mono().since(told) < Duration::from_secs(1));
    }
}

#[tokio::test]
async fn rooms_and_acts_are_told_again_after_a_restart() {
    let world = World::start().await;
    world.room(json!({"graphemes_max": 3})).await;
    world.post("/v1/rooms/r/mutes", json!({"viewer": "m", "seconds": 600})).await;
    world.post("/v1/rooms/r/bans", json!({"viewer": "b"})).await;
    world.post("/v1/rooms/r/kicks", json!({"viewer": "k"})).await;

    let world = world.restart().await;
    let mut facts = world.facts().await;
    let is_room = |it: &Fact| matches!(it, Fact::Room(it) if it.settings.graphemes_max == 3);
    facts.find(is_room).await;
    // In the order of their keys.
    facts.find(|it| matches!(it, Fact::Ban { viewer, .. } if *viewer == viewer_id("b"))).await;
    facts.find(|it| matches!(it, Fact::Kick { viewer, .. } if *viewer == viewer_id("k"))).await;
    facts.find(|it| matches!(it, Fact::Mute { viewer, .. } if *viewer == viewer_id("m"))).await;
    world.say("m", &[(1, "a")]).await;
    world.say("x", &[(2, "four")]).await;

    let mut replies = world.replies().await;
    let answers = [replies.next().await, replies.next().await];
    assert!(answers.contains(&refused(2, Reason::TooLong, 0)), "{answers:?}");
    assert!(answers.iter().any(|it| refusal(it, Reason::Muted).is_some()), "{answers:?}");
}

#[tokio::test]
async fn a_ban_without_an_end_is_for_ever_and_can_be_taken_back() {
    let world = World::start().await;
    world.room(json!({})).await;

    let (status, ban) = world.post("/v1/rooms/r/bans", json!({"viewer": "v"})).await;
    let (lifted, _) = world.call(Method::DELETE, "/v1/rooms/r/bans/v", &[], None).await;

    assert_eq!(status, 200);
    assert!(ban["until"].as_u64().unwrap() > world.clock.wall().0 + 1_000_000_000_000);
    assert_eq!(lifted, 204);
    let ended = Fact::Ban { app: APP, room: room(), viewer: viewer_id("v"), until: Wall(0) };
    world.facts().await.find(|it| *it == ended).await;
}

#[tokio::test]
async fn a_mute_without_sense_says_why() {
    let world = World::start().await;
    world.room(json!({})).await;

    for body in [json!({"viewer": "v", "seconds": 0}), json!({"viewer": "a\u{0}", "seconds": 5})] {
        let (status, problem) = world.post("/v1/rooms/r/mutes", body).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("invalid_field")));
    }
    let (status, problem) = world.post("/v1/rooms/r/mutes", json!({"viewer": "v"})).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("invalid_form")));
}

/// When to try again, if `reply` refuses for this reason.
fn refusal(reply: &Reply, expected: Reason) -> Option<u32> {
    let Reply::Ack { outcome: Outcome::Verdict(verdict), .. } = reply else { return None };
    let Verdict::Drop { reason, retry_after_ms } = *verdict else { return None };
    (reason == expected).then_some(retry_after_ms)
}

#[tokio::test]
async fn a_mute_at_the_instant_of_a_send_bites_once_and_for_all() {
    let world = World::start().await;
    world.room(json!({"viewer_burst": 1000, "items_per_s": 2000})).await;
    let mut replies = world.replies().await;
    const SENT: u64 = 200;

    let sending = async {
        for cid in 0..SENT {
            world.say("v", &[(cid, "hello")]).await;
        }
    };
    let mute = json!({"viewer": "v", "seconds": 60});
    let ((), (status, _)) = tokio::join!(sending, world.post("/v1/rooms/r/mutes", mute));
    world.say("v", &[(SENT, "after the answer")]).await;

    assert_eq!(status, 200);
    let mut verdicts = std::collections::BTreeMap::new();
    while verdicts.len() <= usize::try_from(SENT).unwrap() {
        let Reply::Ack { cid, outcome: Outcome::Verdict(verdict), .. } = replies.next().await
        else {
            panic!("no verdict")
        };
        assert_eq!(verdicts.insert(cid, verdict), None, "one answer for each");
    }
    let is_muted = |it: &Verdict| matches!(it, Verdict::Drop { reason: Reason::Muted, .. });
    let first = verdicts.values().position(is_muted).expect("the last one is after the answer");
    assert!(verdicts.values().skip(first).all(is_muted));
    assert!(verdicts.values().take(first).all(|it| matches!(it, Verdict::Admit(_))));
}

#[tokio::test]
async fn what_the_bus_has_no_place_for_is_told_once_it_has() {
    let world = World::start_with(Limits { keys_max: 300, ..Limits::default() }).await;
    world.room(json!({})).await;
    let word = |no: u32| Fact::Words { app: AppId(100 + no), room: None, version: 1 };
    let record = |no, value: Bytes| {
        let (topic, key) = (topic::control(), Some(word(no).key().into()));
        Publish { topic, partition: PartitionNo(0), term: None, key, value }
    };
    let publish = async |record| world.bus.publish(vec![record]).await.remove(0);
    let mut taken = 0_u32;
    while publish(record(taken, word(taken).encode().into())).await.is_ok() {
        taken += 1;
    }

    let (status, problem) = world.post("/v1/rooms/r/bans", json!({"viewer": "v"})).await;
    assert_eq!((status.as_u16(), &problem["code"]), (503, &json!("untold")));
    let fails = |it: &World| it.health.failures().iter().any(|it| it.0 == "chatserver_control");
    world.until("unwell", fails).await;
    for no in 0..taken {
        publish(record(no, Bytes::new())).await.unwrap();
    }

    world.facts().await.find(|it| matches!(it, Fact::Ban { .. })).await;
    world.until("well", |it| !fails(it)).await;
}

#[tokio::test]
async fn a_ban_is_told_although_whoever_asked_for_it_hung_up() {
    let world = World::start().await;
    world.room(json!({})).await;
    let held = Arc::clone(&world.store_turn).write_owned().await;

    let ban = world.request(Method::POST, "/v1/rooms/r/bans").bearer_auth("key-1");
    let ban = ban.json(&json!({"viewer": "v"})).send();
    let is_writing = |it: &World| it.store_waits.load(Ordering::Relaxed) > 0;
    tokio::select! {
        _ = ban => panic!("nothing is written yet"),
        () = world.until("writing", is_writing) => {}
    }
    let are_gone = |it: &World| it.metric("http_connections{service=\"chatserver\"}") == Some(0);
    world.until("hung up", are_gone).await;
    drop(held);

    world.facts().await.find(|it| matches!(it, Fact::Ban { .. })).await;
}

#[tokio::test]
async fn an_app_has_so_many_acts_and_can_change_and_end_those_it_has() {
    let world = World::start_as(Config { app_acts_max: 2, ..Config::default() }).await;
    world.room(json!({})).await;
    let mute =
        |viewer: &str| world.post("/v1/rooms/r/mutes", json!({"viewer": viewer, "seconds": 60}));
    let ended = join_all(["a", "b", "a"].map(mute)).await;
    assert!(ended.iter().all(|it| it.0 == 200), "{ended:?}");

    assert_eq!(mute("c").await.1["code"], "too_many");
    let ended = world.call(Method::DELETE, "/v1/rooms/r/mutes/c", &[], None).await;
    assert_eq!(ended.0, 204);
}
