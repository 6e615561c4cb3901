//! Viewers behind HAProxy and nginx, as the sample configurations set these up.

mod site;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use bus::memory::Limits;
use link::Config;
use proto::close::CloseCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use self::site::{PROXY, Site, Way};
use crate::client::{Client, Pipe};
use crate::world::{PATIENCE, World};

const ORIGIN: &str = "https://live.example";
const TURNED_AWAY: &str = "link_turned_away_total";
const VERSION_1: &[u8] = b"PROXY TCP4 192.0.2.1 192.0.2.2 4711 7401\r\n";

#[tokio::test]
async fn behind_haproxy_viewers_count_for_themselves() {
    let world = behind_proxies(|it| it.address_handshakes_burst = 3).await;
    let site = Site::haproxy(&world);

    for (number, way) in (0..).step_by(2).zip(&site.ways) {
        viewers_count_for_themselves(&world, way, number).await;
    }
}

#[tokio::test]
async fn behind_nginx_viewers_count_for_themselves() {
    let world = behind_proxies(|it| it.address_handshakes_burst = 3).await;
    let site = Site::nginx(&world);

    viewers_count_for_themselves(&world, &site.ways[0], 0).await;
}

#[tokio::test]
async fn pages_of_other_origins_are_refused_through_proxies() {
    let world = behind_proxies(|_| {}).await;
    let from = Ipv4Addr::new(127, 0, 0, 70);

    for site in [Site::haproxy(&world), Site::nginx(&world)] {
        let way = site.ways.iter().find(|it| it.transport == "ws").unwrap();
        way.connect(&world, from, ORIGIN).await.unwrap();
        let foreign = way.connect(&world, from, "https://evil.example").await.err().unwrap();

        assert!(foreign.to_string().contains("403"), "{foreign}");
    }
}

#[tokio::test]
async fn nobody_else_says_where_they_come_from() {
    let world = behind_proxies(|_| {}).await;

    for transport in ["tcp", "tls", "ws", "wss"] {
        for header in [&version_2(Ipv4Addr::new(192, 0, 2, 1))[..], VERSION_1] {
            let mut stream = dial(&world, transport, Ipv4Addr::new(127, 0, 0, 66)).await.unwrap();
            stream.write_all(header).await.unwrap();

            assert!(is_closed(&mut stream).await, "{transport}");
        }
    }
    world.until("all are gone", || world.metric("link_handshakes") == 0).await;
    assert_eq!(world.metric("link_sessions"), 0);
}

#[tokio::test]
async fn a_proxy_that_names_nobody_is_refused() {
    let world = behind_proxies(|_| {}).await;
    let hello = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n";
    let cases =
        [("tcp", VERSION_1), ("tls", VERSION_1), ("ws", VERSION_1), ("tcp", hello), ("ws", hello)];

    for (number, (transport, words)) in (1..).zip(cases) {
        let mut stream = dial(&world, transport, PROXY).await.unwrap();
        stream.write_all(words).await.unwrap();

        assert!(is_closed(&mut stream).await, "{transport}");
        assert_eq!(turned_away(&world, "proxy_header"), number, "{transport}");
    }
}

#[tokio::test]
async fn connections_whose_client_is_not_named_are_few_and_brief() {
    let world = behind_proxies(|config| {
        config.siege.enabled = false;
        config.handshakes_max = 8;
        config.login_ms_max = 4_000;
    })
    .await;
    let mut silent = Vec::new();

    while turned_away(&world, "proxies_full") == 0 {
        silent.push(dial(&world, "tls", PROXY).await.unwrap());
        assert!(silent.len() < 1_000, "all are held");
        tokio::task::yield_now().await;
    }

    assert!(turned_away(&world, "full") == 0, "these places are others");
    for stream in &mut silent {
        assert!(is_closed(stream).await);
    }
}

#[tokio::test]
async fn who_is_named_waits_for_failed_logins_of_theirs_alone() {
    let world = behind_proxies(|_| {}).await;
    let [attacker, viewer] = [1, 2].map(|it| Ipv4Addr::new(192, 0, 2, it));
    let wrong = world.token("ws", "alice", "r");
    let login = async |from, token: &str| {
        let mut stream = dial(&world, "tcp", PROXY).await.unwrap();
        stream.write_all(&version_2(from)).await.unwrap();
        Client::over(Pipe::Stream(Box::new(stream)), None).login(token, "r").await
    };
    let mut failed = 0;
    while login(attacker, &wrong).await.code() != CloseCode::RateLimited {
        failed += 1;
        assert!(failed < 1_000, "they are not limited");
    }

    assert_ne!(login(viewer, &wrong).await.code(), CloseCode::RateLimited);
    assert!(login(viewer, &world.token("tcp", "alice", "r")).await.is_in());
}

/// A link that trusts one proxy, which is on loopback, as all clients are.
async fn behind_proxies(change: impl FnOnce(&mut Config)) -> World {
    World::with(Limits::default(), |config| {
        config.trusted_proxies = [format!("{PROXY}/32").parse().unwrap()].into_iter().collect();
        config.address_handshakes_per_s = 1;
        config.origins = vec![ORIGIN.to_owned()];
        change(config);
    })
    .await
}

/// One address knocks until it is turned away; another one still comes in.
async fn viewers_count_for_themselves(world: &World, way: &Way, number: u8) {
    let [one, other] = [number, number + 1].map(|it| Ipv4Addr::new(127, 0, 0, 70 + it));
    let name = format!("viewer-{number}");
    let before = turned_away(world, "address");
    let mut first = way.connect(world, one, ORIGIN).await.unwrap();
    let login = first.login(&world.token(way.transport, &name, "r"), "r").await;
    assert!(login.is_in(), "{}: {login:?}", way.transport);

    let mut held = Vec::new();
    while turned_away(world, "address") == before {
        held.extend(way.connect(world, one, ORIGIN).await);
        assert!(held.len() < 1_000, "{}", way.transport);
    }

    let mut second = way.connect(world, other, ORIGIN).await.unwrap();
    assert!(second.login(&world.token(way.transport, "other", "r"), "r").await.is_in());
    second.lives().await;
    first.lives().await;
}

async fn dial(world: &World, transport: &str, from: Ipv4Addr) -> io::Result<TcpStream> {
    let to: SocketAddr = world.address(transport).authority().parse().unwrap();
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

/// Whether the link hangs up.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    // A reset counts as an end.
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.is_ok()
}

fn turned_away(world: &World, why: &str) -> u64 {
    world.metric(&format!("{TURNED_AWAY}{{why=\"{why}\"}}"))
}

/// A header of version 2 for a connection over IPv4.
fn version_2(client: Ipv4Addr) -> Vec<u8> {
    let [signature, command] = [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[0x21, 0x11, 0, 12]];
    [signature, command, &client.octets(), &[192, 0, 2, 9], &[1, 2, 3, 4]].concat()
}
