//! The evidence ledger: what it says of comments, how it is exported, and how it forgets.

use chatserver::{Config, EvidenceConfig};
use proto::envelope::{Origin, RoomEvent, UplinkBatch, UplinkEntry};
use proto::id::{DeviceId, ItemId};
use proto::item::{Body, Item, Lane, Placed, Role};
use proto::time::Wall;
use proto::verdict::{Fate, Reason};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::*;

fn config(folder: &TempDir) -> Config {
    let evidence = EvidenceConfig {
        enabled: true,
        folder: folder.path().join("evidence"),
        ..EvidenceConfig::default()
    };
    Config { evidence, ..Config::default() }
}

/// A world in which each of these was said, by a viewer of that name.
async fn world(folder: &TempDir, said: &[&str]) -> World {
    let world = World::start_as(config(folder)).await;
    world.room(json!({})).await;
    let mut replies = world.replies().await;
    for viewer in said {
        world.say(viewer, &[(1, viewer)]).await;
        replies.next().await;
    }
    world
}

/// The lines of an export, without the last one, which says how many they are.
async fn export(world: &World, query: &str) -> Vec<Value> {
    let request = world.request(Method::GET, &format!("/v1/evidence?{query}"));
    let response = request.bearer_auth("key-1").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let text = response.text().await.unwrap();
    let mut lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let end = &lines.pop().unwrap()["end"];
    assert_eq!((&end["records"], &end["damaged_bytes"]), (&json!(lines.len()), &json!(0)));
    lines
}

fn texts(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|it| it["what"]["said"]["text"].as_str()).collect()
}

#[tokio::test]
async fn every_comment_is_put_down_with_its_sender_and_its_verdict() {
    let folder = TempDir::new().unwrap();
    let world = World::start_as(config(&folder)).await;
    world.room(json!({})).await;
    let words = json!({"words": [{"text": "ghost", "action": "shadow"}, {"text": "meh", "action": "mask"}]});
    world.call(Method::PUT, "/v1/words", &[], Some(words)).await;
    let (mut accepted, mut replies) = (world.accepted().await, world.replies().await);

    let origin = Origin {
        address: "203.0.113.7:4711".parse().unwrap(),
        device: DeviceId::parse("ios-1").ok(),
    };
    let said = [(1, "shown"), (2, "a\u{202E}b"), (3, "ghost"), (4, "meh")];
    let entries = said.map(|(cid, text)| UplinkEntry {
        origin: Some(Box::new(origin.clone())),
        ..entry("v", cid, text)
    });
    world.uplink("v", UplinkBatch { node: LINK, entries: entries.to_vec() }).await;
    for _ in said {
        replies.next().await;
    }
    let id = accepted.next().await.item.id;
    let fates = vec![(id, Fate::Shed { reason: Reason::OverBudget })];
    world.seal(vec![RoomEvent::Fates { fates }, recall(id)]).await;
    replies.next().await;
    world.until("recalled", |it| it.metric("chatserver_evidence_records_total") >= Some(6)).await;

    let lines = export(&world, "room=r").await;
    let said: Vec<&Value> =
        lines.iter().map(|it| &it["what"]["said"]).filter(|it| it.is_object()).collect();
    assert_eq!(texts(&lines), ["shown", "a\u{202E}b", "ghost", "meh"], "unmasked, in their order");
    let verdicts: Vec<&Value> = said.iter().map(|it| &it["outcome"]["verdict"]).collect();
    assert_eq!(verdicts[0]["admit"], json!(id));
    assert_eq!(verdicts[1]["drop"]["reason"], "shape");
    assert!(verdicts[2]["shadow"].is_string() && verdicts[3]["admit"].is_string(), "{verdicts:?}");
    assert_eq!(
        (&said[0]["address"], &said[0]["device"]),
        (&json!("203.0.113.7:4711"), &json!("ios-1"))
    );
    assert_eq!((&lines[0]["account"], &lines[0]["room"]), (&json!("v"), &json!("r")));
    let told = lines.iter().find(|it| it["what"]["told"].is_object()).unwrap();
    assert_eq!(told["what"]["told"]["outcome"]["shed"], "over_budget");
    assert_eq!(told["what"]["told"]["comment"], said[0]["comment"]);
    assert!(lines.iter().any(|it| it["what"]["recalled"]["id"] == json!(id)));
}

