//! Every "no" has its status and code.

use std::net::IpAddr;
use std::time::Duration;

use proto::control::Fact;
use proto::enter::{Client, EnterRequest};
use proto::id::{RoomId, ViewerId};
use proto::time::Wall;

use crate::world::{APP, OTHER_APP, World, api_key, check, ticket, ticket_with};

#[tokio::test]
async fn what_is_no_question_is_refused() {
    let world = World::start().await;
    let post = |body: &[u8]| world.post(body.to_vec()).send();
    let client =
        |client| EnterRequest { ticket: ticket("viewer"), client, ..EnterRequest::default() };
    let device = |it: &str| Client { device: Some(it.to_owned()), ..Client::default() };

    check(post(b"").await.unwrap(), 400, "malformed").await;
    check(post(b"{").await.unwrap(), 400, "malformed").await;
    check(post(b"{\"ticket\":\"\",\"colour\":1}").await.unwrap(), 400, "malformed").await;
    check(post(&[b' '; 8 * 1024 + 1]).await.unwrap(), 413, "too_large").await;
    check(world.ask(&client(device("a b"))).await, 400, "device").await;
    check(world.ask(&client(device(&"d".repeat(33)))).await, 400, "device").await;
    let get = world.client.get(world.url("/v1/enter")).send().await.unwrap();
    check(get, 405, "method").await;
    let elsewhere = world.client.post(world.url("/v1/leave")).send().await.unwrap();
    check(elsewhere, 404, "not_found").await;
    assert_eq!(world.count(r#"gslb_refusals_total{reason="malformed"}"#), 3);
}

#[tokio::test]
async fn a_ticket_that_is_not_good_is_refused_with_the_server_s_time() {
    let world = World::start().await;
    let ask = |ticket: String| EnterRequest { ticket, ..EnterRequest::default() };
    let mut changed = ticket("viewer");
    changed.replace_range(changed.len() - 4.., "AAAA");
    let expired = ticket_with("viewer", |it| (it.iat, it.exp) = (it.iat - 600, it.iat - 300));
    let early = ticket_with("viewer", |it| (it.iat, it.exp) = (it.iat + 300, it.iat + 600));

    check(world.ask(&ask(String::new())).await, 401, "ticket_required").await;
    check(world.ask(&ask("a.b.c".to_owned())).await, 400, "ticket_malformed").await;
    check(world.ask(&ask(changed)).await, 401, "ticket_wrong_signature").await;
    check(world.ask(&ask(expired)).await, 401, "ticket_expired").await;
    let problem = check(world.ask(&ask(early)).await, 401, "ticket_not_yet_valid").await;

    assert!(world.clock.wall().0.abs_diff(problem.server_ms.0) < 30_000);
    assert_eq!(problem.retry_after_ms, 0);
}

#[tokio::test]
async fn a_ticket_from_before_a_kick_is_refused_and_a_later_one_is_not() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let before = ticket_with("viewer", |it| it.iat -= 10);
    assert_eq!(world.enter(&before).await.addresses.len(), 2);

    let not_before = Wall(world.clock.wall().0 - 5_000);
    let (room, viewer) = (room("lobby"), viewer("viewer"));
    let kicked_at = world.clock.mono();
    world.publish(Fact::Kick { app: APP, room, viewer, not_before }).await;
    let request = EnterRequest { ticket: before, ..EnterRequest::default() };
    world.until(async || world.ask(&request).await.status() != 200).await;
    assert!(world.clock.mono().since(kicked_at) < Duration::from_secs(1));

    check(world.ask(&request).await, 403, "kicked").await;
    assert_eq!(world.enter(&ticket("viewer")).await.addresses.len(), 2);
    assert_eq!(world.enter(&ticket_with("other", |it| it.iat -= 10)).await.addresses.len(), 2);
}

#[tokio::test]
async fn a_banned_viewer_stays_out_until_the_ban_ends() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let ban = |until| Fact::Ban { app: APP, room: room("lobby"), viewer: viewer("viewer"), until };
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };

    world.publish(ban(Wall(world.clock.wall().0 + 600_000))).await;
    world.until(async || world.ask(&request).await.status() != 200).await;
    check(world.ask(&request).await, 403, "banned").await;
    world.publish(ban(Wall(0))).await;

    world.until(async || world.ask(&request).await.status() == 200).await;
}

#[tokio::test]
async fn an_address_that_asks_too_often_is_told_when_to_come_back() {
    let world = World::start_with(|config| {
        config.trusted_hops = 1;
        (config.rate.per_s, config.rate.burst) = (1, 2);
    })
    .await;
    let ask = |from: &'static str| {
        let request = EnterRequest::default();
        let request = world.post(serde_json::to_vec(&request).unwrap());
        request.header("x-forwarded-for", from).send()
    };

    for _ in 0..2 {
        check(ask("6.6.6.6, 192.0.2.1").await.unwrap(), 401, "ticket_required").await;
    }
    let mut refused = ask("7.7.7.7, 192.0.2.1").await.unwrap();
    world
        .until(async || {
            refused = ask("7.7.7.7, 192.0.2.1").await.unwrap();
            refused.status() == 429
        })
        .await;

    assert!(refused.headers().contains_key("retry-after"));
    let problem = check(refused, 429, "rate_limited").await;
    assert!((1..=1_000).contains(&problem.retry_after_ms), "{problem:?}");
    check(ask("6.6.6.6, 192.0.2.2").await.unwrap(), 401, "ticket_required").await;
}

#[tokio::test]
async fn questions_that_are_none_count_too() {
    let world = World::start_with(|config| (config.rate.per_s, config.rate.burst) = (1, 2)).await;
    let ask = || world.post(b"{".to_vec()).send();

    check(ask().await.unwrap(), 400, "malformed").await;
    world.until(async || ask().await.unwrap().status() == 429).await;
}

#[tokio::test]
async fn only_an_api_key_may_speak_for_another_address() {
    let world = World::start_with(|config| (config.rate.per_s, config.rate.burst) = (1, 5)).await;
    let _link = world.link(2).await;
    let ask = |ip: &str, key: Option<String>| {
        let ip: IpAddr = ip.parse().unwrap();
        let client = Client { ip: Some(ip), ..Client::default() };
        let request = EnterRequest { ticket: ticket("viewer"), client, ..EnterRequest::default() };
        let request = world.post(serde_json::to_vec(&request).unwrap());
        match key {
            Some(key) => request.bearer_auth(key).send(),
            None => request.send(),
        }
    };
    world.until(async || world.health.failures().is_empty()).await;

    check(ask("192.0.2.1", None).await.unwrap(), 403, "api_key_missing").await;
    check(ask("192.0.2.1", Some("guess".to_owned())).await.unwrap(), 401, "api_key_unknown").await;
    check(ask("192.0.2.1", Some(api_key(OTHER_APP))).await.unwrap(), 403, "other_app").await;
    for it in 0..50 {
        let response = ask(&format!("198.51.100.{it}"), Some(api_key(APP))).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    world.until(async || ask("192.0.2.1", None).await.unwrap().status() == 429).await;
}

#[tokio::test]
async fn with_neither_addresses_nor_segments_there_is_nowhere_to_go() {
    let world = World::start().await;
    let is_empty = |it: &(&str, String)| ["gslb.fleet", "gslb.table"].contains(&it.0);
    world.until(async || world.health.failures().iter().all(is_empty)).await;
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };

    let problem = check(world.ask(&request).await, 503, "nowhere").await;

    assert!(problem.retry_after_ms > 0);
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}

fn viewer(name: &str) -> ViewerId {
    ViewerId::parse(name).unwrap()
}
