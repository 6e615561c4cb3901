//! A connection to a link: frames in, frames out, over TCP, TLS of both modes, WebSocket and QUIC.

mod quic;

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use channel::{ClientTls, Unpinned};
use futures_util::{SinkExt, StreamExt};
use proto::address::{Address, Transport};
use proto::close::CloseCode;
use proto::decode::DecodeError;
use proto::frame::{Downlink, expand, prefixed};
use proto::limits::{DOWNLINK_FRAME_BYTES_MAX, UPLINK_FRAME_BYTES_MAX};
use proto::suite::Suite;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

pub use quic::Udp;

/// Bytes of a read buffer that are kept between frames.
const READ_BYTES: usize = 4 * 1024;

/// Anything bytes go through.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other end closed; a WebSocket may say why.
    #[error("the connection was closed")]
    Closed(Option<CloseCode>),
    /// Not in time.
    #[error("it took longer than {0:?}")]
    Deadline(Duration),
    /// A frame longer than is allowed, or without a byte.
    #[error("a frame of {0} bytes is not allowed")]
    FrameBytes(usize),
    /// This transport cannot be spoken here.
    #[error("the transport {} cannot be used", .0.name())]
    Transport(Transport),
    /// The host is not a name that a certificate could be for.
    #[error("the host is not a name")]
    Host,
    /// The link's certificate is good, and its key is not a pinned one. Over QUIC that is an
    /// [`WireError::Io`], whose text says so.
    #[error(transparent)]
    Unpinned(Unpinned),
    /// The socket failed.
    #[error("the socket failed")]
    Io(#[from] io::Error),
    /// The WebSocket failed.
    #[error("the WebSocket failed")]
    WebSocket(#[from] Box<tungstenite::Error>),
}

impl From<tungstenite::Error> for WireError {
    fn from(error: tungstenite::Error) -> Self {
        Self::WebSocket(Box::new(error))
    }
}

/// A connection to a link.
pub struct Wire {
    line: Line,
    suite: Suite,
    exporter: Option<[u8; 32]>,
}

enum Line {
    Stream { io: Box<dyn Io>, read: BytesMut },
    WebSocket(Box<WebSocketStream<Box<dyn Io>>>),
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.line {
            Line::Stream { .. } => "Wire::Stream",
            Line::WebSocket(_) => "Wire::WebSocket",
        })
    }
}

impl Wire {
    /// Connects: TCP, then TLS and WebSocket as the address says, or QUIC, all within `deadline`.
    /// `tls` says whom to believe and which mode is offered.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn connect(
        address: &Address,
        tls: Option<&ClientTls>,
        deadline: Duration,
    ) -> Result<Self, WireError> {
        Self::connect_over(None, address, tls, deadline).await
    }

    /// The same; if it is QUIC, through this socket, which many connections may share.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn connect_over(
        udp: Option<&Udp>,
        address: &Address,
        tls: Option<&ClientTls>,
        deadline: Duration,
    ) -> Result<Self, WireError> {
        let connecting = Box::pin(connect(udp, address, tls, deadline));
        timeout(deadline, connecting).await.map_err(|_| WireError::Deadline(deadline))?
    }

    /// The TLS connection's own secret, which binds a login to it; none over plain transports.
    #[must_use]
    pub const fn exporter(&self) -> Option<[u8; 32]> {
        self.exporter
    }

    /// What a Hello on this connection offers: what protects it; over a WebSocket also nothing,
    /// because TLS may end at a terminator in front of the link.
    pub(crate) const fn suites(&self) -> &'static [Suite] {
        match (&self.line, self.suite) {
            (_, Suite::Plain) => &[Suite::Plain],
            (Line::Stream { .. }, Suite::Tls) => &[Suite::Tls],
            (Line::Stream { .. }, Suite::National) => &[Suite::National],
            (Line::WebSocket(_), Suite::Tls) => &[Suite::Tls, Suite::Plain],
            (Line::WebSocket(_), Suite::National) => &[Suite::National, Suite::Plain],
        }
    }

    /// Whether a login on this connection carries a binder: native TLS does, a WebSocket may end
    /// at a terminator that cannot check it.
    pub(crate) const fn bound(&self) -> Option<[u8; 32]> {
        match self.line {
            Line::Stream { .. } => self.exporter,
            Line::WebSocket(_) => None,
        }
    }

    /// Sends one frame, `kind | flags | FlatBuffer`, within `deadline`.
    ///
    /// # Errors
    /// [`WireError`]; part of the frame may have been sent.
    pub async fn send(&mut self, frame: Bytes, deadline: Duration) -> Result<(), WireError> {
        let sending = async {
            match &mut self.line {
                Line::Stream { io, .. } => {
                    io.write_all(&prefixed(&frame)).await.map_err(quic::failed)?;
                    io.flush().await?;
                }
                Line::WebSocket(socket) => socket.send(Message::Binary(frame)).await?,
            }
            Ok(())
        };
        timeout(deadline, sending).await.map_err(|_| WireError::Deadline(deadline))?
    }

    /// Sends bytes as they are, without a length before them: for tests of what a link refuses.
    /// Over a WebSocket they are one message.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn send_raw(&mut self, bytes: Bytes, deadline: Duration) -> Result<(), WireError> {
        let Line::Stream { io, .. } = &mut self.line else {
            return self.send(bytes, deadline).await;
        };
        let sending = async {
            io.write_all(&bytes).await?;
            io.flush().await
        };
        Ok(timeout(deadline, sending).await.map_err(|_| WireError::Deadline(deadline))??)
    }

    /// The next frame. Cancelling it loses nothing. It has no deadline of its own: silence is
    /// noticed by whoever sends the heartbeats.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn recv(&mut self) -> Result<Bytes, WireError> {
        match &mut self.line {
            Line::Stream { io, read } => recv_stream(io, read).await,
            Line::WebSocket(socket) => recv_web_socket(socket).await,
        }
    }

    /// Says goodbye, as far as that works within `deadline`.
    pub async fn close(mut self, deadline: Duration) {
        let closing = async {
            match &mut self.line {
                Line::Stream { io, .. } => io.shutdown().await.map_err(WireError::from),
                Line::WebSocket(socket) => Ok(socket.close().await?),
            }
        };
        if let Ok(Err(error)) = timeout(deadline, closing).await {
            tracing::debug!(%error, "the connection did not close well");
        }
    }
}

