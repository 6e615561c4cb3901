//! What only QUIC has: one stream, addresses that must be shown, and clients that move.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use bus::memory::Limits;
use channel::{ClientTls, EXPORTER_LABEL};
use futures_util::FutureExt;
use proto::close::CloseCode;
use proto::control::Fact;
use proto::id::Seq;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connecting, Connection, ConnectionError, Endpoint, ServerConfig, TransportConfig,
    WriteError,
};
use tokio::net::TcpStream;

use crate::client::{Client, Pipe};
use crate::world::{NODE, PATIENCE, World, flush};

const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A viewer's connection, and what it is made of.
pub(crate) struct Dialled {
    pub(crate) client: Client,
    endpoint: Endpoint,
    connection: Connection,
}

/// Connects from an address of loopback; only the handshake may fail.
pub(crate) async fn dial(
    to: SocketAddr,
    tls: QuicClientConfig,
    from: Ipv4Addr,
) -> Result<Dialled, ConnectionError> {
    let endpoint = Endpoint::client((from, 0).into()).unwrap();
    let mut config = ClientConfig::new(Arc::new(tls));
    let mut transport = TransportConfig::default();
    // Small, so that a client that does not read is soon a slow one.
    transport.stream_receive_window((8_u32 * 1024).into());
    config.transport_config(Arc::new(transport));
    let connecting = endpoint.connect_with(config, to, "127.0.0.1").unwrap();
    let connection = connecting.await?;
    Ok(Dialled { client: open(&connection).await, endpoint, connection })
}

/// Opens the one stream.
async fn open(connection: &Connection) -> Client {
    let (send, recv) = connection.open_bi().await.unwrap();
    let mut exporter = [0; 32];
    connection.export_keying_material(&mut exporter, EXPORTER_LABEL, &[]).unwrap();
    let pipe = Pipe::Stream(Box::new(tokio::io::join(recv, send)));
    Client::over(pipe, Some(exporter))
}

pub(crate) fn believing(tls: &ClientTls) -> QuicClientConfig {
    tls.quic().try_into().unwrap()
}

pub(crate) fn target(world: &World) -> SocketAddr {
    world.address("quic").authority().parse().unwrap()
}

async fn enter(world: &World, viewer: &str) -> Dialled {
    let tls = believing(&world.certs.client().unwrap());
    let mut dialled = dial(target(world), tls, Ipv4Addr::LOCALHOST).await.unwrap();
    dialled.client.login(&world.token("quic", viewer, "r"), "r").await.ok();
    dialled
}

#[tokio::test]
async fn another_protocol_is_not_spoken() {
    let world = World::new().await;
    let tls = world.certs.client().unwrap();

    for alpn in [&[][..], &[&b"h3"[..]], &[&b"dm/2"[..]]] {
        let other = QuicClientConfig::try_from(tls.with_alpn(alpn).config()).unwrap();
        let refused = dial(target(&world), other, Ipv4Addr::LOCALHOST).await;
        assert!(
            matches!(
                refused,
                Err(ConnectionError::ConnectionClosed(_) | ConnectionError::TransportError(_))
            ),
            "{alpn:?}"
        );
    }
    let handshakes = "link_turned_away_total{why=\"handshake\"}";
    world.until("they are counted", || world.metric(handshakes) == 3).await;
}

#[tokio::test]
async fn what_is_said_before_the_handshake_is_complete_is_not_heard() {
    let world = World::new().await;
    let mut tls = world.certs.client().unwrap().quic();
    Arc::make_mut(&mut tls).enable_early_data = true;
    let tls = Arc::new(QuicClientConfig::try_from(tls).unwrap());
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let connect = |to| {
        let config = ClientConfig::new(Arc::clone(&tls) as Arc<_>);
        endpoint.connect_with(config, to, "127.0.0.1").unwrap()
    };
    take_ticket_for_early_data(&world, connect).await;
    let early = connect(target(&world)).into_0rtt();
    let (connection, heard) = early.map_err(drop).expect("the client has a ticket");
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    // No frame: whoever hears it ends the session.
    send.write_all(&[0xff; 8]).await.unwrap();

    assert!(!heard.await);

    assert!(matches!(send.write_all(&[0]).await, Err(WriteError::ZeroRttRejected)));
    let mut client = open(&connection).await;
    client.login(&world.token("quic", "alice", "r"), "r").await.ok();
    client.lives().await;
}

