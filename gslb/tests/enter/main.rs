//! The service end to end: real datagrams in, real HTTP out, tokens checked as links do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bases;
mod batch;
mod control;
mod floods;
mod jwks;
mod loads;
mod masters;
mod nodes;
mod place;
mod plain;
mod policies;
mod refusals;
mod sealed;
mod versions;
mod world;

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};

use auth_core::token::flag;
use proto::address::Transport;
use proto::enter::{Class, Client, Delivery, EnterRequest, EnterResponse, Retry};
use proto::item::Role;
use world::{World, check, node_of, ticket, ticket_with};

#[tokio::test]
async fn a_viewer_gets_three_machines_with_a_token_for_each() {
    let world = World::start().await;
    let _links = [world.link(2).await, world.link(3).await, world.link(4).await];
    world.ready().await;
    world.until(async || world.count(r#"gslb_nodes{state="taking"}"#) == 3).await;

    let answer = world.enter(&ticket("viewer")).await;

    let nodes: BTreeSet<_> = answer.addresses.iter().map(|it| node_of(&it.address)).collect();
    assert_eq!(nodes.len(), 3);
    assert_eq!(answer.delivery, [Delivery::Push, Delivery::Segments]);
    assert_eq!(answer.segments[0].base, "https://cdn.example");
    assert_eq!(answer.retry, Retry::default());
    assert!(world.clock.wall().0 - answer.server_ms.0 < 30_000);
    let mut numbers = BTreeSet::new();
    for offer in &answer.addresses {
        let claims = world.verify_at(offer, &offer.token).await.unwrap();
        assert_eq!(claims.account.as_str(), "viewer");
        assert_eq!(claims.rooms[0].as_str(), "lobby");
        assert_eq!((claims.ttl_s, claims.role()), (60, Role::Viewer));
        assert_eq!(claims.flags, flag::SINGLE_USE | flag::MAY_SEND);
        assert!(numbers.insert(claims.jti));
    }
    let [first, second, _] = &answer.addresses[..] else { panic!("three addresses") };
    assert!(world.verify_at(second, &first.token).await.is_err());
}

#[tokio::test]
async fn what_the_client_is_goes_into_choice_and_token() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let client = Client {
        device: Some("ios-1".to_owned()),
        transports: vec![Transport::Wss],
        ..Client::default()
    };
    let ticket = ticket_with("host", |it| (it.role, it.verified) = (Role::Host, true));

    let request = EnterRequest { ticket, client, ..EnterRequest::default() };
    let answer: EnterResponse = world.ask(&request).await.json().await.unwrap();

    let [offer] = &answer.addresses[..] else { panic!("{answer:?}") };
    assert_eq!(offer.address.transport, Transport::Wss);
    let claims = world.verify_at(offer, &offer.token).await.unwrap();
    assert_eq!(claims.device.as_ref().unwrap().as_str(), "ios-1");
    assert_eq!(claims.role(), Role::Host);
}

#[tokio::test]
async fn a_running_session_renews_for_its_own_address_only() {
    let world = World::start().await;
    let _links = [world.link(2).await, world.link(3).await];
    world.ready().await;
    world.until(async || world.count(r#"gslb_nodes{state="live"}"#) == 2).await;
    let renew = |authority: &str| EnterRequest {
        ticket: ticket("viewer"),
        renew: Some(authority.to_owned()),
        ..EnterRequest::default()
    };

    let renewed = world.ask(&renew("link-3.example:8443")).await;
    let unknown = world.ask(&renew("link-3.example:1")).await;

    let renewed: EnterResponse = renewed.json().await.unwrap();
    let [offer] = &renewed.addresses[..] else { panic!("{renewed:?}") };
    assert_eq!(offer.address.authority(), "link-3.example:8443");
    assert!(world.verify_at(offer, &offer.token).await.is_ok());
    check(unknown, 404, "unknown_address").await;
}

#[tokio::test]
async fn a_full_fleet_sends_viewers_to_the_segments() {
    let world = World::start().await;
    let link = world.link(2).await;
    world.ready().await;

    link.load.lock().sessions = 1_000;
    world.until(async || world.enter(&ticket("viewer")).await.addresses.is_empty()).await;

    let answer = world.enter(&ticket("viewer")).await;
    assert_eq!(answer.delivery, [Delivery::Segments]);
    assert_eq!(answer.segments.len(), 1);
    assert!((1_000..=120_000).contains(&answer.retry_after_ms));
    assert!(world.answers(r#"outcome="full""#) >= 1);
}

#[tokio::test]
async fn keys_are_asked_for_until_auth_is_there() {
    // An address of its own: nobody else takes the port while it is free.
    let reserved = TcpListener::bind("127.0.0.9:0").unwrap();
    let auth: SocketAddr = reserved.local_addr().unwrap();
    drop(reserved);
    let mut world = World::start_without_auth(auth);
    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;
    let failed = r#"gslb_masters_fetches_total{outcome="failed"}"#;
    world.until(async || world.count(failed) >= 2).await;
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };

    let problem = check(world.ask(&request).await, 503, "no_keys").await;
    let unready = world.health.failures();
    world.start_auth(auth).await;

    assert!(problem.retry_after_ms > 0);
    assert!(unready.iter().any(|it| it.0 == "gslb.keys"), "{unready:?}");
    world.ready().await;
    assert_eq!(world.enter(&ticket("viewer")).await.addresses.len(), 2);
}

#[tokio::test]
async fn a_browser_may_ask_from_any_page() {
    let world = World::start().await;

    let preflight = world.client.request(reqwest::Method::OPTIONS, world.url("/v1/enter"));
    let preflight = preflight.header("origin", "https://any.example").send().await.unwrap();

    assert_eq!(preflight.status(), 204);
    assert_eq!(preflight.headers()["access-control-allow-origin"], "*");
    assert_eq!(preflight.headers()["access-control-allow-methods"], "POST");
    assert_eq!(preflight.headers()["access-control-allow-headers"], "content-type");
}

#[tokio::test]
async fn the_class_of_a_client_orders_its_delivery_and_its_transports() {
    use Transport::{National, Tls};
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let ask = async |class, transports: &[Transport]| {
        let client = Client { class, transports: transports.to_vec(), ..Client::default() };
        let request = EnterRequest { ticket: ticket("viewer"), client, ..EnterRequest::default() };
        world.ask(&request).await.json::<EnterResponse>().await.unwrap()
    };

    let weak = ask(Class::Weak, &[]).await;
    let national = ask(Class::National, &[Tls, National]).await;

    let paths = [Delivery::LiteSegments, Delivery::Segments, Delivery::Push];
    assert_eq!(weak.delivery, paths);
    assert_eq!(national.delivery, [Delivery::Push, Delivery::Segments]);
    assert_eq!(national.addresses[0].address.transport, National);
}

#[tokio::test]
async fn the_service_ends_when_told_to() {
    let mut world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;

    world.stop().await;
}
