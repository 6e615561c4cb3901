//! Master keys: what a gslb does without the auth service, and when a master is new or void.

use std::net::SocketAddr;
use std::time::Duration;

use auth_core::token::Unverified;
use proto::control::Fact;
use proto::enter::{EnterRequest, EnterResponse};

use crate::world::{World, check, ticket, ticket_with};

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

/// The copy is from before: there the numbers of epochs meant other times.
#[tokio::test]
async fn epochs_of_another_length_take_the_place_of_those_before() {
    let mut world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    world.until(async || world.dir.path().join("gslb/masters.sealed").exists()).await;
    world.stop().await;

    world.interval_s = 300;
    world.start_auth(SocketAddr::from(([127, 0, 0, 1], 0))).await;
    world.start_gslb(|_| {}).await;
    let _link = world.link(3).await;
    world.ready().await;

    let answer = world.enter(&ticket("viewer")).await;
    assert_eq!(world.claims(&answer).await.account.as_str(), "viewer");
}

#[tokio::test]
async fn a_new_master_is_fetched_when_an_epoch_names_it_and_mints_when_its_time_comes() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let ticket = ticket_with("viewer", |it| it.exp += 3_600);
    let fetches = || world.count(r#"gslb_masters_fetches_total{outcome="ok"}"#);
    let (fetches_before, start) = (fetches(), world.clock.mono());

    world.operate("/v1/masters/rotate").await;
    world
        .until(async || {
            world.enter(&ticket).await;
            fetches() > fetches_before
        })
        .await;
    assert!(world.clock.mono().since(start) < Duration::from_secs(20), "the clock alone did it");
    assert_eq!(kid(&world.enter(&ticket).await), Some(0));

    // Two epochs on: the next one may have been too near for everybody to have the new master.
    world.clock.step(1_200_000);
    world.until(async || kid(&world.enter(&ticket).await) == Some(1)).await;
    let answer = world.enter(&ticket).await;
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

/// The master that the first token names.
fn kid(answer: &EnterResponse) -> Option<u8> {
    let offer = answer.addresses.first()?;
    Some(Unverified::read(&offer.token).unwrap().selector.kid)
}
