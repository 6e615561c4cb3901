//! What a node tells gslb when it is attacked or drains, and how its sessions move.

use std::net::SocketAddr;
use std::time::Duration;

use bus::memory::Limits;
use link::Siege;
use proto::address::{Address, Carrier, Transport};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::{Close, Control, Downlink};
use proto::id::ViewerId;
use proto::load::LoadReport;
use proto::time::Wall;
use tokio::net::{TcpStream, UdpSocket};

use crate::client::Client;
use crate::world::{APP, NODE, PATIENCE, World, room};

/// Bytes of a report's MAC.
const MAC_BYTES: usize = 32;
/// Connections of the flood, in case nothing comes of it.
const FLOOD_MAX: usize = 500_000;

#[tokio::test]
async fn a_flood_besieges_the_node_and_calm_relieves_it() {
    let collector = Collector::bind().await;
    let addr = collector.addr();
    let world = World::with(Limits::default(), |config| {
        config.collectors = vec![addr.to_string()];
        config.siege = Siege {
            enabled: true,
            failures_per_s_min: 50,
            failures_per_login_min: 5,
            sites_min: 1,
            onset_ms: 1_100,
            calm_ms: 300,
        };
    })
    .await;
    assert!(!collector.next().await.load.besieged);
    let target: SocketAddr = world.address("tcp").authority().parse().unwrap();

    let mut connections = 0;
    while !collector.newest().is_some_and(|it| it.load.besieged) {
        drop(TcpStream::connect(target).await.unwrap());
        connections += 1;
        if connections % 50 == 0 {
            collector.next().await;
        }
        assert!(connections < FLOOD_MAX, "the flood was not noticed");
    }

    assert_eq!(world.metric("link_besieged"), 1);
    collector.until("relieved", |it| !it.load.besieged).await;
    assert_eq!(world.metric("link_besieged"), 0);
}

#[tokio::test]
async fn a_rush_into_a_limited_room_is_no_siege() {
    let world = World::with(Limits::default(), |config| {
        config.entry.room_joins_per_s = 1;
        config.siege = Siege {
            enabled: true,
            failures_per_s_min: 5,
            failures_per_login_min: 1,
            sites_min: 1,
            onset_ms: 1_100,
            calm_ms: 60_000,
        };
    })
    .await;
    let until = world.clock.mono() + Duration::from_secs(4);

    let mut refused = 0;
    while world.clock.mono() < until {
        let mut viewer = world.connect("tcp").await;
        let answer = viewer.login(&world.token("tcp", "viewer", "r"), "r").await;
        refused += u32::from(!answer.is_in());
    }

    assert!(refused > 100, "{refused} are no rush");
    assert_eq!(world.metric("link_besieged"), 0);
}

#[tokio::test]
async fn a_change_is_told_without_waiting_for_the_next_report() {
    let collector = Collector::bind().await;
    let addr = collector.addr();
    let world = World::with(Limits::default(), |config| {
        config.collectors = vec![addr.to_string()];
        config.report_ms_max = 3_600_000;
    })
    .await;

    let viewer = world.enter("tcp", "viewer", "r").await;
    collector.until("in", |it| it.load.sessions == 1).await;
    drop(viewer);
    collector.until("out", |it| it.load.sessions == 0 && it.load.handshakes == 0).await;
    world.shut_down();

    collector.until("draining", |it| it.load.draining).await;
}

#[tokio::test]
async fn reserve_listeners_are_served_and_reported_apart() {
    let collector = Collector::bind().await;
    let addr = collector.addr();
    let world = World::with(Limits::default(), |config| {
        config.collectors = vec![addr.to_string()];
        config.handshakes_per_s_max = 77;
        let tcp = config.listeners[0].clone();
        config.listeners.push(link::ListenerConfig { reserve: true, ..tcp });
    })
    .await;

    let report = collector.next().await;

    assert_eq!(report.load.handshakes_per_s_max, 77);
    assert_eq!(report.addresses.len(), 6);
    let [reserve] = &report.reserve[..] else { panic!("{:?}", report.reserve) };
    assert!(!report.addresses.contains(reserve));
    let target: SocketAddr = reserve.authority().parse().unwrap();
    assert_ne!(target, world.address("tcp").authority().parse().unwrap());
    TcpStream::connect(target).await.unwrap();
}