/// A link gives no such ticket. Another server of its name does, which knows its certificate.
async fn take_ticket_for_early_data(world: &World, connect: impl Fn(SocketAddr) -> Connecting) {
    let careful = world.certs.server(&[]).unwrap().quic();
    let mut careless =
        quinn::rustls::ServerConfig::builder_with_provider(Arc::clone(careful.crypto_provider()))
            .with_protocol_versions(&[&quinn::rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&careful.cert_resolver));
    careless.alpn_protocols.clone_from(&careful.alpn_protocols);
    careless.max_early_data_size = u32::MAX;
    let crypto = QuicServerConfig::try_from(careless).unwrap();
    let config = ServerConfig::with_crypto(Arc::new(crypto));
    let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let serving = async {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let mut stream = connection.open_uni().await.unwrap();
        stream.finish().unwrap();
        connection.closed().await
    };
    let coming = async {
        let connection = connect(endpoint.local_addr().unwrap()).await.unwrap();
        // The ticket is there when anything else is.
        connection.accept_uni().await.unwrap().read_to_end(0).await.unwrap();
    };
    tokio::join!(serving, coming);
}

#[tokio::test]
async fn a_connection_has_one_stream_and_no_datagrams() {
    let world = World::new().await;
    let mut dialled = enter(&world, "alice").await;

    let mut second = std::pin::pin!(dialled.connection.open_bi());
    let mut one_way = std::pin::pin!(dialled.connection.open_uni());
    for _ in 0..3 {
        assert!(second.as_mut().now_or_never().is_none());
        assert!(one_way.as_mut().now_or_never().is_none());
        dialled.client.lives().await;
    }
    assert!(dialled.connection.max_datagram_size().is_none());
}

#[tokio::test]
async fn a_client_that_moves_to_another_address_misses_nothing() {
    let world = World::new().await;
    let mut dialled = enter(&world, "alice").await;
    world.happen("r", vec![flush(0, 1..=2)]).await;
    assert_eq!(dialled.client.batch().await.items.len(), 2);

    for (turn, from) in (1..).zip([ELSEWHERE, Ipv4Addr::new(127, 0, 0, 3), ELSEWHERE]) {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        dialled.endpoint.rebind(socket).unwrap();
        world.happen("r", vec![flush(turn, turn * 10..=turn * 10 + 4)]).await;

        let batch = dialled.client.batch().await;
        let seqs: Vec<Seq> = batch.items.iter().map(|it| it.seq).collect();
        assert_eq!(seqs, (turn * 10..=turn * 10 + 4).map(Seq).collect::<Vec<_>>());
    }

    dialled.client.lives().await;
    assert_eq!(world.metric("link_sessions"), 1);
}

#[tokio::test]
async fn a_client_may_change_its_keys_at_any_time() {
    let world = World::new().await;
    let mut dialled = enter(&world, "alice").await;

    for turn in 0..4 {
        dialled.connection.force_key_update();
        dialled.client.lives().await;
        world.happen("r", vec![flush(turn, turn * 10..=turn * 10 + 4)]).await;
        assert_eq!(dialled.client.batch().await.items.len(), 5);
    }
}

#[tokio::test]
async fn both_ends_of_a_lean_connection_may_change_its_keys() {
    let world = World::new().await;
    let lean = world.certs.server(&[]).unwrap().lean_quic().unwrap();
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let endpoint = Endpoint::server(ServerConfig::with_crypto(lean), local).unwrap();
    let serving = async {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        let mut heard = [0];
        while recv.read_exact(&mut heard).await.is_ok() {
            connection.force_key_update();
            send.write_all(&heard).await.unwrap();
        }
    };
    let talking = async {
        let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let tls = believing(&world.certs.client().unwrap());
        let config = ClientConfig::new(Arc::new(tls));
        let to = endpoint.local_addr().unwrap();
        let connection = client.connect_with(config, to, "127.0.0.1").unwrap().await.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        for said in 0..9 {
            send.write_all(&[said]).await.unwrap();
            let mut heard = [u8::MAX];
            recv.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard, [said]);
            if said % 2 == 0 {
                connection.force_key_update();
            }
        }
        send.finish().unwrap();
    };

    tokio::join!(serving, talking);
}

#[tokio::test]
async fn the_connection_is_closed_with_the_code_of_the_close_frame() {
    let world = World::new().await;
    let tls = believing(&world.certs.client().unwrap());
    let mut dialled = dial(target(&world), tls, Ipv4Addr::LOCALHOST).await.unwrap();
    let token = world.token("quic", "alice", "r");
    let session = dialled.client.login(&token, "r").await.ok().session;
    let code = CloseCode::OtherDevice.code();

    world.tell(Fact::Close { node: NODE, session, code }).await;

    assert_eq!(dialled.client.closed().await, CloseCode::OtherDevice);
    drop(dialled.client);
    assert_eq!(closed_with(&dialled.connection).await, u64::from(code));
}