/// Reads a frame of a link, compressed or not.
///
/// # Errors
/// [`DecodeError`].
pub(crate) fn decode(frame: &[u8]) -> Result<Downlink, DecodeError> {
    Downlink::decode(&expand(frame)?)
}

async fn connect(
    udp: Option<&Udp>,
    address: &Address,
    tls: Option<&ClientTls>,
    deadline: Duration,
) -> Result<Wire, WireError> {
    let (is_secret, is_web_socket) = match address.transport {
        Transport::Tcp => (false, false),
        Transport::Tls | Transport::National => (true, false),
        Transport::Ws => (false, true),
        Transport::Wss => (true, true),
        Transport::Quic => {
            let tls = tls.ok_or(WireError::Transport(address.transport))?;
            let stream = quic::connect(udp, address, tls, deadline).await?;
            let exporter = stream.exporter();
            let line = Line::Stream { io: Box::new(stream), read: BytesMut::new() };
            return Ok(Wire { line, suite: Suite::Tls, exporter });
        }
    };
    let tcp = TcpStream::connect((address.host.as_str(), address.port)).await?;
    tcp.set_nodelay(true)?;
    let (mut suite, mut exporter) = (Suite::Plain, None);
    let io: Box<dyn Io> = if is_secret {
        let tls = tls.ok_or(WireError::Transport(address.transport))?;
        let name = ServerName::try_from(address.host.clone()).map_err(|_| WireError::Host)?;
        let shaken = tls.connector().connect(name, tcp).await;
        let stream = shaken.map_err(|error| match Unpinned::of(&error) {
            Some(unpinned) => WireError::Unpinned(unpinned),
            None => WireError::Io(error),
        })?;
        let (_, connection) = stream.get_ref();
        suite = channel::suite(connection);
        exporter = channel::exporter(connection).ok();
        Box::new(stream)
    } else {
        Box::new(tcp)
    };
    let line = if is_web_socket {
        let scheme = if is_secret { "wss" } else { "ws" };
        let url = format!("{scheme}://{}/", address.authority());
        let config = Some(web_socket_config());
        let (socket, _) = tokio_tungstenite::client_async_with_config(url, io, config).await?;
        Line::WebSocket(Box::new(socket))
    } else {
        Line::Stream { io, read: BytesMut::new() }
    };
    Ok(Wire { line, suite, exporter })
}

/// Small buffers, because hundreds of viewers share a process, and bounds on everything.
fn web_socket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * UPLINK_FRAME_BYTES_MAX)
        .max_message_size(Some(DOWNLINK_FRAME_BYTES_MAX))
        .max_frame_size(Some(DOWNLINK_FRAME_BYTES_MAX))
}

async fn recv_stream(io: &mut Box<dyn Io>, read: &mut BytesMut) -> Result<Bytes, WireError> {
    loop {
        let mut needed = 4;
        if let Some(prefix) = read.first_chunk::<4>() {
            let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
            if length == 0 || length > DOWNLINK_FRAME_BYTES_MAX {
                return Err(WireError::FrameBytes(length));
            }
            needed = 4 + length;
            if read.len() >= needed {
                read.advance(4);
                return Ok(read.split_to(length).freeze());
            }
        }
        read.reserve((needed - read.len()).max(READ_BYTES));
        if io.read_buf(read).await.map_err(quic::failed)? == 0 {
            return Err(WireError::Closed(None));
        }
    }
}

async fn recv_web_socket(socket: &mut WebSocketStream<Box<dyn Io>>) -> Result<Bytes, WireError> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Binary(frame))) => return Ok(frame),
            Some(Ok(Message::Close(why))) => {
                let code = why.and_then(|it| CloseCode::from_code(it.code.into()));
                return Err(WireError::Closed(code));
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Text(text))) => return Err(WireError::FrameBytes(text.len())),
            Some(Ok(Message::Frame(_))) | None => return Err(WireError::Closed(None)),
            Some(Err(error)) => return Err(error.into()),
        }
    }
}
