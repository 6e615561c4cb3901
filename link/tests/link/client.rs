//! A viewer, just enough of one, over any transport.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use channel::ClientTls;
use futures_util::{SinkExt, StreamExt};
use proto::address::Transport;
use proto::close::CloseCode;
use proto::frame::{
    Batch, Comment, Credential, Downlink, Hello, Join, JoinOutcome, Login, LoginOk, Outcome, Path,
    Place, Uplink, Welcome, prefixed,
};
use proto::id::Cid;
use proto::item::Style;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::quic;
use crate::world::{PATIENCE, World, room};

pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

pub(crate) enum Pipe {
    Stream(Box<dyn Io>),
    WebSocket(Box<WebSocketStream<Box<dyn Io>>>),
}

pub(crate) struct Client {
    pub(crate) pipe: Pipe,
    pub(crate) exporter: Option<[u8; 32]>,
    /// What the next login asks for.
    pub(crate) path: Path,
    pub(crate) resume: Option<Place>,
    /// What a login came with, if it was not the right one.
    pub(crate) forged_binder: Option<Option<[u8; 32]>>,
    /// What is offered.
    pub(crate) offer: Hello,
    /// What arrives of the offer, if somebody changed it.
    pub(crate) forged_hello: Option<Hello>,
    /// Whether the last Welcome asked for a newer SDK.
    pub(crate) upgrade: bool,
    /// What the last Welcome said of the channel.
    pub(crate) suite: String,
}

/// How a login ended.
#[derive(Debug)]
pub(crate) enum Answer {
    In(LoginOk),
    Out(CloseCode),
}

impl Answer {
    pub(crate) fn is_in(&self) -> bool {
        matches!(self, Self::In(ok)
            if ok.rooms.iter().all(|it| matches!(it.outcome, JoinOutcome::In { .. })))
    }

    pub(crate) fn ok(self) -> LoginOk {
        match self {
            Self::In(ok) => ok,
            Self::Out(code) => panic!("refused: {}", code.name()),
        }
    }

    pub(crate) fn code(&self) -> CloseCode {
        match self {
            Self::In(_) => panic!("the login was good"),
            Self::Out(code) => *code,
        }
    }
}

impl Client {
    pub(crate) async fn connect(world: &World, transport: &str) -> Self {
        let certs = if transport == "national" { &world.national } else { &world.certs };
        Self::connect_with(world, transport, &certs.client().unwrap()).await.unwrap()
    }

    /// Connects from an address of loopback.
    pub(crate) async fn connect_from(world: &World, transport: &str, from: Ipv4Addr) -> Self {
        let tls = world.certs.client().unwrap();
        Self::connect_between(world, transport, &tls, from).await.unwrap()
    }

    /// Connects with this for TLS; only its handshake may fail.
    pub(crate) async fn connect_with(
        world: &World,
        transport: &str,
        tls: &ClientTls,
    ) -> std::io::Result<Self> {
        Self::connect_between(world, transport, tls, Ipv4Addr::LOCALHOST).await
    }

    async fn connect_between(
        world: &World,
        transport: &str,
        tls: &ClientTls,
        from: Ipv4Addr,
    ) -> std::io::Result<Self> {
        let address = world.address(transport);
        if address.transport == Transport::Quic {
            return match quic::dial(quic::target(world), quic::believing(tls), from).await {
                Ok(dialled) => Ok(dialled.client),
                Err(error) => Err(error.into()),
            };
        }
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        // Small, so that a client that does not read is soon a slow one.
        socket.set_recv_buffer_size(8 * 1024).unwrap();
        let tcp = socket.connect(address.authority().parse().unwrap()).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let (stream, exporter) = match address.transport {
            Transport::Tls | Transport::Wss | Transport::National => secure(tls, tcp).await?,
            _ => (Box::new(tcp) as Box<dyn Io>, None),
        };
        let pipe = match address.transport {
            Transport::Ws | Transport::Wss => {
                let url = format!("ws://{}/", address.authority());
                let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
                Pipe::WebSocket(Box::new(socket))
            }
            _ => Pipe::Stream(stream),
        };
        Ok(Self::over(pipe, exporter))
    }

    pub(crate) fn over(pipe: Pipe, exporter: Option<[u8; 32]>) -> Self {
        Self {
            pipe,
            exporter,
            path: Path::Auto,
            resume: None,
            forged_binder: None,
            offer: hello(),
            forged_hello: None,
            upgrade: false,
            suite: String::new(),
        }
    }

    /// Hello and Login in one flight.
    pub(crate) async fn login(&mut self, token: &str, name: &str) -> Answer {
        self.login_with(Credential::Token(token.to_owned()), name).await
    }

    pub(crate) async fn login_with(&mut self, credential: Credential, name: &str) -> Answer {
        let hello = Uplink::Hello(self.offer.clone()).encode();
        let text = match &credential {
            Credential::Token(text) | Credential::ResumeTicket(text) => text.clone(),
        };
        let right = self.exporter.map(|it| channel::binder(&it, &hello, text.as_bytes()));
        let binder = self.forged_binder.unwrap_or(right);
        let joins = vec![Join { room: room(name), path: self.path, resume: self.resume }];
        let login = Uplink::Login(Login { credential, binder, device: None, joins });
        let forged = self.forged_hello.clone().map(|it| Uplink::Hello(it).encode());
        self.send_bytes(&[forged.unwrap_or_else(|| hello.clone()), login.encode()]).await;

        let welcome = self.receive_bytes().await;
        match Downlink::decode(&welcome).unwrap() {
            Downlink::Welcome(Welcome { nonce: 9, upgrade, suite, .. }) => {
                (self.upgrade, self.suite) = (upgrade, suite);
            }
            Downlink::Refused(refused) => return Answer::Out(refused.code),
            other => panic!("no Welcome, but {other:?}"),
        }
        match self.receive().await {
            Downlink::LoginOk(ok) => {
                let expected = self
                    .exporter
                    .filter(|_| binder.is_some())
                    .map(|it| channel::confirm(&it, &hello, &welcome));
                assert_eq!(ok.confirm, expected);
                Answer::In(ok)
            }
            Downlink::Refused(refused) => Answer::Out(refused.code),
            other => panic!("no LoginOk, but {other:?}"),
        }
    }