#[tokio::test]
async fn who_holds_every_public_place_holds_none_of_the_reserve() {
    let collector = Collector::bind().await;
    let addr = collector.addr();
    let world = World::with(Limits::default(), |config| {
        config.collectors = vec![addr.to_string()];
        config.siege.enabled = false;
        config.handshakes_max = 8;
        let tcp = config.listeners[0].clone();
        config.listeners.push(link::ListenerConfig { reserve: true, ..tcp });
    })
    .await;
    let public: SocketAddr = world.address("tcp").authority().parse().unwrap();
    let reserve: SocketAddr = collector.next().await.reserve[0].authority().parse().unwrap();
    world.until("none is held", || world.metric("link_handshakes") == 0).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(TcpStream::connect(public).await.unwrap());
    }
    world.until("all are held", || world.metric("link_handshakes") == 8).await;

    held.push(TcpStream::connect(reserve).await.unwrap());

    world.until("one more is held", || world.metric("link_handshakes") == 9).await;
    drop(TcpStream::connect(public).await.unwrap());
    let full = "link_turned_away_total{why=\"full\"}";
    world.until("the next is turned away", || world.metric(full) == 1).await;
}

#[tokio::test]
async fn sessions_that_move_are_told_where_to_by_turns_and_only_once() {
    let world = World::new().await;
    let mut viewers = [world.enter("tcp", "a", "r").await, world.enter("tcp", "b", "r").await];
    let to = |port, transport| Address {
        host: "127.0.0.1".to_owned(),
        port,
        transport,
        carrier: Carrier::Bgp,
        machine_room: String::new(),
    };
    let addresses = vec![to(1, Transport::Tcp), to(2, Transport::Tcp), to(3, Transport::Wss)];
    let at = world.clock.wall();
    let fact = moved(None, addresses, at);

    world.tell(fact.clone()).await;

    let mut told = Vec::new();
    for viewer in &mut viewers {
        let Close { code, retry_after_ms, addresses, .. } = closed(viewer).await;
        assert_eq!((code, retry_after_ms), (CloseCode::Moved, 0));
        told.push(addresses);
    }
    told.sort();
    assert_eq!(told, [["127.0.0.1:1", "127.0.0.1:2"], ["127.0.0.1:2", "127.0.0.1:1"]]);

    let mut later = world.enter("tcp", "c", "r").await;
    world.tell(fact).await;
    let (viewer, until) = (ViewerId::parse("c").unwrap(), Wall(u64::MAX / 2));
    world.tell(Fact::Mute { app: APP, room: room("r"), viewer, until }).await;
    let next = later.receive().await;
    assert!(matches!(next, Downlink::Control(Control::Muted { .. })), "{next:?}");
    later.lives().await;
}

#[tokio::test]
async fn connections_before_their_login_are_no_part_of_those_that_move() {
    let world = World::new().await;
    world.until("nobody is here", || world.metric("link_sessions") == 0).await;
    world.until("none is held", || world.metric("link_handshakes") == 0).await;
    let _held = TcpStream::connect(world.address("tcp").authority()).await.unwrap();
    world.until("one is held", || world.metric("link_handshakes") == 1).await;
    let mut viewer = world.enter("tcp", "a", "r").await;
    let (addresses, at) = (Vec::new(), world.clock.wall());

    world.tell(moved(Some(1), addresses, at)).await;

    assert_eq!(closed(&mut viewer).await.code, CloseCode::Moved);
    assert_eq!(world.metric("link_handshakes"), 1);
}

/// An order to move for another reason than that the node drains.
fn moved(sessions: Option<u32>, addresses: Vec<Address>, at: Wall) -> Fact {
    let shares = Vec::new();
    Fact::Move { node: NODE, sessions, window_ms: 0, addresses, at, drain: None, shares }
}

pub(crate) async fn closed(client: &mut Client) -> Close {
    loop {
        if let Downlink::Close(close) = client.receive().await {
            return close;
        }
    }
}

/// Hears the node's reports.
pub(crate) struct Collector(UdpSocket);

impl Collector {
    pub(crate) async fn bind() -> Self {
        Self(UdpSocket::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    async fn next(&self) -> LoadReport {
        let mut buffer = [0; 2048];
        let received = tokio::time::timeout(PATIENCE, self.0.recv(&mut buffer));
        let bytes = received.await.expect("no report").unwrap();
        LoadReport::decode(&buffer[..bytes - MAC_BYTES]).unwrap()
    }

    /// The newest of those that are here.
    fn newest(&self) -> Option<LoadReport> {
        let mut buffer = [0; 2048];
        let mut newest = None;
        while let Ok(bytes) = self.0.try_recv(&mut buffer) {
            newest = Some(LoadReport::decode(&buffer[..bytes - MAC_BYTES]).unwrap());
        }
        newest
    }

    pub(crate) async fn until(
        &self,
        what: &str,
        holds: impl Fn(&LoadReport) -> bool,
    ) -> LoadReport {
        let heard = async {
            loop {
                let report = self.next().await;
                if holds(&report) {
                    return report;
                }
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.unwrap_or_else(|_| panic!("never {what}"))
    }
}
