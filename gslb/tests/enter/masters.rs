//! Master keys: what a gslb does without the auth service, and when a master is new or void.

use std::net::SocketAddr;

use proto::control::Fact;
use proto::enter::EnterRequest;

use crate::world::{World, check, ticket};

#[tokio::test]
async fn a_gslb_that_starts_while_auth_is_away_mints_with_its_copy() {
    let mut world = World::start().await;
    let link = world.link(2).await;
    world.ready().await;
    let copy = world.dir.path().join("gslb/masters.sealed");
    world.until(async || copy.exists()).await;
    world.stop().await;
    drop(link);

    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;
    world.ready().await;

    let answer = world.enter(&ticket("viewer")).await;
    assert_eq!(answer.addresses.len(), 2);
    assert!(world.count(r#"gslb_masters_fetches_total{outcome="failed"}"#) > 0);
    world.start_auth(SocketAddr::from(([127, 0, 0, 1], 0))).await;
    assert_eq!(world.claims(&answer).await.account.as_str(), "viewer");
}

#[tokio::test]
async fn a_short_horizon_is_told_before_it_ends() {
    let world = World::start_with(|config| config.horizon_s_min = 100_000).await;
    let _link = world.link(2).await;
    world.ready().await;

    world.until(async || world.health.warnings().iter().any(|it| it.0 == "gslb.keys")).await;

    assert_eq!(world.health.failures(), []);
    assert_eq!(world.enter(&ticket("viewer")).await.addresses.len(), 2);
}

#[tokio::test]
async fn void_epochs_mint_nothing() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let request = EnterRequest { ticket: ticket("viewer"), ..EnterRequest::default() };

    world.publish(Fact::Revoked { kid: 0, from_epoch: 0, to_epoch: u32::MAX }).await;
    world.until(async || world.ask(&request).await.status() != 200).await;

    let problem = check(world.ask(&request).await, 503, "no_keys").await;
    assert!(problem.retry_after_ms > 0);
    world.until(async || world.health.failures().iter().any(|it| it.0 == "gslb.keys")).await;
}