    pub(crate) async fn send(&mut self, uplink: Uplink) {
        self.send_bytes(&[uplink.encode()]).await;
    }

    /// Sends frames in one write.
    pub(crate) async fn send_bytes(&mut self, frames: &[Bytes]) {
        match &mut self.pipe {
            Pipe::Stream(stream) => {
                let bytes: Vec<u8> = frames.iter().flat_map(|it| prefixed(it)).collect();
                stream.write_all(&bytes).await.unwrap();
                stream.flush().await.unwrap();
            }
            Pipe::WebSocket(socket) => {
                for frame in frames {
                    socket.send(Message::Binary(frame.clone())).await.unwrap();
                }
            }
        }
    }

    /// Writes bytes that are no frame; the link may have hung up already.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        match &mut self.pipe {
            Pipe::Stream(stream) => {
                stream.write_all(bytes).await.ok();
                stream.flush().await.ok();
            }
            Pipe::WebSocket(socket) => {
                let stream = socket.get_mut();
                stream.write_all(bytes).await.ok();
                stream.flush().await.ok();
            }
        }
    }

    pub(crate) async fn comment(&mut self, cid: u64, text: &str) {
        self.send(comment(cid, text)).await;
    }

    pub(crate) async fn receive(&mut self) -> Downlink {
        let bytes = self.receive_bytes().await;
        Downlink::decode(&bytes).unwrap()
    }

    pub(crate) async fn receive_bytes(&mut self) -> Bytes {
        let received = tokio::time::timeout(PATIENCE, self.next()).await;
        received.expect("nothing came").expect("the link hung up")
    }

    /// The next frame; none when the link has hung up.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        match &mut self.pipe {
            Pipe::Stream(stream) => {
                let mut length = [0; 4];
                stream.read_exact(&mut length).await.ok()?;
                let mut frame = vec![0; u32::from_be_bytes(length) as usize];
                stream.read_exact(&mut frame).await.ok()?;
                Some(frame.into())
            }
            Pipe::WebSocket(socket) => loop {
                match socket.next().await?.ok()? {
                    Message::Binary(bytes) => return Some(bytes),
                    Message::Pong(_) => {}
                    _ => return None,
                }
            },
        }
    }

    pub(crate) async fn batch(&mut self) -> Batch {
        match self.receive().await {
            Downlink::Batch(batch) => batch,
            other => panic!("no Batch, but {other:?}"),
        }
    }

    /// The code with which the link ends the session, and that it hangs up then.
    pub(crate) async fn closed(&mut self) -> CloseCode {
        let code = loop {
            match self.receive().await {
                Downlink::Close(close) => break close.code,
                Downlink::Refused(refused) => break refused.code,
                _ => {}
            }
        };
        assert_eq!(tokio::time::timeout(PATIENCE, self.next()).await.unwrap(), None);
        code
    }

    /// Says something; gives what the link itself answers, if it does.
    pub(crate) async fn refused(&mut self, cid: u64) -> Option<Outcome> {
        self.comment(cid, "may I").await;
        self.send(Uplink::Ping { nonce: cid }).await;
        let mut outcome = None;
        loop {
            match self.receive().await {
                Downlink::Ack(ack) => outcome = Some(ack.outcome),
                Downlink::Pong { .. } => return outcome,
                other => panic!("no answer, but {other:?}"),
            }
        }
    }

    /// Whether the session lives: a ping is answered.
    pub(crate) async fn lives(&mut self) {
        self.send(Uplink::Ping { nonce: 77 }).await;
        let answered = tokio::time::timeout(Duration::from_secs(5), async {
            while !matches!(self.receive().await, Downlink::Pong { nonce: 77, .. }) {}
        });
        answered.await.expect("no Pong");
    }
}

pub(crate) async fn secure(
    tls: &ClientTls,
    tcp: TcpStream,
) -> std::io::Result<(Box<dyn Io>, Option<[u8; 32]>)> {
    let name = "127.0.0.1".try_into().unwrap();
    let stream = tls.connector().connect(name, tcp).await?;
    let exporter = channel::exporter(stream.get_ref().1).unwrap();
    Ok((Box::new(stream), Some(exporter)))
}

pub(crate) fn hello() -> Hello {
    Hello {
        sdk: "test".to_owned(),
        sdk_version: "1".to_owned(),
        proto_min: 1,
        proto_max: 1,
        suites: ["T", "G", "P"].map(str::to_owned).into(),
        codecs: Vec::new(),
        nonce: 9,
    }
}

pub(crate) fn comment(cid: u64, text: &str) -> Uplink {
    Uplink::Comment(Comment {
        cid: Cid(cid),
        room: room("r"),
        text: text.to_owned(),
        style: Style::default(),
        media_ms: None,
    })
}
