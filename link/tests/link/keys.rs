//! Keys: kept over a restart, running out, and good at every link of the unit.

use std::time::Duration;

use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::Credential;
use proto::id::ViewerId;
use proto::time::Wall;

use crate::world::{APP, World, room};

/// All epochs that the world's keys are for, and then some.
const PAST_THE_HORIZON_MS: i64 = 8 * 600_000;

#[tokio::test]
async fn a_link_that_starts_without_the_auth_service_takes_logins_with_the_keys_it_kept() {
    let mut world = World::new().await;
    world.restart(|config| config.auth_url = "https://127.0.0.1:1".to_owned()).await;
    world.until("the link is well", || world.health.failures().is_empty()).await;

    world.enter("tcp", "alice", "r").await.lives().await;
    assert_eq!(world.metric("link_key_fetches_total{outcome=\"ok\"}"), 1);
}

#[tokio::test]
async fn the_last_quarter_warns_and_past_the_horizon_nobody_comes_in() {
    let mut world = World::new().await;
    world.restart(|config| config.auth_url = "https://127.0.0.1:1".to_owned()).await;
    world.until("the link is well", || world.health.failures().is_empty()).await;
    assert_eq!(world.health.warnings(), []);
    let mut alice = world.enter("tcp", "alice", "r").await;
    let reach_s = i64::try_from(world.metric("link_keys_horizon_seconds")).unwrap();

    world.clock.step((reach_s - 600) * 1000);
    world.until("the link warns", || !world.health.warnings().is_empty()).await;
    let why = world.health.warnings()[0].1.clone();
    assert!(why.starts_with("keys reach "), "{why}");
    world.enter("tcp", "bob", "r").await;

    let token = world.token("tcp", "carol", "r");
    world.clock.step(PAST_THE_HORIZON_MS);
    let refused = world.connect("tcp").await.login(&token, "r").await;
    assert_eq!(refused.code(), CloseCode::Unavailable);
    world.until("the part fails", || !world.health.failures().is_empty()).await;
    alice.lives().await;
}

#[tokio::test]
async fn a_resume_ticket_is_good_at_another_link_until_a_kick() {
    let mut world = World::new().await;
    let mut here = world.connect("tcp").await;
    let login = here.login(&world.token("tcp", "alice", "r"), "r").await.ok();

    world.move_to_another_link().await;
    world.open_room("r").await;
    let ticket = Credential::ResumeTicket(login.resume_ticket);
    let mut there = world.connect("ws").await;
    there.login_with(ticket.clone(), "r").await.ok();

    let viewer = ViewerId::parse("alice").unwrap();
    let not_before = Wall(world.clock.wall().0 + 1000);
    world.tell(Fact::Kick { app: APP, room: room("r"), viewer, not_before }).await;
    let told = world.clock.mono();
    assert_eq!(here.closed().await, CloseCode::Kicked);
    assert_eq!(there.closed().await, CloseCode::Kicked);
    let bites = world.clock.mono().since(told);
    assert!(bites < Duration::from_secs(1), "it took {bites:?}");
    let mut again = world.connect("ws").await;
    assert_eq!(again.login_with(ticket, "r").await.code(), CloseCode::Kicked);
}

#[tokio::test]
async fn a_void_epoch_voids_tokens_and_resume_tickets() {
    let world = World::new().await;
    let mut client = world.connect("tcp").await;
    let login = client.login(&world.token("tcp", "alice", "r"), "r").await.ok();
    let ticket = Credential::ResumeTicket(login.resume_ticket);

    world.tell(Fact::Revoked { kid: 0, from_epoch: 0, to_epoch: u32::MAX }).await;
    loop {
        let token = world.token("tcp", "bob", "r");
        let answer = world.connect("tcp").await.login(&token, "r").await;
        if !answer.is_in() {
            assert_eq!(answer.code(), CloseCode::TokenEpoch);
            break;
        }
    }

    let mut again = world.connect("tcp").await;
    assert_eq!(again.login_with(ticket, "r").await.code(), CloseCode::TokenEpoch);
    client.lives().await;
}

#[tokio::test]
async fn single_use_tokens_that_cannot_be_remembered_are_refused() {
    let limits = bus::memory::Limits::default();
    let world = World::with(limits, |config| config.replays_max = 100).await;
    let mut other = world.enter("tcp", "alice", "r").await;

    let refused = loop {
        let token = world.token("tcp", "bob", "r");
        let answer = world.connect("tcp").await.login(&token, "r").await;
        if !answer.is_in() {
            break answer;
        }
    };

    assert_eq!(refused.code(), CloseCode::Full);
    assert_eq!(world.metric("link_logins_total{outcome=\"replays_full\"}"), 1);
    other.lives().await;
}

#[tokio::test]
async fn a_token_that_was_used_before_a_restart_is_used() {
    let mut world = World::new().await;
    let (used, fresh) = (world.token("tcp", "alice", "r"), world.token("tcp", "alice", "r"));
    world.connect("tcp").await.login(&used, "r").await.ok();

    world.restart(|_| {}).await;
    world.restart(|_| {}).await;
    world.until("the link is well", || world.health.failures().is_empty()).await;

    let again = world.connect("tcp").await.login(&used, "r").await;
    assert_eq!(again.code(), CloseCode::TokenReplayed);
    world.connect("tcp").await.login(&fresh, "r").await.ok();
}
