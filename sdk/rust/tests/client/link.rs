//! A link whose every word the test says itself, on a real socket.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use channel::{EXPORTER_LABEL, ServerTls};
use futures_util::{SinkExt, StreamExt};
use proto::address::{Address, Carrier, Transport};
use proto::close::CloseCode;
use proto::frame::{
    Batch, Codec, Credential, Downlink, Join, JoinOutcome, Joined, Login, LoginOk, PROTO_VERSION,
    Path, Resumed, Uplink, Welcome, deflate, prefixed,
};
use proto::heat::Heat;
use proto::id::SessionId;
use proto::item::Role;
use proto::suite::Suite;
use proto::time::Wall;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, ServerConfig};
use sdk::wire::Io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// No step of a test takes this long.
pub(crate) const STEP: Duration = Duration::from_secs(10);
/// What the link's clock shows.
pub(crate) const SERVER_MS: Wall = Wall(1_800_000_000_000);

/// A listener of one transport.
pub(crate) struct Link {
    listener: Listener,
    transport: Transport,
    tls: Option<ServerTls>,
}

enum Listener {
    Tcp(TcpListener),
    Quic(Endpoint),
}

/// One connection, from the link's side.
pub(crate) struct Conn {
    line: Line,
    /// What is below the line, over QUIC.
    quic: Option<Connection>,
    pub(crate) suite: Suite,
    exporter: Option<[u8; 32]>,
    hello: Bytes,
    welcome: Bytes,
    /// What is wrong with the Welcome that will be sent.
    pub(crate) spoil: fn(&mut Welcome),
    pub(crate) heartbeat_ms: u32,
    pub(crate) life_ms: u64,
}

enum Line {
    Stream(Box<dyn Io>, BytesMut),
    WebSocket(Box<WebSocketStream<Box<dyn Io>>>),
}

impl Link {
    pub(crate) async fn bind(transport: Transport, tls: Option<ServerTls>) -> Self {
        let listener = match (transport, &tls) {
            (Transport::Quic, Some(tls)) => Listener::Quic(endpoint(tls)),
            _ => Listener::Tcp(TcpListener::bind("127.0.0.1:0").await.expect("a free port")),
        };
        Self { listener, transport, tls }
    }

    pub(crate) fn address(&self) -> Address {
        let at = match &self.listener {
            Listener::Tcp(tcp) => tcp.local_addr(),
            Listener::Quic(endpoint) => endpoint.local_addr(),
        };
        address_of(at.expect("it is bound"), self.transport)
    }

    pub(crate) async fn accept(&self) -> Conn {
        let tcp = match &self.listener {
            Listener::Tcp(tcp) => tcp,
            Listener::Quic(endpoint) => {
                return timeout(STEP, accept_quic(endpoint)).await.expect("somebody connects");
            }
        };
        let accepted = timeout(STEP, tcp.accept()).await.expect("somebody connects");
        let (tcp, _) = accepted.expect("it accepts");
        let (mut suite, mut exporter) = (Suite::Plain, None);
        let io: Box<dyn Io> = match &self.tls {
            Some(tls) => {
                let stream = tls.accept(tcp).await.expect("a handshake");
                let (_, connection) = stream.get_ref();
                suite = channel::suite(connection);
                exporter = channel::exporter(connection).ok();
                Box::new(stream)
            }
            None => Box::new(tcp),
        };
        let line = match self.transport {
            Transport::Ws | Transport::Wss => {
                let socket = tokio_tungstenite::accept_async(io).await.expect("an upgrade");
                Line::WebSocket(Box::new(socket))
            }
            _ => Line::Stream(io, BytesMut::new()),
        };
        Conn::new(line, suite, exporter)
    }

    /// Accepts, and answers a login that must be good in every respect.
    pub(crate) async fn welcome(&self, path: Path) -> (Conn, Login) {
        let mut conn = self.accept().await;
        let login = conn.login().await;
        conn.let_in(&login, path, Resumed::Fresh).await;
        (conn, login)
    }
}

fn endpoint(tls: &ServerTls) -> Endpoint {
    let crypto = QuicServerConfig::try_from(tls.quic()).expect("TLS is fit for QUIC");
    let config = ServerConfig::with_crypto(Arc::new(crypto));
    Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).expect("a free port")
}

/// The next connection whose handshake succeeds.
async fn accept_quic(endpoint: &Endpoint) -> Conn {
    let connection = loop {
        let incoming = endpoint.accept().await.expect("it is open");
        if let Ok(connection) = incoming.await {
            break connection;
        }
    };
    let (send, recv) = connection.accept_bi().await.expect("a stream");
    let mut exporter = [0; 32];
    let exported = connection.export_keying_material(&mut exporter, EXPORTER_LABEL, &[]);
    exported.expect("the handshake is complete");
    let line = Line::Stream(Box::new(tokio::io::join(recv, send)), BytesMut::new());
    Conn { quic: Some(connection), ..Conn::new(line, Suite::Tls, Some(exporter)) }
}

impl Conn {
    fn new(line: Line, suite: Suite, exporter: Option<[u8; 32]>) -> Self {
        Self {
            line,
            quic: None,
            suite,
            exporter,
            hello: Bytes::new(),
            welcome: Bytes::new(),
            spoil: |_| {},
            heartbeat_ms: 25_000,
            life_ms: 3_600_000,
        }
    }

