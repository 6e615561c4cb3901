//! What a room asks of those who enter, and which SDKs are served: changed while the link runs.

use std::time::Duration;

use auth_core::token::{cap, flag};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::envelope::Act;
use proto::frame::{Credential, JoinOutcome, Outcome};
use proto::policy::{Access, Entry, Policy, PolicyFact, SdkAct, SdkFact, SdkRule};
use proto::verdict::{Reason, Verdict};

use crate::client::{Answer, Client};
use crate::world::{APP, World, room};

#[tokio::test]
async fn accounts_that_a_room_refuses_stay_out_and_others_come_in() {
    let world = World::new().await;
    tell(&world, 1, Policy { minors: Access::Refuse, ..Policy::default() }).await;

    while enter(&world, "minor", cap::MINOR).await.1.is_in() {}
    let (_, minor) = enter(&world, "minor", cap::MINOR).await;
    let (_, grown) = enter(&world, "grown", 0).await;

    let outcome = minor.ok().rooms[0].outcome.clone();
    assert!(matches!(outcome, JoinOutcome::Refused { code: CloseCode::NoRoom, .. }), "{outcome:?}");
    assert!(grown.is_in());
    assert!(world.metric("link_policy_refusals_total") > 0);
}

#[tokio::test]
async fn a_session_may_send_as_the_policy_of_the_moment_says() {
    let limits = bus::memory::Limits::default();
    let mut world = World::with(limits, |config| config.frames_burst = 100_000).await;
    let (mut new, _) = enter(&world, "new", 0).await;
    let (mut known, _) = enter(&world, "known", cap::VERIFIED).await;
    assert_eq!(new.refused(1).await, None);

    tell(&world, 1, Policy { unverified: Access::Read, ..Policy::default() }).await;
    let refused = first(&mut new, |it| it.is_some()).await;
    assert_eq!(known.refused(2).await, None);
    let sent =
        world.act(|it| it.viewer.as_str() == "known" && !matches!(it.act, Act::Join { .. })).await;
    tell(&world, 2, Policy::default()).await;
    let taken = first(&mut new, |it| it.is_none()).await;

    let read_only = Verdict::Drop { reason: Reason::ReadOnly, retry_after_ms: 0 };
    assert_eq!(refused, Some(Outcome::Verdict(read_only)));
    assert!(sent.may_send);
    assert_eq!(taken, None);
}

#[tokio::test]
async fn a_session_that_a_room_refuses_from_now_on_leaves() {
    let world = World::new().await;
    let (mut minor, _) = enter(&world, "minor", cap::MINOR).await;
    let (mut grown, _) = enter(&world, "grown", 0).await;

    tell(&world, 1, Policy { minors: Access::Refuse, ..Policy::default() }).await;

    assert_eq!(minor.closed().await, CloseCode::NoRoom);
    grown.lives().await;
}

#[tokio::test]
async fn who_came_without_a_ticket_leaves_when_a_room_asks_for_one() {
    let limits = bus::memory::Limits::default();
    let mut world = World::with(limits, |config| config.frames_burst = 100_000).await;
    tell(&world, 1, entry(Entry::Open)).await;
    let (mut anyone, resume_ticket) = first_without_ticket(&world, "anon-1").await;
    let mut member = world.enter("tcp", "member", "r").await;

    tell(&world, 2, entry(Entry::Guest)).await;
    let refused = first(&mut anyone, |it| it.is_some()).await;
    tell(&world, 3, entry(Entry::Token)).await;
    let told = world.clock.mono();
    let code = anyone.closed().await;
    let left_after = world.clock.mono().since(told);

    let read_only = Verdict::Drop { reason: Reason::ReadOnly, retry_after_ms: 0 };
    assert_eq!(refused, Some(Outcome::Verdict(read_only)));
    assert_eq!(code, CloseCode::TicketRequired);
    assert!(left_after < Duration::from_secs(1), "it took {left_after:?}");
    member.lives().await;
    assert_eq!(member.refused(1).await, None);

    let token = without_ticket(&world, "anon-2");
    let late = world.connect("tcp").await.login(&token, "r").await;
    assert_eq!(late.code(), CloseCode::TicketRequired);
    world.move_to_another_link().await;
    let ticket = Credential::ResumeTicket(resume_ticket);
    let resumed = world.connect("tcp").await.login_with(ticket, "r").await;
    assert_eq!(resumed.code(), CloseCode::TicketRequired);
}

