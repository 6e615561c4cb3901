//! A link that does not hear `control` lets nobody in, and makes up for it when it hears again.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, Fault, FaultyBus, MemoryBus, PartitionNo, Publish};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::id::ViewerId;
use proto::time::Wall;

use crate::client::Answer;
use crate::world::{APP, World, room};

#[tokio::test]
async fn a_link_whose_bus_is_away_catches_up_before_its_next_login() {
    check_catching_up(Fault::Away).await;
}

#[tokio::test]
async fn a_link_whose_bus_is_silent_catches_up_before_its_next_login() {
    check_catching_up(Fault::Silent).await;
}

#[tokio::test]
async fn a_link_whose_bus_is_slow_catches_up_before_its_next_login() {
    check_catching_up(Fault::Slow(Duration::from_secs(2))).await;
}

async fn check_catching_up(fault: Fault) {
    let limits = bus::memory::Limits::default();
    let world = World::with(limits, |config| config.control_ms_max = 1000).await;
    let mut alice = world.enter("tcp", "alice", "r").await;
    let mut carol = world.enter("ws", "carol", "r").await;

    world.set_bus(fault);
    while login(&world, "dave").await != Some(CloseCode::Unavailable) {}
    kick(&world, "alice").await;
    kick(&world, "bob").await;
    assert_eq!(login(&world, "bob").await, Some(CloseCode::Unavailable), "nobody is let in");
    world.until("the part fails", || !world.health.failures().is_empty()).await;
    alice.lives().await;

    world.set_bus(Fault::None);
    let mut bob = login(&world, "bob").await;
    while bob == Some(CloseCode::Unavailable) {
        bob = login(&world, "bob").await;
    }
    assert_eq!(bob, Some(CloseCode::Kicked), "no login before the link has caught up");
    assert_eq!(alice.closed().await, CloseCode::Kicked);
    assert_eq!(login(&world, "dave").await, None);
    carol.lives().await;
    world.until("the link is well again", || world.health.failures().is_empty()).await;
    assert!(world.metric("link_logins_total{outcome=\"control_behind\"}") > 0);
}

#[tokio::test]
async fn a_link_that_starts_cut_off_lets_nobody_in() {
    let mut world = World::new().await;
    kick(&world, "bob").await;

    world.set_bus(Fault::Away);
    world.restart(|config| config.control_ms_max = 60_000).await;
    let mut refused = login(&world, "bob").await;
    assert_eq!(refused, Some(CloseCode::Unavailable));

    world.set_bus(Fault::None);
    while refused == Some(CloseCode::Unavailable) {
        refused = login(&world, "bob").await;
    }
    assert_eq!(refused, Some(CloseCode::Kicked));
}

#[tokio::test]
async fn a_quiet_bus_is_not_taken_for_a_lost_one() {
    let limits = bus::memory::Limits::default();
    let world = World::with(limits, |config| config.control_ms_max = 1000).await;
    let start = world.clock.mono();

    while world.clock.mono().since(start) < Duration::from_millis(2500) {
        assert_eq!(login(&world, "alice").await, None);
    }
}

#[tokio::test]
async fn an_end_without_a_record_before_it_is_reached_all_the_same() {
    let limits = bus::memory::Limits::default();
    let hollow = |bus| {
        let bus = FaultyBus::new(bus);
        bus.set(Fault::Hollow);
        bus as Arc<dyn Bus>
    };
    let world = World::with_bus(limits, |_| {}, hollow).await;

    assert_eq!(login(&world, "alice").await, None);
}

#[tokio::test]
async fn a_bus_that_lost_control_is_read_from_its_beginning_before_the_next_login() {
    let limits = bus::memory::Limits::default();
    let mut lossy = None;
    let wrap = |bus| Arc::<FaultyBus>::clone(lossy.insert(FaultyBus::new(bus))) as Arc<dyn Bus>;
    let world = World::with_bus(limits.clone(), |_| {}, wrap).await;
    let lossy = lossy.unwrap();
    world.open_room("s").await;
    let mut alice = world.enter("tcp", "alice", "r").await;
    let mut carol = world.enter("tcp", "carol", "r").await;

    let empty = MemoryBus::new(world.clock.clone(), limits);
    let (fact, partition) = (kick_of(&world, "alice"), PartitionNo(0));
    let (topic, key, value) = (bus::topic::control(), fact.key().into(), fact.encode().into());
    let record = Publish { topic, partition, term: None, key: Some(key), value };
    empty.publish(vec![record]).await[0].unwrap();
    lossy.set(Fault::Unread);
    lossy.replace(empty);
    world.until("it is noticed", || world.metric("link_control_losses_total") > 0).await;
    assert_eq!(login(&world, "dave").await, Some(CloseCode::Unavailable));
    world.until("the part fails", || !world.health.failures().is_empty()).await;
    alice.lives().await;
    lossy.set(Fault::None);

    assert_eq!(alice.closed().await, CloseCode::Kicked);
    world.until("the link is well again", || world.health.failures().is_empty()).await;
    assert_eq!(login(&world, "dave").await, None);
    assert_eq!(world.metric("link_control_losses_total"), 1);
    carol.lives().await;
}

/// Why a login is refused, if it is.
async fn login(world: &World, viewer: &str) -> Option<CloseCode> {
    // Minted a little earlier, so that the kick is after it in any case.
    let token = world.token_with("tcp", viewer, "r", |claims| claims.iat_s -= 5);
    match world.connect("tcp").await.login(&token, "r").await {
        Answer::In(_) => None,
        Answer::Out(code) => Some(code),
    }
}

async fn kick(world: &World, viewer: &str) {
    world.tell(kick_of(world, viewer)).await;
}

fn kick_of(world: &World, viewer: &str) -> Fact {
    let viewer = ViewerId::parse(viewer).unwrap();
    let not_before = Wall(world.clock.wall().0 + 1000);
    Fact::Kick { app: APP, room: room("r"), viewer, not_before }
}
