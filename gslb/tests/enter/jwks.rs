//! Ticket keys that come and go with a file, while the service runs.

use std::fs;

use auth_core::app::TicketAlg;
use auth_core::secret::Secret;
use auth_core::ticket::{Claims, Signer};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kit::clock::Clock;
use proto::enter::EnterRequest;
use serde_json::{Value, json};

use crate::world::{APP, World, check, ticket};

#[tokio::test]
async fn keys_come_and_go_with_the_file() {
    let world = World::start_with_jwks(&set(&["a"])).await;
    let _link = world.link(2).await;
    world.ready().await;
    let status = async |kid| world.ask(&ask(kid)).await.status().as_u16();
    assert_eq!((status("a").await, status("b").await), (200, 401));

    write(&world, &set(&["a", "b"]));
    world.until(async || status("b").await == 200).await;
    assert_eq!(status("a").await, 200);

    write(&world, &set(&["b"]));
    world.until(async || status("a").await == 401).await;
    check(world.ask(&ask("a")).await, 401, "ticket_unknown_key").await;
    assert_eq!(status("b").await, 200);
    assert_eq!(world.enter(&ticket("configured")).await.addresses.len(), 2);
    assert_eq!(world.count(r#"gslb_jwks_changes_total{outcome="taken"}"#), 3);
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told() {
    let world = World::start_with_jwks(&set(&["a"])).await;
    let _link = world.link(2).await;
    world.ready().await;
    let refused = r#"gslb_jwks_changes_total{outcome="refused"}"#;

    write(&world, "{\"keys\": [");
    world.until(async || world.count(refused) == 1).await;
    assert_eq!(world.ask(&ask("a")).await.status(), 200);
    let warnings = world.health.warnings();
    assert!(warnings.iter().any(|(part, why)| *part == "gslb.jwks" && why.contains("app 1")));
    assert_eq!(world.health.failures(), []);

    fs::remove_file(world.jwks()).unwrap();
    world.until(async || world.count(refused) == 2).await;
    assert_eq!(world.ask(&ask("a")).await.status(), 200);

    write(&world, &set(&["b"]));
    world.until(async || world.ask(&ask("b")).await.status() == 200).await;
    assert_eq!(world.health.warnings(), []);
    check(world.ask(&ask("a")).await, 401, "ticket_unknown_key").await;
}

#[tokio::test]
async fn a_gslb_starts_without_the_file_and_takes_it_when_it_comes() {
    let mut world = World::start_with_jwks(&set(&["a"])).await;
    world.stop().await;
    fs::remove_file(world.jwks()).unwrap();
    world.start_auth(([127, 0, 0, 1], 0).into()).await;
    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;
    world.ready().await;
    check(world.ask(&ask("a")).await, 401, "ticket_unknown_key").await;

    write(&world, &set(&["a"]));

    world.until(async || world.ask(&ask("a")).await.status() == 200).await;
}

fn write(world: &World, text: &str) {
    fs::write(world.jwks(), text).unwrap();
}

fn ask(kid: &str) -> EnterRequest {
    let now = Clock::system().wall().unix_s();
    let claims = Claims::viewer(APP, "viewer", "lobby", now, now + 600);
    let signer = Signer::new(kid, TicketAlg::Hs256, &Secret::new(shared(kid))).unwrap();
    EnterRequest { ticket: signer.sign(&claims).unwrap(), ..EnterRequest::default() }
}

fn set(kids: &[&str]) -> String {
    let jwk =
        |kid: &&str| json!({"kty": "oct", "kid": kid, "k": URL_SAFE_NO_PAD.encode(shared(kid))});
    json!({"keys": kids.iter().map(jwk).collect::<Vec<Value>>()}).to_string()
}

fn shared(kid: &str) -> String {
    format!("the shared secret of the key named {kid}")
}