#[tokio::test]
async fn a_client_whose_link_fails_is_told_to_come_back() {
    let mut world = World::new().await;
    let dialled = enter(&world, "alice").await;

    world.fail();

    let code = u64::from(CloseCode::Unavailable.code());
    assert_eq!(closed_with(&dialled.connection).await, code);
}

#[tokio::test]
async fn a_client_that_vanishes_is_found_silent() {
    let world = World::with(Limits::default(), |config| {
        config.heartbeat_ms = 400;
        config.silence_ms_max = 1_000;
    })
    .await;
    let (to, token) = (target(&world), world.token("quic", "alice", "r"));
    let tls = believing(&world.certs.client().unwrap());
    let elsewhere = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let entering = elsewhere.spawn(async move {
        let mut dialled = dial(to, tls, Ipv4Addr::LOCALHOST).await.unwrap();
        dialled.client.login(&token, "r").await.ok();
        dialled
    });
    let dialled = entering.await.unwrap();

    // With its runtime goes the socket, and nobody is left to say goodbye.
    elsewhere.shutdown_background();

    let silent = "link_closes_total{code=\"silent\"}";
    world.until("it is found", || world.metric(silent) == 1).await;
    world.until("its place is free", || world.metric("link_sessions") == 0).await;
    drop(dialled);
}

#[tokio::test]
async fn when_many_have_not_shown_where_they_are_the_next_must_do_so_first() {
    let world = World::with(Limits::default(), |config| {
        config.handshakes_max = 8;
        config.login_ms_max = 60_000;
    })
    .await;
    assert_eq!(world.metric("link_retries_total"), 0);
    let forged = [forge(&world).await, forge(&world).await, forge(&world).await];

    let mut entered = Vec::new();
    while world.metric("link_retries_total") < 3 {
        entered.push(enter(&world, "alice").await);
    }

    for dialled in &mut entered {
        dialled.client.lives().await;
    }
    drop(forged);
}

#[tokio::test]
async fn a_full_node_takes_no_connection_whether_it_has_shown_where_it_is_or_not() {
    let world = World::with(Limits::default(), |config| {
        config.handshakes_max = 8;
        config.login_ms_max = 60_000;
    })
    .await;
    world.until("none is held", || world.metric("link_handshakes") == 0).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(TcpStream::connect(world.address("tcp").authority()).await.unwrap());
    }
    world.until("all are held", || world.metric("link_handshakes") == 8).await;
    let tls = || believing(&world.certs.client().unwrap());

    let unproven = dial(target(&world), tls(), Ipv4Addr::LOCALHOST).await.unwrap();
    assert_eq!(closed_with(&unproven.connection).await, u64::from(CloseCode::Full.code()));

    let forged = [forge(&world).await, forge(&world).await];
    loop {
        let Err(refused) = dial(target(&world), tls(), Ipv4Addr::LOCALHOST).await else { continue };
        assert!(matches!(refused, ConnectionError::ConnectionClosed(_)), "{refused}");
        break;
    }
    assert!(world.metric("link_retries_total") > 0);
    assert!(world.metric("link_turned_away_total{why=\"full\"}") >= 2);
    drop(forged);
}

#[tokio::test]
async fn the_number_of_a_tcp_port_may_be_quics_too() {
    let world = World::with(Limits::default(), |config| {
        // As clients are told; the sockets behind take free numbers.
        for listener in &mut config.listeners {
            if ["tls", "quic"].contains(&listener.transport.name()) {
                listener.port = 443;
            }
        }
    })
    .await;

    assert_eq!(world.address("quic").authority(), world.address("tls").authority());
}

/// Begins a handshake from an address that answers nothing, for as long as the socket is held.
async fn forge(world: &World) -> UdpSocket {
    let nobody = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let config = ClientConfig::new(Arc::new(believing(&world.certs.client().unwrap())));
    let at = nobody.local_addr().unwrap();
    let _connecting = endpoint.connect_with(config, at, "127.0.0.1").unwrap();
    let mut hello = [0; 2048];
    let received = tokio::time::timeout(PATIENCE, nobody.recv(&mut hello));
    let bytes = received.await.expect("the client said nothing").unwrap();
    let forger = UdpSocket::bind((ELSEWHERE, 0)).unwrap();
    forger.send_to(&hello[..bytes], target(world)).unwrap();
    forger
}

/// The code with which the link closes the connection.
async fn closed_with(connection: &Connection) -> u64 {
    let closed = tokio::time::timeout(PATIENCE, connection.closed()).await;
    match closed.expect("the link holds the connection") {
        ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("not closed by the link, but {other}"),
    }
}