#[tokio::test]
async fn a_skew_that_a_room_allows_is_allowed() {
    let world = World::new().await;
    let late = |world: &World| world.token_with("tcp", "alice", "r", |claims| claims.iat_s -= 100);
    let refused = world.connect("tcp").await.login(&late(&world), "r").await;
    assert_eq!(refused.code(), CloseCode::TokenExpired);

    tell(&world, 1, Policy { skew_s: 60, ..Policy::default() }).await;

    while !world.connect("tcp").await.login(&late(&world), "r").await.is_in() {}
}

#[tokio::test]
async fn sdk_rules_bind_the_next_login_and_no_running_session() {
    let world = World::new().await;
    let mut before = world.enter("tcp", "before", "r").await;
    let rule = |act| SdkRule { sdk: Some("test".to_owned()), from: None, below: None, act };
    let rules = |version, act| Fact::Sdk(SdkFact { version, rules: vec![rule(act)] });

    world.tell(rules(1, SdkAct::Warn)).await;
    while !upgrade_is_asked(&world).await {}
    world.tell(rules(2, SdkAct::Refuse)).await;
    let refused = loop {
        let token = world.token("tcp", "after", "r");
        match world.connect("tcp").await.login(&token, "r").await {
            Answer::Out(code) => break code,
            Answer::In(_) => {}
        }
    };

    assert_eq!(refused, CloseCode::UpgradeRequired);
    assert!(!refused.comes_back());
    before.lives().await;
}

async fn upgrade_is_asked(world: &World) -> bool {
    let mut client = world.connect("tcp").await;
    client.login(&world.token("tcp", "after", "r"), "r").await.ok();
    client.upgrade
}

fn entry(entry: Entry) -> Policy {
    Policy { entry, ..Policy::default() }
}

fn without_ticket(world: &World, viewer: &str) -> String {
    let flags = flag::NO_TICKET | flag::MAY_SEND;
    world.token_with("tcp", viewer, "r", |claims| claims.flags = flags)
}

/// A client in the room that came in without a ticket, as soon as the room allows it, and what it
/// can resume with.
async fn first_without_ticket(world: &World, viewer: &str) -> (Client, String) {
    loop {
        let mut client = world.connect("tcp").await;
        let token = without_ticket(world, viewer);
        match client.login(&token, "r").await {
            Answer::In(ok) => return (client, ok.resume_ticket),
            Answer::Out(code) => assert_eq!(code, CloseCode::TicketRequired),
        }
    }
}

async fn tell(world: &World, version: u64, policy: Policy) {
    let (app, room, policy) = (APP, Some(room("r")), Some(policy));
    world.tell(Fact::Policy(PolicyFact { app, room, version, policy })).await;
}

async fn enter(world: &World, viewer: &str, caps: u16) -> (Client, Answer) {
    let token = world.token_with("tcp", viewer, "r", |claims| claims.caps = caps);
    let mut client = world.connect("tcp").await;
    let answer = client.login(&token, "r").await;
    (client, answer)
}

/// What the link itself answers, as soon as `is_it`.
async fn first(client: &mut Client, is_it: fn(&Option<Outcome>) -> bool) -> Option<Outcome> {
    let mut cid = 100;
    loop {
        cid += 1;
        let outcome = client.refused(cid).await;
        if is_it(&outcome) {
            return outcome;
        }
    }
}
