//! Rooms that hold comments back, so that moderators act first.

use proto::envelope::Reply;
use proto::frame::Outcome;
use proto::verdict::{Reason, Verdict};
use reqwest::Method;
use serde_json::json;

use super::world::*;

#[tokio::test]
async fn what_is_held_back_is_listed_and_goes_on_in_order() {
    let world = World::start().await;
    world.room(json!({"hold_ms": 8_000})).await;
    let (mut accepted, mut replies) = (world.accepted().await, world.replies().await);
    world.say("a", &[(1, "first")]).await;
    world.say("b", &[(1, "second")]).await;
    world.until("held", |it| it.metric("chatserver_comments_held") == Some(2)).await;

    let (_, held) = world.call(Method::GET, "/v1/rooms/r/held", &[], None).await;
    let_go(&world).await;
    let items = [accepted.next().await.item, accepted.next().await.item];
    let verdicts = [replies.next().await, replies.next().await];

    let row = &held["rows"][0];
    assert_eq!((&row["id"], &row["account"]), (&json!(items[0].id), &json!("a")), "{held}");
    assert_eq!(row["until_ms"].as_u64().unwrap() - row["at_ms"].as_u64().unwrap(), 8_000);
    assert_eq!(items.map(|it| it.body.text().unwrap().to_owned()), ["first", "second"]);
    assert!(verdicts.iter().all(|it| !matches!(it, Reply::Close { .. })));
    world.until("empty", |it| it.metric("chatserver_comments_held") == Some(0)).await;
}

#[tokio::test]
async fn a_mute_and_a_recall_take_out_what_is_held_back() {
    let world = World::start().await;
    world.room(json!({"hold_ms": 8_000})).await;
    let (mut accepted, mut replies) = (world.accepted().await, world.replies().await);
    for (cid, viewer) in [(1, "muted"), (2, "recalled"), (3, "fine")] {
        world.say(viewer, &[(cid, viewer)]).await;
    }
    world.until("held", |it| it.metric("chatserver_comments_held") == Some(3)).await;
    let (_, held) = world.call(Method::GET, "/v1/rooms/r/held", &[], None).await;
    let id = |viewer: &str| {
        let rows = held["rows"].as_array().unwrap();
        rows.iter().find(|it| it["account"] == viewer).unwrap()["id"].as_str().unwrap().to_owned()
    };

    world.post("/v1/rooms/r/mutes", json!({"viewer": "muted", "seconds": 600})).await;
    let path = format!("/v1/rooms/r/items/{}", id("recalled"));
    world.call(Method::DELETE, &path, &[], None).await;
    let tombstone = accepted.next().await.item;
    world.seal(vec![super::recall::flush(1, vec![tombstone])]).await;
    let recalled = replies.next().await;
    let (_, rest) = world.call(Method::GET, "/v1/rooms/r/held", &[], None).await;
    let_go(&world).await;
    let shown = accepted.next().await.item;

    assert_eq!(recalled, refused(2, Reason::Recalled, 0));
    assert_eq!(rest["rows"].as_array().unwrap().len(), 1, "{rest}");
    assert_eq!(shown.body.text(), Some("fine"));
    let mut others = [replies.next().await, replies.next().await];
    others.sort_by_key(|it| *it == ack(3, Outcome::Verdict(Verdict::Admit(shown.id))));
    let Reply::Ack { outcome: Outcome::Verdict(muted), .. } = &others[0] else {
        panic!("{others:?}")
    };
    assert!(matches!(muted, Verdict::Drop { reason: Reason::Muted, .. }), "{others:?}");
    assert_eq!(others[1], ack(3, Outcome::Verdict(Verdict::Admit(shown.id))));
}

/// The room holds nothing back any more: what waits goes on in half of its time.
async fn let_go(world: &World) {
    let none = json!({"hold_ms": 0});
    assert_eq!(world.call(Method::PATCH, "/v1/rooms/r", &[], Some(none)).await.0, 200);
}

#[tokio::test]
async fn an_orderly_end_gives_back_what_is_held() {
    let world = World::start().await;
    world.room(json!({"hold_ms": 30_000})).await;
    let mut replies = world.replies().await;
    world.say("v", &[(1, "hello")]).await;
    world.until("held", |it| it.metric("chatserver_comments_held") == Some(1)).await;

    let _next = world.restart().await;

    assert_eq!(replies.next().await, refused(1, Reason::Busy, 1000));
}
