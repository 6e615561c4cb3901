//! Devices and ranges of addresses that may not be in a room.

use std::net::Ipv4Addr;
use std::time::Duration;

use proto::close::CloseCode;
use proto::control::{Excluded, Fact, Standing};
use proto::frame::{Downlink, JoinOutcome, LoginOk, Uplink};
use proto::id::{DeviceId, ViewerId};
use proto::time::Wall;

use crate::client::Client;
use crate::world::{APP, World, room};

const OUTSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 7, 1);

#[tokio::test]
async fn a_range_is_out_within_a_second_and_the_rest_stays() {
    let world = World::new().await;
    world.open_room("q").await;
    let mut inside = world.enter("tcp", "alice", "r").await;
    let mut elsewhere = world.enter("tcp", "carol", "q").await;
    let mut outside = Client::connect_from(&world, "tcp", OUTSIDE).await;
    outside.login(&world.token("tcp", "bob", "r"), "r").await.ok();

    world.tell(exclude(range("127.0.0.0/24"), Wall(u64::MAX))).await;
    let told = world.clock.mono();

    assert_eq!(inside.closed().await, CloseCode::Banned);
    assert!(world.clock.mono().since(told) < Duration::from_secs(1));
    outside.lives().await;
    elsewhere.lives().await;
    assert_eq!(joins(&enter(&world, "alice").await), Err(CloseCode::Banned));
    world.tell(exclude(range("127.0.0.0/24"), Wall(0))).await;
    eventually_in(&world, "alice").await;
}

#[tokio::test]
async fn a_device_is_out_whoever_uses_it() {
    let world = World::new().await;
    let device = DeviceId::parse("phone-1").unwrap();
    let token =
        |viewer: &str| world.token_with("tcp", viewer, "r", |it| it.device = Some(device.clone()));
    let mut alice = world.connect("tcp").await;
    let ticket = alice.login(&token("alice"), "r").await.ok().resume_ticket;

    world.tell(exclude(Excluded::Device(device.clone()), Wall(u64::MAX))).await;

    assert_eq!(alice.closed().await, CloseCode::Banned);
    let bob = world.connect("tcp").await.login(&token("bob"), "r").await.ok();
    assert_eq!(joins(&bob), Err(CloseCode::Banned));
    let ticket = proto::frame::Credential::ResumeTicket(ticket);
    let resumed = world.connect("tcp").await.login_with(ticket, "r").await.ok();
    assert_eq!(joins(&resumed), Err(CloseCode::Banned));
    world.enter("tcp", "alice", "r").await.lives().await;
}

#[tokio::test]
async fn a_device_is_out_although_its_session_has_a_newer_token() {
    let world = World::new().await;
    let device = DeviceId::parse("phone-1").unwrap();
    let token = world.token_with("tcp", "alice", "r", |it| it.device = Some(device.clone()));
    let mut alice = world.connect("tcp").await;
    alice.login(&token, "r").await.ok();

    alice.send(Uplink::Refresh { token: world.token("tcp", "alice", "r") }).await;
    assert!(matches!(alice.receive().await, Downlink::LoginOk(_)));
    world.tell(exclude(Excluded::Device(device), Wall(u64::MAX))).await;

    assert_eq!(alice.closed().await, CloseCode::Banned);
}

#[tokio::test]
async fn who_is_on_the_allow_list_is_let_in_from_an_excluded_range() {
    let world = World::new().await;
    let viewer = ViewerId::parse("alice").unwrap();
    let standing = Standing { listed: true, ..Standing::default() };
    world.tell(Fact::Person { app: APP, room: room("r"), viewer, standing }).await;
    let mut bob = world.enter("tcp", "bob", "r").await;

    world.tell(exclude(range("127.0.0.1"), Wall(u64::MAX))).await;

    assert_eq!(bob.closed().await, CloseCode::Banned);
    world.enter("tcp", "alice", "r").await.lives().await;
}

fn exclude(what: Excluded, until: Wall) -> Fact {
    Fact::Exclude { app: APP, room: room("r"), what, until }
}

fn range(text: &str) -> Excluded {
    Excluded::Range(text.parse().unwrap())
}

async fn enter(world: &World, viewer: &str) -> LoginOk {
    let token = world.token("tcp", viewer, "r");
    world.connect("tcp").await.login(&token, "r").await.ok()
}

async fn eventually_in(world: &World, viewer: &str) {
    let told = world.clock.mono();
    while joins(&enter(world, viewer).await).is_err() {
        assert!(world.clock.mono().since(told) < Duration::from_secs(10));
    }
}

/// Whether the first room was entered.
fn joins(ok: &LoginOk) -> Result<(), CloseCode> {
    match ok.rooms[0].outcome {
        JoinOutcome::In { .. } => Ok(()),
        JoinOutcome::Refused { code, .. } => Err(code),
    }
}

#[tokio::test]
async fn a_ban_during_a_reconnect_leaves_nobody_in_the_room() {
    let world = World::new().await;
    let viewer = ViewerId::parse("alice").unwrap();
    for round in 1..=20 {
        let ban = |until| Fact::Ban { app: APP, room: room("r"), viewer: viewer.clone(), until };
        let token = world.token("tcp", "alice", "r");
        let mut client = world.connect("tcp").await;

        let (login, ()) = tokio::join!(client.login(&token, "r"), world.tell(ban(Wall(u64::MAX))));
        if joins(&login.ok()).is_ok() {
            assert_eq!(client.closed().await, CloseCode::Banned, "round {round}");
        }
        assert_eq!(joins(&enter(&world, "alice").await), Err(CloseCode::Banned));
        world.tell(ban(Wall(0))).await;
        eventually_in(&world, "alice").await;
    }
}
