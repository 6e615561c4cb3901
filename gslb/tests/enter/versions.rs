//! HTTP/1.1 and HTTP/2, over TLS and without.

use proto::enter::{EnterRequest, EnterResponse};
use reqwest::{Client, Version};

use crate::world::{BOTH, World, ticket};

#[tokio::test]
async fn each_version_is_spoken_with_tls_and_without() {
    let mut world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    check(&world, &http_1(&world), Version::HTTP_11).await;
    check(&world, &http_2(&world), Version::HTTP_2).await;

    world.tls = true;
    world.start_gslb(|config| config.collector.enabled = false).await;
    world.ready().await;

    check(&world, &http_1(&world), Version::HTTP_11).await;
    check(&world, &http_2(&world), Version::HTTP_2).await;
    let either = world.client_builder(BOTH).build().unwrap();
    check(&world, &either, Version::HTTP_2).await;
}

#[tokio::test]
async fn one_connection_carries_question_after_question() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let clients = [http_1(&world), http_2(&world)];
    let before = world.count(CONNECTIONS);

    for _ in 0..20 {
        check(&world, &clients[0], Version::HTTP_11).await;
        check(&world, &clients[1], Version::HTTP_2).await;
    }

    assert_eq!(world.count(CONNECTIONS), before + 2);
}

const CONNECTIONS: &str = r#"http_connections{service="gslb"}"#;

fn http_1(world: &World) -> Client {
    world.client_builder(&[b"http/1.1"]).http1_only().build().unwrap()
}

fn http_2(world: &World) -> Client {
    world.client_builder(&[b"h2"]).http2_prior_knowledge().build().unwrap()
}

async fn check(world: &World, client: &Client, version: Version) {
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };
    let body = serde_json::to_vec(&request).unwrap();

    let asked = client.post(world.url("/v1/enter")).body(body).send().await.unwrap();

    assert_eq!((asked.status().as_u16(), asked.version()), (200, version));
    assert_eq!(asked.headers()["content-type"], "application/json");
    assert_eq!(asked.headers()["cache-control"], "no-store");
    assert_eq!(asked.headers()["access-control-allow-origin"], "*");
    let answer: EnterResponse = asked.json().await.unwrap();
    assert_eq!(answer.addresses.len(), 2);
}
