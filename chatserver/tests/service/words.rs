//! Lists of words, from the API to verdicts, over all chatservers and restarts.

use chatserver::Config;
use proto::control::Fact;
use proto::envelope::Reply;
use proto::frame::Outcome;
use proto::id::NodeId;
use proto::verdict::{Reason, Verdict};
use reqwest::Method;
use serde_json::json;

use super::world::*;

#[tokio::test]
async fn listed_words_bite_at_once_and_are_shown_masked_or_to_the_sender_alone() {
    let world = World::start().await;
    world.room(json!({})).await;
    let (mut accepted, mut replies) = (world.accepted().await, world.replies().await);
    let app = json!({"words": [{"text": "bad", "action": "refuse"}]});
    let room = json!({"words": [
        {"text": "meh", "action": "mask"},
        {"text": "viewbot", "action": "shadow"},
        {"text": "badminton", "action": "allow"},
    ]});

    let (status, body) = world.call(Method::PUT, "/v1/words", &[], Some(app)).await;
    assert_eq!((status.as_u16(), &body["words"]), (200, &json!(1)));
    assert_eq!(world.call(Method::PUT, "/v1/rooms/r/words", &[], Some(room)).await.0, 200);
    world.say("v", &[(1, "B.Ａ.D"), (2, "badminton"), (3, "oh meh"), (4, "viewbot")]).await;

    let shown = [accepted.next().await, accepted.next().await].map(|it| it.item);
    assert_eq!(shown.each_ref().map(|it| it.body.text()), [Some("badminton"), Some("oh ***")]);
    let told = [replies.next().await, replies.next().await, replies.next().await];
    assert!(told.contains(&refused(1, Reason::Words, 0)), "{told:?}");
    assert_eq!(world.metric(r#"chatserver_comments_total{verdict="shadow"}"#), Some(1));
}

#[tokio::test]
async fn a_list_reaches_other_chatservers_and_outlives_a_restart() {
    let mut world = World::start().await;
    world.room(json!({})).await;
    world.serve(Config { node: NodeId(4), shard: 1, ..Config::default() }).await;
    let mut facts = world.facts().await;
    let list = json!({"words": [{"text": "bad", "action": "refuse"}]});

    world.call(Method::PUT, "/v1/rooms/r/words", &[], Some(list.clone())).await;
    facts.find(|it| matches!(it, Fact::Words { .. })).await;
    let world = world.restart().await;
    let (_, read) = world.call(Method::GET, "/v1/rooms/r/words", &[], None).await;
    let mut replies = world.replies().await;
    world.say("v", &[(1, "bad")]).await;

    assert_eq!(read["words"], list["words"]);
    assert_eq!(replies.next().await, refused(1, Reason::Words, 0));
}

#[tokio::test]
async fn a_list_is_replaced_by_its_version_and_refused_with_a_reason() {
    let world = World::start().await;
    world.room(json!({})).await;
    let put = async |version: &str, text: &str| {
        let list = json!({"words": [{"text": text, "action": "refuse"}]});
        world.call(Method::PUT, "/v1/words", &[("if-match", version)], Some(list)).await
    };

    let first = put("\"0\"", "one").await.1["version"].as_u64().unwrap();
    assert_eq!(put("\"0\"", "two").await.1["code"], "changed");
    let tag = format!("\"{first}\"");
    let second = put(&tag, "two").await.1["version"].as_u64().unwrap();
    assert!(second > first);
    let (status, body) = put("*", "…").await;
    assert_eq!((status.as_u16(), &body["code"]), (400, &json!("invalid_field")));
    let many: Vec<_> =
        (0..10_001).map(|no| json!({"text": no.to_string(), "action": "mask"})).collect();
    let body = Some(json!({"words": many}));
    assert_eq!(world.call(Method::PUT, "/v1/rooms/r/words", &[], body).await.0, 400);
    assert_eq!(world.call(Method::GET, "/v1/rooms/other/words", &[], None).await.0, 404);
}

#[tokio::test]
async fn an_empty_list_ends_a_list_and_a_new_one_counts_again() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;
    let put = async |words: serde_json::Value| {
        let body = json!({"words": words});
        assert_eq!(world.call(Method::PUT, "/v1/words", &[], Some(body)).await.0, 200);
    };
    let bad = json!([{"text": "bad", "action": "refuse"}]);

    put(bad.clone()).await;
    put(json!([])).await;
    world.say("v", &[(1, "bad")]).await;
    let shown = replies.next().await;
    put(bad).await;
    world.say("v", &[(2, "bad")]).await;

    assert!(matches!(shown, Reply::Ack { outcome: Outcome::Verdict(Verdict::Admit(_)), .. }));
    assert_eq!(replies.next().await, refused(2, Reason::Words, 0));
}

#[tokio::test]
async fn links_and_repeats_are_refused_where_the_room_says_so() {
    let world = World::start().await;
    let settings = json!({
        "links": "refuse", "link_hosts": ["example.com"], "contacts": "shadow", "repeat_ms": 5000,
    });
    world.room(settings).await;
    let mut replies = world.replies().await;

    world
        .say("v", &[(1, "see shop.example.com"), (2, "evil点com"), (3, "see SHOP.example.com!")])
        .await;
    let told = [replies.next().await, replies.next().await, replies.next().await];

    assert!(told.contains(&refused(2, Reason::Words, 0)), "{told:?}");
    assert!(told.contains(&refused(3, Reason::Repeated, 5000)), "{told:?}");
    let (status, body) =
        world.call(Method::PATCH, "/v1/rooms/r", &[], Some(json!({"links": "mask"}))).await;
    assert_eq!((status.as_u16(), &body["code"]), (400, &json!("invalid_field")));
}
