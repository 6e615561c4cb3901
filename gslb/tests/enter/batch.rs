//! Many viewers at once, for a business server.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proto::enter::{BatchAnswer, BatchRequest, BatchResponse, Client, Delivery, EnterRequest};

use crate::world::{APP, OTHER_APP, World, api_key, check, ticket, ticket_with};

#[tokio::test]
async fn each_of_many_gets_its_own_answer_in_order() {
    let world = World::start().await;
    let _links = [world.link(2).await, world.link(3).await];
    world.ready().await;
    let expired = ticket_with("late", |it| (it.iat, it.exp) = (it.iat - 600, it.iat - 300));
    let requests = vec![one("first"), of(expired), one("third"), EnterRequest::default()];

    let batch = answers(&world, requests).await;

    assert_eq!(batch.segments[0].base, "https://cdn.example");
    assert!(world.clock.wall().0.abs_diff(batch.server_ms.0) < 30_000);
    let [_, second, _, fourth] = &batch.answers[..] else { panic!("{batch:?}") };
    for (at, account) in [(0, "first"), (2, "third")] {
        let answer = batch.answer(at).unwrap().unwrap();
        assert_eq!(answer.delivery, [Delivery::Push, Delivery::Segments]);
        assert_eq!((answer.retry_after_ms, answer.segments.len()), (0, 1));
        assert!(answer.addresses.len() >= 2);
        for offer in &answer.addresses {
            let claims = world.verify_at(offer, &offer.token).await.unwrap();
            assert_eq!(claims.account.as_str(), account);
        }
    }
    let hosts = batch.addresses.iter().map(|it| (&it.host, it.port, it.transport as u8));
    assert_eq!(hosts.collect::<BTreeSet<_>>().len(), batch.addresses.len());
    assert!(batch.answer(1).unwrap().is_err() && batch.answer(4).is_none());
    assert_eq!((code(second), code(fourth)), ("ticket_expired", "ticket_required"));
    assert_eq!(world.count(r#"gslb_refusals_total{reason="ticket_expired"}"#), 1);
}

#[tokio::test]
async fn only_a_business_server_may_ask_for_many_and_for_its_own_app() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let body = || serde_json::to_vec(&BatchRequest { requests: vec![one("viewer")] }).unwrap();
    let post = || world.client.post(world.url("/v1/enter:batch")).body(body());

    check(post().send().await.unwrap(), 403, "api_key_missing").await;
    check(post().bearer_auth("guess").send().await.unwrap(), 401, "api_key_unknown").await;
    let other = post().bearer_auth(api_key(OTHER_APP)).send().await.unwrap();

    let other: BatchResponse = other.json().await.unwrap();
    assert_eq!(code(&other.answers[0]), "other_app");
}

#[tokio::test]
async fn a_batch_has_its_bounds() {
    let world = World::start_with(|config| config.batch_max = 3).await;
    let post = |body: Vec<u8>| {
        let post = world.client.post(world.url("/v1/enter:batch")).bearer_auth(api_key(APP));
        post.body(body).send()
    };
    let many = |count| {
        let requests = vec![EnterRequest::default(); count];
        serde_json::to_vec(&BatchRequest { requests }).unwrap()
    };

    assert_eq!(post(many(3)).await.unwrap().status(), 200);
    check(post(many(4)).await.unwrap(), 413, "batch_too_long").await;
    check(post(b"{\"requests\":[{\"colour\":1}]}".to_vec()).await.unwrap(), 400, "malformed").await;
    check(post(b"{\"requests\":[".to_vec()).await.unwrap(), 400, "malformed").await;
    check(post(vec![b' '; 3 * 5_000]).await.unwrap(), 413, "too_large").await;
}

#[tokio::test]
async fn each_of_many_counts_for_the_address_that_it_is_asked_for() {
    let world = World::start_with(|config| (config.rate.per_s, config.rate.burst) = (1, 2)).await;
    let _link = world.link(2).await;
    world.ready().await;
    let from = |ip: &str| {
        let ip: IpAddr = ip.parse().unwrap();
        EnterRequest { client: Client { ip: Some(ip), ..Client::default() }, ..one("viewer") }
    };
    let mut requests = vec![from("192.0.2.1"); 20];
    requests.extend((0..50).map(|it| from(&format!("198.51.100.{it}"))));

    let batch = answers(&world, requests).await;

    let refused = batch.answers.iter().filter(|it| matches!(it, BatchAnswer::Problem(_)));
    assert!(refused.clone().count() >= 10);
    for (at, answer) in batch.answers.iter().enumerate() {
        if let BatchAnswer::Problem(problem) = answer {
            assert!(at < 20, "{at}: {problem:?}");
            assert_eq!((problem.status, problem.code.as_str()), (429, "rate_limited"));
            assert!(problem.retry_after_ms > 0);
        }
    }
}

#[tokio::test]
async fn whoever_finds_no_place_is_told_a_time_of_its_own() {
    let world = World::start_with(|config| config.full.returns_per_s = 10).await;
    let link = world.link(2).await;
    world.ready().await;
    link.load.lock().sessions = 1_000;
    world.until(async || world.enter(&ticket("viewer")).await.addresses.is_empty()).await;

    let batch = answers(&world, vec![one("viewer"); 100]).await;

    let mut times: Vec<u32> = batch.answers.iter().map(waiting_ms).collect();
    assert!(times.iter().all(|it| *it >= 1_000));
    times.sort_unstable();
    let apart = times.windows(2).filter(|it| it[0] < it[1]);
    assert!(apart.count() > 90, "{times:?}");
}

/// When somebody without an address is to ask again.
fn waiting_ms(answer: &BatchAnswer) -> u32 {
    let BatchAnswer::Offers { offers, delivery, retry_after_ms, .. } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!((offers.len(), &delivery[..]), (0, &[Delivery::Segments][..]));
    *retry_after_ms
}

fn code(answer: &BatchAnswer) -> &str {
    let BatchAnswer::Problem(problem) = answer else { panic!("{answer:?}") };
    &problem.code
}

fn one(account: &str) -> EnterRequest {
    of(ticket(account))
}

fn of(ticket: String) -> EnterRequest {
    EnterRequest { ticket, ..EnterRequest::default() }
}

async fn answers(world: &World, requests: Vec<EnterRequest>) -> BatchResponse {
    let post = world.client.post(world.url("/v1/enter:batch")).bearer_auth(api_key(APP));
    let body = serde_json::to_vec(&BatchRequest { requests }).unwrap();
    let response = post.body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}