    /// Where the client is, over QUIC.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.quic.as_ref().expect("it is QUIC").remote_address()
    }

    /// Closes the connection at once, over QUIC.
    pub(crate) fn hang_up(self, code: CloseCode) {
        let code = u32::from(code.code()).into();
        self.quic.expect("it is QUIC").close(code, &[]);
    }

    /// Reads Hello and Login, and says Welcome.
    pub(crate) async fn login(&mut self) -> Login {
        let hello = self.recv_bytes().await.expect("a Hello");
        let Ok(Uplink::Hello(offer)) = Uplink::decode(&hello) else { panic!("no Hello") };
        assert!(offer.suites.iter().any(|it| it == self.suite.name()), "{offer:?}");
        self.hello = hello;
        // The Login is under way already, without waiting for the Welcome.
        let Some(Uplink::Login(login)) = self.recv().await else { panic!("no Login") };
        let mut welcome = Welcome {
            proto: PROTO_VERSION,
            suite: self.suite.name().to_owned(),
            codec: Codec::first_of(&offer.codecs).name().to_owned(),
            heartbeat_ms: self.heartbeat_ms,
            silence_ms: 60_000,
            frame_bytes_max: 64 * 1024,
            server_ms: SERVER_MS,
            nonce: offer.nonce,
            upgrade: false,
        };
        (self.spoil)(&mut welcome);
        let welcome = Downlink::Welcome(welcome);
        self.welcome = welcome.encode();
        self.send(&welcome).await;
        login
    }

    pub(crate) async fn let_in(&mut self, login: &Login, path: Path, resumed: Resumed) {
        let confirm = login.binder.map(|binder| {
            let exporter = self.exporter.expect("a binder needs TLS");
            let (Credential::Token(text) | Credential::ResumeTicket(text)) = &login.credential;
            let expected = channel::binder(&exporter, &self.hello, text.as_bytes());
            assert_eq!(binder, expected, "the login belongs to this connection");
            self.confirm()
        });
        self.let_in_with(login, path, resumed, confirm).await;
    }

    /// The proof that this end saw the same Hello and Welcome.
    pub(crate) fn confirm(&self) -> [u8; 32] {
        let exporter = self.exporter.expect("a proof needs TLS");
        channel::confirm(&exporter, &self.hello, &self.welcome)
    }

    pub(crate) async fn let_in_with(
        &mut self,
        login: &Login,
        path: Path,
        resumed: Resumed,
        confirm: Option<[u8; 32]>,
    ) {
        let joined = |join: &Join| Joined {
            room: join.room.clone(),
            outcome: JoinOutcome::In { heat: Heat::Cold, path, resumed, latest: None, online: 1 },
        };
        let login_ok = LoginOk {
            session: SessionId(7),
            role: Role::Viewer,
            confirm,
            rooms: login.joins.iter().map(joined).collect(),
            expires: Wall(SERVER_MS.0 + self.life_ms),
            resume_ticket: "resume-1".to_owned(),
        };
        self.send(&Downlink::LoginOk(login_ok)).await;
    }

    pub(crate) async fn batch(&mut self, batch: Batch) {
        self.send(&Downlink::Batch(batch)).await;
    }

    /// Sends a batch compressed; it must be one that gains by it.
    pub(crate) async fn packed(&mut self, batch: Batch) {
        let packed = deflate(&Downlink::Batch(batch).encode());
        self.send_frame(packed.expect("it becomes smaller")).await;
    }

    pub(crate) async fn send(&mut self, frame: &Downlink) {
        self.send_frame(frame.encode()).await;
    }

    async fn send_frame(&mut self, bytes: Bytes) {
        match &mut self.line {
            Line::Stream(io, _) => {
                io.write_all(&prefixed(&bytes)).await.expect("the client reads");
                io.flush().await.expect("the client reads");
            }
            Line::WebSocket(socket) => {
                socket.send(Message::Binary(bytes)).await.expect("the client reads");
            }
        }
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        match &mut self.line {
            Line::Stream(io, _) => io.write_all(bytes).await.expect("the client reads"),
            Line::WebSocket(_) => panic!("streams only"),
        }
    }

    /// The next frame; none if the client has left.
    pub(crate) async fn recv(&mut self) -> Option<Uplink> {
        let bytes = self.recv_bytes().await?;
        Some(Uplink::decode(&bytes).expect("a frame"))
    }

    /// The next frame, whatever is in it.
    pub(crate) async fn recv_anything(&mut self) -> Option<Bytes> {
        self.recv_bytes().await
    }

    async fn recv_bytes(&mut self) -> Option<Bytes> {
        timeout(STEP, async {
            match &mut self.line {
                Line::Stream(io, read) => loop {
                    if let Some(prefix) = read.first_chunk::<4>() {
                        let length = u32::from_be_bytes(*prefix) as usize;
                        if read.len() >= 4 + length {
                            read.advance(4);
                            return Some(read.split_to(length).freeze());
                        }
                    }
                    if io.read_buf(read).await.unwrap_or(0) == 0 {
                        return None;
                    }
                },
                Line::WebSocket(socket) => match socket.next().await {
                    Some(Ok(Message::Binary(bytes))) => Some(bytes),
                    _ => None,
                },
            }
        })
        .await
        .expect("the client says something")
    }
}

pub(crate) fn address_of(at: SocketAddr, transport: Transport) -> Address {
    let (host, port) = (at.ip().to_string(), at.port());
    Address { host, port, transport, carrier: Carrier::Bgp, machine_room: String::new() }
}

/// An address at which nobody listens.
pub(crate) async fn dead_address() -> Address {
    Link::bind(Transport::Tcp, None).await.address()
}