#[tokio::test]
async fn an_export_takes_what_is_asked_for_and_is_itself_put_down() {
    let folder = TempDir::new().unwrap();
    let world = world(&folder, &["v", "w"]).await;

    assert_eq!(texts(&export(&world, "account=w").await), ["w"]);
    assert_eq!(texts(&export(&world, "from_ms=0&until_ms=1").await), [""; 0]);
    assert_eq!(texts(&export(&world, "room=other").await), [""; 0]);
    let all = export(&world, "").await;

    assert_eq!(texts(&all), ["v", "w"]);
    let exports: Vec<&Value> = all.iter().filter(|it| it["what"]["exported"].is_object()).collect();
    assert_eq!(exports.len(), 4, "this one among them");
    assert_eq!(exports[0]["account"], "w");
    let (_, audit) = world.call(Method::GET, "/v1/audit", &[], None).await;
    assert!(audit.to_string().contains("evidence_export"), "{audit}");
}

#[tokio::test]
async fn an_accounts_records_go_at_once_and_others_stay() {
    let folder = TempDir::new().unwrap();
    let world = world(&folder, &["v", "w"]).await;

    let (status, body) = world.call(Method::DELETE, "/v1/evidence/v", &[], None).await;
    let at_once = export(&world, "").await;
    world.until("erased", |it| it.metric("chatserver_evidence_erased_total") == Some(1)).await;
    world.say("v", &[(2, "again")]).await;
    world
        .until("judged", |it| it.metric(r#"chatserver_comments_total{verdict="admit"}"#) == Some(3))
        .await;

    assert_eq!((status, &body["account"]), (StatusCode::ACCEPTED, &json!("v")));
    assert_eq!(texts(&at_once), ["w"]);
    assert_eq!(texts(&export(&world, "").await), ["w", "again"]);
    let (_, audit) = world.call(Method::GET, "/v1/audit", &[], None).await;
    assert!(audit.to_string().contains("evidence_erasure"), "{audit}");
}

#[tokio::test]
async fn what_was_put_down_outlives_the_process() {
    let folder = TempDir::new().unwrap();
    let world = world(&folder, &["before"]).await;

    let world = world.restart_as(config(&folder)).await;

    assert_eq!(texts(&export(&world, "").await), ["before"]);
}

#[tokio::test]
async fn another_apps_records_and_a_ledger_that_is_off_are_not_there() {
    let folder = TempDir::new().unwrap();
    let world = world(&folder, &["ours"]).await;

    let request = world.request(Method::GET, "/v1/evidence").bearer_auth("key-2");
    let others = request.send().await.unwrap().text().await.unwrap();
    let off = World::start().await;

    assert!(!others.contains("ours"), "{others}");
    assert_eq!(off.call(Method::GET, "/v1/evidence", &[], None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        world.call(Method::GET, "/v1/evidence?account=", &[], None).await.1["code"],
        "invalid_field"
    );
}

fn recall(of: ItemId) -> RoomEvent {
    let item = Item {
        id: ItemId(of.0 + 1),
        lane: Lane::Notice,
        sender: proto::id::SenderRef(1),
        role: Role::Moderator,
        at: Wall(1_800_000_000_000),
        body: Body::Tombstone { of },
    };
    let items = vec![Placed { seq: proto::id::Seq(1), item }];
    let (gen_no, slot) = (proto::id::Gen(1), proto::id::SlotNo(1));
    RoomEvent::Flush { gen_no, slot, part: 0, at: Wall(1_800_000_000_000), items }
}
