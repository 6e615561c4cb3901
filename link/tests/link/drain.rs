//! What sessions are told when their node drains.

use bus::memory::Limits;
use link::Config;
use proto::address::{Address, Carrier, Transport};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::{Close, Control, Downlink};
use proto::id::ViewerId;
use proto::time::Wall;

use crate::client::Client;
use crate::siege::{Collector, closed};
use crate::world::{APP, NODE, World, room};

#[tokio::test]
async fn each_session_is_told_three_addresses_that_speak_as_it_does() {
    let (world, collector) = site(|_| {}).await;
    let mut viewers = Vec::new();
    for transport in ["tcp", "tls", "wss", "tcp", "tls", "wss"] {
        viewers.push((transport, world.enter(transport, transport, "r").await));
    }

    world.shut_down();
    let life = collector.until("draining", |it| it.load.draining).await.start;
    world.tell(answer(&world, life, None, 0)).await;

    for (transport, viewer) in &mut viewers {
        let Close { code, addresses, retry_after_ms, .. } = closed(viewer).await;
        assert_eq!((code, retry_after_ms), (CloseCode::Draining, 0), "over {transport}");
        assert_eq!(addresses.len(), 3, "over {transport}");
        let own = |it: &String| it.starts_with(*transport);
        assert!(addresses.iter().all(own), "{addresses:?} over {transport}");
    }
    assert_eq!(world.metric("link_drained_sessions_total{to=\"addresses\"}"), 6);
    world.ended().await;
}

#[tokio::test]
async fn those_for_whom_there_is_no_room_are_sent_to_enter() {
    let (world, collector) = site(|it| it.drain_ms = 40).await;
    let mut viewers = Vec::new();
    for viewer in ["a", "b", "c"] {
        viewers.push(world.enter("tcp", viewer, "r").await);
    }

    world.shut_down();
    let life = collector.until("draining", |it| it.load.draining).await.start;
    world.tell(answer(&world, life, Some(1), 0)).await;

    let mut told = Vec::new();
    for viewer in &mut viewers {
        let Close { code, addresses, retry_after_ms, .. } = closed(viewer).await;
        assert_eq!(code, CloseCode::Draining);
        assert!(retry_after_ms <= 40);
        told.push(addresses.len());
    }
    assert_eq!(told, [3, 0, 0]);
}

#[tokio::test]
async fn those_that_are_left_when_the_time_is_over_are_sent_to_enter_at_once() {
    let (world, collector) = site(|it| (it.drain_ms, it.drain_ms_max) = (0, 0)).await;
    let mut viewers = [world.enter("tcp", "a", "r").await, world.enter("ws", "b", "r").await];

    world.shut_down();
    let life = collector.until("draining", |it| it.load.draining).await.start;
    world.tell(answer(&world, life, None, 30_000)).await;

    for viewer in &mut viewers {
        let Close { code, addresses, .. } = closed(viewer).await;
        assert_eq!((code, addresses.len()), (CloseCode::Draining, 0));
    }
    assert_eq!(world.metric("link_drained_sessions_total{to=\"enter\"}"), 2);
    world.ended().await;
}

#[tokio::test]
async fn an_answer_to_the_drain_of_an_earlier_life_is_none_to_this_one() {
    let (world, collector) = site(|_| {}).await;
    let mut viewer = world.enter("tcp", "a", "r").await;

    world.shut_down();
    let life = collector.until("draining", |it| it.load.draining).await.start;
    world.tell(answer(&world, Wall(life.0 - 1), Some(0), 0)).await;
    world.tell(answer(&world, life, None, 0)).await;

    let Close { code, addresses, .. } = closed(&mut viewer).await;
    assert_eq!((code, addresses.len()), (CloseCode::Draining, 3));
}

#[tokio::test]
async fn a_node_that_does_not_drain_moves_nobody_because_it_drained() {
    let (world, collector) = site(|it| it.drain_addresses_ms_max = 50).await;
    let mut viewer = world.enter("tcp", "a", "r").await;
    let life = collector.until("there", |it| it.load.sessions == 1).await.start;

    world.tell(answer(&world, life, None, 0)).await;
    hears_a_mute(&world, &mut viewer).await;
    viewer.lives().await;
    world.shut_down();

    let Close { code, addresses, .. } = closed(&mut viewer).await;
    assert_eq!((code, addresses.len()), (CloseCode::Draining, 0), "it was not for this drain");
}

#[tokio::test]
async fn a_node_that_drains_waits_for_its_answer_and_follows_no_other_order() {
    let (world, collector) = site(|_| {}).await;
    let mut viewer = world.enter("tcp", "a", "r").await;
    world.shut_down();
    let life = collector.until("draining", |it| it.load.draining).await.start;
    let mut order = answer(&world, life, None, 0);
    let Fact::Move { at, drain, .. } = &mut order else { unreachable!("it is an order") };
    // An order counts if it is newer than the last.
    (*at, *drain) = (Wall(at.0 - 1), None);

    world.tell(order).await;
    hears_a_mute(&world, &mut viewer).await;
    viewer.lives().await;
    world.tell(answer(&world, life, None, 0)).await;

    let Close { code, addresses, .. } = closed(&mut viewer).await;
    assert_eq!((code, addresses.len()), (CloseCode::Draining, 3));
}

/// Lets the viewer hear something that was told after everything else.
async fn hears_a_mute(world: &World, viewer: &mut Client) {
    let (muted, until) = (ViewerId::parse("a").unwrap(), Wall(u64::MAX / 2));
    world.tell(Fact::Mute { app: APP, room: room("r"), viewer: muted, until }).await;
    let next = viewer.receive().await;
    assert!(matches!(next, Downlink::Control(Control::Muted { .. })), "{next:?}");
}

/// A node that waits long for an answer, and a collector that hears it.
async fn site(change: impl FnOnce(&mut Config)) -> (World, Collector) {
    let collector = Collector::bind().await;
    let addr = collector.addr();
    let world = World::with(Limits::default(), |config| {
        config.collectors = vec![addr.to_string()];
        (config.drain_ms, config.drain_addresses_ms_max) = (0, 20_000);
        change(config);
    });
    (world.await, collector)
}

/// What a gslb says to a node that drains in this life: four addresses of each transport.
fn answer(world: &World, life: Wall, sessions: Option<u32>, window_ms: u32) -> Fact {
    let of = |transport: Transport| {
        (1..=4).map(move |number| Address {
            host: format!("{}-{number}.example", transport.name()),
            port: 443,
            transport,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        })
    };
    let transports = [Transport::Tcp, Transport::Tls, Transport::Wss];
    let addresses = transports.into_iter().flat_map(of).collect();
    let (at, drain, shares) = (world.clock.wall(), Some(life), Vec::new());
    Fact::Move { node: NODE, sessions, window_ms, addresses, at, drain, shares }
}
