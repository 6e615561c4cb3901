//! Kicks, where the clocks of who kicks and who mints are apart.

use std::time::Duration;

use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::{Credential, Downlink};
use proto::id::ViewerId;

use crate::world::{APP, World, room};

/// How far a gslb's clock is ahead: less than the default skew.
const AHEAD_S: u32 = 20;
/// The default skew.
const SKEW_MS: i64 = 30_000;

#[tokio::test]
async fn a_token_from_a_clock_that_is_ahead_does_not_outrun_a_kick() {
    let world = World::new().await;
    let mut alice = world.connect("tcp").await;
    let login = alice.login(&ahead(&world, "alice"), "r").await.ok();
    let mut bob = world.connect("tcp").await;
    bob.login(&ahead(&world, "bob"), "r").await.ok();
    let unused = ahead(&world, "alice");

    let (viewer, not_before) = (ViewerId::parse("alice").unwrap(), world.clock.wall());
    world.tell(Fact::Kick { app: APP, room: room("r"), viewer, not_before }).await;
    let close = loop {
        if let Downlink::Close(close) = alice.receive().await {
            break close;
        }
    };
    let token = world.connect("tcp").await.login(&unused, "r").await;
    let ticket = Credential::ResumeTicket(login.resume_ticket);
    let resumed = world.connect("tcp").await.login_with(ticket, "r").await;

    assert_eq!(close.code, CloseCode::KickedLately);
    assert!((25_000..40_000).contains(&close.retry_after_ms), "{}", close.retry_after_ms);
    assert_eq!(token.code(), CloseCode::KickedLately);
    assert_eq!(resumed.code(), CloseCode::KickedLately);
    bob.lives().await;

    // Nobody whose clock is within the skew mints such a token before the kick.
    world.clock.step(SKEW_MS + 1000);
    world.enter("tcp", "alice", "r").await.lives().await;
}

#[tokio::test]
async fn a_token_that_bears_an_earlier_time_than_a_kick_is_refused_for_good() {
    let world = World::new().await;
    let mut alice = world.enter("tcp", "alice", "r").await;
    let unused = world.token("tcp", "alice", "r");

    let viewer = ViewerId::parse("alice").unwrap();
    let not_before = world.clock.wall() + Duration::from_secs(1);
    world.tell(Fact::Kick { app: APP, room: room("r"), viewer, not_before }).await;

    assert_eq!(alice.closed().await, CloseCode::Kicked);
    let token = world.connect("tcp").await.login(&unused, "r").await;
    assert_eq!(token.code(), CloseCode::Kicked);
}

fn ahead(world: &World, viewer: &str) -> String {
    world.token_with("tcp", viewer, "r", |claims| claims.iat_s += AHEAD_S)
}
