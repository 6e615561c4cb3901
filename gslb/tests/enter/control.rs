//! A gslb that `control` does not reach: what its tokens are good for, and for how long.

use std::net::SocketAddr;

use auth_core::revocation::Revocations;
use auth_core::token::TokenRefusal;
use bus::{Bus, Fault, Limits, MemoryBus, PartitionNo, Publish, topic};
use proto::control::Fact;
use proto::enter::EnterRequest;
use proto::id::{RoomId, ViewerId};
use proto::time::Wall;

use crate::world::{APP, World, check, ticket, ticket_with};

/// The ticket is from before the kick, which this gslb has not heard of; links have.
#[tokio::test]
async fn a_kick_that_a_cut_off_gslb_missed_holds_at_the_links() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let before = ticket_with("viewer", |it| it.iat -= 10);

    world.cut.set(Fault::Away);
    let cut_at = world.clock.wall();
    let not_before = Wall(cut_at.0 + 1_000);
    world.until(async || world.clock.wall() > Wall(cut_at.0 + 2_000)).await;
    let (room, viewer) = (RoomId::parse("lobby").unwrap(), ViewerId::parse("viewer").unwrap());
    let mut kicked = Revocations::new(1);
    kicked.handle(&Fact::Kick { app: APP, room, viewer, not_before }, not_before);
    let answer = world.enter(&before).await;

    let offer = &answer.addresses[0];
    let refused = world.verify_after(&kicked, offer, &offer.token).await;
    assert_eq!(refused, Err(TokenRefusal::Revoked));
    let claims = world.claims(&world.enter(&ticket("other")).await).await;
    assert!(u64::from(claims.iat_s) <= cut_at.unix_s());
    let is_control = |it: &(&str, String)| it.0 == "gslb.control";
    world.until(async || world.health.failures().iter().any(is_control)).await;
}

#[tokio::test]
async fn whoever_is_cut_off_for_long_lets_nobody_in_until_it_has_caught_up() {
    let mut world = World::start_without_auth(SocketAddr::from(([127, 0, 0, 1], 0)));
    (world.apps[0].policy.token_ttl_s, world.apps[0].policy.skew_s) = (4, 0);
    world.start_auth(world.gslb).await;
    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;
    world.ready().await;
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };

    for fault in [Fault::Away, Fault::Silent] {
        world.cut.set(fault);
        world.until(async || world.ask(&request).await.status() != 200).await;
        let problem = check(world.ask(&request).await, 503, "behind").await;
        assert!(problem.retry_after_ms > 0);
        let is_control = |it: &(&str, String)| it.0 == "gslb.control";
        world.until(async || world.health.failures().iter().any(is_control)).await;

        world.cut.set(Fault::None);
        world.until(async || world.ask(&request).await.status() == 200).await;
        world.until(async || world.health.failures().is_empty()).await;
    }
}

#[tokio::test]
async fn a_bus_that_lost_control_is_read_from_its_beginning() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let before = ticket_with("viewer", |it| it.iat -= 10);
    assert_eq!(world.enter(&before).await.addresses.len(), 2);

    let empty = MemoryBus::new(world.clock.clone(), Limits::default());
    let (room, viewer) = (RoomId::parse("lobby").unwrap(), ViewerId::parse("viewer").unwrap());
    let kick = Fact::Kick { app: APP, room, viewer, not_before: world.clock.wall() };
    let (topic, key, value) = (topic::control(), kick.key().into(), kick.encode().into());
    let partition = PartitionNo(0);
    let record = Publish { topic, partition, term: None, key: Some(key), value };
    empty.publish(vec![record]).await[0].unwrap();
    world.cut.replace(empty);

    let request = EnterRequest { ticket: before, ..EnterRequest::default() };
    world.until(async || world.ask(&request).await.status() == 403).await;
    check(world.ask(&request).await, 403, "kicked").await;
    assert_eq!(world.count(r#"gslb_facts_refused_total{kind="lost"}"#), 1);
    assert_eq!(world.enter(&ticket("other")).await.addresses.len(), 2);
}

#[tokio::test]
async fn an_end_without_a_record_before_it_is_reached_all_the_same() {
    let mut world = World::start_without_auth(SocketAddr::from(([127, 0, 0, 1], 0)));
    world.cut.set(Fault::Hollow);
    world.start_auth(world.gslb).await;
    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;

    world.ready().await;

    assert_eq!(world.enter(&ticket("viewer")).await.addresses.len(), 2);
    assert!(world.health.failures().is_empty());
}

#[tokio::test]
async fn nobody_enters_before_control_was_read_once() {
    let mut world = World::start_without_auth(SocketAddr::from(([127, 0, 0, 1], 0)));
    world.start_auth(world.gslb).await;
    world.cut.set(Fault::Away);
    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };
    world.until(async || world.count(r#"gslb_masters_fetches_total{outcome="ok"}"#) > 0).await;

    check(world.ask(&request).await, 503, "behind").await;
    world.cut.set(Fault::None);

    world.ready().await;
    assert_eq!(world.enter(&ticket("viewer")).await.addresses.len(), 2);
}
