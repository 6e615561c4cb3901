//! A changed list of words counts for what was said lately, too.

use std::time::Duration;

use proto::envelope::RoomEvent;
use proto::id::{Gen, Seq, SlotNo};
use proto::item::{Item, Placed};
use proto::time::Wall;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::world::*;

#[tokio::test]
async fn what_holds_a_new_word_is_recalled_by_rule_and_the_rest_stays() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut accepted = world.accepted().await;
    let texts = ["a badword", "fine", "bad-word", "mild"];
    let mut items = Vec::new();
    for (cid, text) in (1..).zip(texts) {
        world.say(&format!("v{cid}"), &[(cid, text)]).await;
        items.push(accepted.next().await.item);
    }
    world.seal(vec![flush(items.clone())]).await;
    world.until("kept", |it| it.metric("chatserver_sweep_bytes").is_some_and(|it| it > 400)).await;

    let words = json!({"words": [
        {"text": "badword", "action": "refuse"},
        {"text": "mild", "action": "mask"},
    ]});
    let (status, _) = world.call(Method::PUT, "/v1/rooms/r/words", &[], Some(words)).await;
    let recalled = [accepted.next().await, accepted.next().await].map(|it| it.item.body.recalls());
    let record = record(&world).await;

    assert_eq!(status, 200);
    assert_eq!(recalled, [Some(items[0].id), Some(items[2].id)]);
    assert_eq!(record["value"]["by"], "rule");
    assert_eq!(
        (&record["value"]["comments"], &record["value"]["recalled"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(record["value"]["ids"], json!([items[0].id, items[2].id]));
    assert_eq!(swept(&world, "recalled"), Some(2));
    assert_eq!(swept(&world, "kept"), Some(2));
}

#[tokio::test]
async fn what_was_recalled_by_a_moderator_is_not_recalled_again() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut accepted = world.accepted().await;
    world.say("v", &[(1, "badword")]).await;
    let item = accepted.next().await.item;
    world.seal(vec![flush(vec![item.clone()])]).await;
    world.until("kept", |it| it.metric("chatserver_sweep_bytes") > Some(0)).await;
    let path = format!("/v1/rooms/r/items/{}", item.id);
    world.call(Method::DELETE, &path, &[], None).await;

    let words = json!({"words": [{"text": "badword", "action": "refuse"}]});
    world.call(Method::PUT, "/v1/words", &[], Some(words)).await;

    world.until("seen", |it| swept(it, "recalled_before") == Some(1)).await;
    assert_eq!(accepted.next().await.item.body.recalls(), Some(item.id));
    assert_eq!(swept(&world, "recalled"), None);
}

#[tokio::test]
async fn a_rule_recalls_also_where_notices_have_used_up_their_share() {
    let world = World::start().await;
    world.room(json!({"items_per_s": 10})).await;
    let mut accepted = world.accepted().await;
    world.say("v", &[(1, "badword")]).await;
    let item = accepted.next().await.item;
    world.seal(vec![flush(vec![item.clone()])]).await;
    world.until("kept", |it| it.metric("chatserver_sweep_bytes") > Some(0)).await;
    let mut last = StatusCode::ACCEPTED;
    while last == StatusCode::ACCEPTED {
        (last, _) = world.post("/v1/rooms/r/notices", json!({"text": "hello"})).await;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);

    let words = json!({"words": [{"text": "badword", "action": "refuse"}]});
    world.call(Method::PUT, "/v1/words", &[], Some(words)).await;

    let recalled = accepted.find(|it| it.item.body.recalls().is_some()).await;
    assert_eq!(recalled.item.body.recalls(), Some(item.id));
    assert_eq!(swept(&world, "recalled"), Some(1));
}

#[tokio::test]
async fn what_was_judged_before_a_word_came_and_is_shown_after_it_is_recalled() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut accepted = world.accepted().await;
    world.say("v", &[(1, "badword")]).await;
    let item = accepted.next().await.item;
    let words = json!({"words": [{"text": "badword", "action": "refuse"}]});
    world.call(Method::PUT, "/v1/words", &[], Some(words)).await;

    world.seal(vec![flush(vec![item.clone()])]).await;

    assert_eq!(accepted.next().await.item.body.recalls(), Some(item.id));
}

#[tokio::test]
async fn a_list_that_was_not_replaced_begins_no_search() {
    let world = World::start().await;
    world.room(json!({})).await;
    let mut accepted = world.accepted().await;
    world.say("v", &[(1, "fine")]).await;
    let item = accepted.next().await.item;
    world.seal(vec![flush(vec![item])]).await;
    world.until("kept", |it| it.metric("chatserver_sweep_bytes") > Some(0)).await;
    let put = |text: &str, version: &'static str| {
        let words = json!({"words": [{"text": text, "action": "refuse"}]});
        let world = &world;
        async move {
            let headers = [("if-match", version)];
            world.call(Method::PUT, "/v1/words", &headers, Some(words)).await.0
        }
    };

    let statuses = [put("one", "\"0\"").await, put("two", "\"1\"").await];
    world.until("searched", |it| swept(it, "kept") >= Some(1)).await;
    world.call(Method::PUT, "/v1/rooms/r/words", &[], Some(json!({"words": []}))).await;
    world.until("searched", |it| swept(it, "kept") >= Some(2)).await;

    assert_eq!(statuses, [StatusCode::OK, StatusCode::PRECONDITION_FAILED]);
    assert_eq!(swept(&world, "kept"), Some(2));
}

fn swept(world: &World, outcome: &str) -> Option<u64> {
    world.metric(&format!("chatserver_swept_comments_total{{outcome=\"{outcome}\"}}"))
}

/// The record of the sweep.
async fn record(world: &World) -> Value {
    let waited = async {
        loop {
            let (_, page) = world.call(Method::GET, "/v1/rooms/r/audit", &[], None).await;
            let rows = page["rows"].as_array().unwrap();
            if let Some(row) = rows.iter().find(|it| it["act"] == "sweep") {
                return row.clone();
            }
            world.clock.sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.expect("a record")
}

fn flush(items: Vec<Item>) -> RoomEvent {
    let items = (1..).zip(items).map(|(seq, item)| Placed { seq: Seq(seq), item }).collect();
    RoomEvent::Flush { gen_no: Gen(1), slot: SlotNo(1), part: 0, at: Wall(0), items }
}
