//! Kicks, where the clocks of who kicks and who mints are apart.

use std::time::Duration;

use auth_core::token::Claims;
use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::{Credential, Downlink, Uplink};
use proto::id::ViewerId;

use crate::client::Client;
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

#[tokio::test]
async fn a_refresh_that_is_refused_leaves_the_session_as_it_was() {
    let world = World::new().await;
    let kicked_at = world.clock.wall();
    let kick = |viewer| {
        let viewer = ViewerId::parse(viewer).unwrap();
        Fact::Kick { app: APP, room: room("r"), viewer, not_before: kicked_at }
    };
    world.tell(kick("alice")).await;
    world.clock.step(SKEW_MS + 1000);
    let mut alice = world.enter("tcp", "alice", "r").await;
    let in_doubt = world.token_with("tcp", "alice", "r", |claims| claims.iat_s -= AHEAD_S);

    let doubted = refresh(&mut alice, in_doubt).await;
    let other = refresh(&mut alice, world.token("tcp", "bob", "r")).await;

    assert_eq!((doubted, other), (CloseCode::KickedLately, CloseCode::TokenInvalid));
    // A kick is held against the session's own credential, which is good.
    let early = |claims: &mut Claims| claims.iat_s -= AHEAD_S;
    let mut carol = world.connect("tcp").await;
    carol.login(&world.token_with("tcp", "carol", "r", early), "r").await.ok();
    world.tell(kick("alice")).await;
    world.tell(kick("carol")).await;
    assert_eq!(carol.closed().await, CloseCode::KickedLately);
    alice.lives().await;
}

/// The code with which the link refuses a refresh.
async fn refresh(client: &mut Client, token: String) -> CloseCode {
    client.send(Uplink::Refresh { token }).await;
    loop {
        if let Downlink::Refused(refused) = client.receive().await {
            return refused.code;
        }
    }
}

fn ahead(world: &World, viewer: &str) -> String {
    world.token_with("tcp", viewer, "r", |claims| claims.iat_s += AHEAD_S)
}
