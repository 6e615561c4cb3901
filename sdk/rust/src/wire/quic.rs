//! QUIC: a UDP socket, and the one stream of each connection that goes through it.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use channel::ClientTls;
use proto::address::Address;
use proto::close::CloseCode;
use proto::limits::UPLINK_FRAME_BYTES_MAX;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, ConnectError, Connection, ConnectionError, Endpoint, ReadError, RecvStream,
    SendStream, StoppedError, TransportConfig, VarInt, WriteError,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::WireError;

/// Silence after which a sign of life is sent: many home routers forget a UDP flow after 30 s,
/// which RFC 4787, section 4.3, forbids and cannot prevent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Bytes of a link that wait to be read: 10 Mbit/s over 200 ms.
const RECEIVE_WINDOW_BYTES: u32 = 256 * 1024;

/// A UDP socket that QUIC connections go through; clones share it.
///
/// A client that is given none binds one for each of its connections, as TCP has one for each.
#[derive(Clone, Debug)]
pub struct Udp(Endpoint);

impl Udp {
    /// Binds one; port 0 takes a free one. Within a tokio runtime.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn bind(from: SocketAddr) -> io::Result<Self> {
        Ok(Self(Endpoint::client(from)?))
    }

    /// Goes on from another address, as after a device has changed its network. Connections go on
    /// over it and lose nothing.
    ///
    /// # Errors
    /// When the system refuses; then the old one stays.
    pub fn rebind(&self, from: SocketAddr) -> io::Result<()> {
        self.0.rebind(UdpSocket::bind(from)?)
    }
}

/// A connection's one stream. Dropping it closes the connection.
pub(super) struct Stream {
    connection: Connection,
    send: SendStream,
    recv: RecvStream,
    /// Until everything that was said has arrived; once nothing more will be.
    arrived: Option<Arrived>,
}

type Arrived = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync>>;

/// Connects to the first of the host's addresses that answers, and opens the stream.
///
/// Every handshake is a full one or resumes; nothing is sent before it is complete. Each of the
/// host's addresses has an equal share of `deadline`, so that one that swallows everything does not
/// hide the others.
pub(super) async fn connect(
    udp: Option<&Udp>,
    address: &Address,
    tls: &ClientTls,
    deadline: Duration,
) -> Result<Stream, WireError> {
    let remotes = lookup_host((address.host.as_str(), address.port)).await?;
    connect_to(udp, &remotes.collect::<Vec<_>>(), address, tls, deadline).await
}

async fn connect_to(
    udp: Option<&Udp>,
    remotes: &[SocketAddr],
    address: &Address,
    tls: &ClientTls,
    deadline: Duration,
) -> Result<Stream, WireError> {
    let crypto = QuicClientConfig::try_from(tls.quic());
    let crypto = crypto.map_err(|_| WireError::Transport(address.transport))?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport()));
    let mut failed = WireError::Io(io::ErrorKind::NotFound.into());
    let share = deadline / u32::try_from(remotes.len().max(1)).unwrap_or(u32::MAX);
    for &remote in remotes {
        let udp = match udp {
            Some(udp) => udp.clone(),
            None => Udp::bind(any(remote))?,
        };
        let connecting = udp.0.connect_with(config.clone(), remote, &address.host);
        let connected = match connecting {
            Ok(connecting) => timeout(share, connecting).await,
            Err(ConnectError::InvalidServerName(_)) => return Err(WireError::Host),
            Err(error) => return Err(WireError::Io(io::Error::other(error))),
        };
        match connected {
            Ok(Ok(connection)) => return open(connection).await,
            Ok(Err(error)) => failed = lost(&error),
            Err(_) => failed = WireError::Deadline(share),
        }
    }
    Err(failed)
}

async fn open(connection: Connection) -> Result<Stream, WireError> {
    let (send, recv) = connection.open_bi().await.map_err(|it| lost(&it))?;
    Ok(Stream { connection, send, recv, arrived: None })
}

/// No address in particular, of the family of `remote`.
fn any(remote: SocketAddr) -> SocketAddr {
    match remote {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(0_u32.into())
        .max_concurrent_uni_streams(0_u32.into())
        .stream_receive_window(RECEIVE_WINDOW_BYTES.into())
        .receive_window(RECEIVE_WINDOW_BYTES.into())
        .send_window(2 * UPLINK_FRAME_BYTES_MAX as u64)
        .datagram_receive_buffer_size(None)
        // What is said fits into a datagram or two; otherwise a buffer for ten of them is kept.
        .enable_segmentation_offload(false)
        .keep_alive_interval(Some(KEEP_ALIVE))
        // Heartbeats find a link that is gone, and the link says how long it bears silence.
        .max_idle_timeout(None);
    transport
}

impl Stream {
    /// The connection's own secret, as over TLS.
    pub(super) fn exporter(&self) -> Option<[u8; 32]> {
        let mut secret = [0; 32];
        let exported =
            self.connection.export_keying_material(&mut secret, channel::EXPORTER_LABEL, &[]);
        exported.is_ok().then_some(secret)
    }
}

/// What a connection that ended says.
fn lost(error: &ConnectionError) -> WireError {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            let code = u16::try_from(close.error_code.into_inner()).ok();
            WireError::Closed(code.and_then(CloseCode::from_code))
        }
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::Reset
        | ConnectionError::TimedOut
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => WireError::Io(error.clone().into()),
    }
}

/// The same of a stream's failure, which may be one of any other transport.
pub(super) fn failed(error: io::Error) -> WireError {
    let inner = error.get_ref();
    let read = inner.and_then(|it| it.downcast_ref());
    let write = inner.and_then(|it| it.downcast_ref());
    match (read, write) {
        (Some(ReadError::ConnectionLost(why)), _) | (_, Some(WriteError::ConnectionLost(why))) => {
            lost(why)
        }
        _ => WireError::Io(error),
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.recv), cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.send), cx, bytes)
    }

    /// Ready at once: the connection sends by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ready when everything that was said has arrived: closing a connection throws away what has
    /// not.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { send, arrived, .. } = &mut *self;
        let arrived = arrived.get_or_insert_with(|| {
            // One that is closed already says so below.
            send.finish().ok();
            Box::pin(send.stopped())
        });
        ready!(arrived.as_mut().poll(cx)).map_err(WriteError::from)?;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use channel::DevCerts;
    use proto::address::{Carrier, Transport};
    use quinn::ServerConfig;
    use quinn::crypto::rustls::QuicServerConfig;

    use super::*;

    #[tokio::test]
    async fn an_address_that_swallows_everything_does_not_hide_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let certs = DevCerts::load_or_create(folder.path(), &["127.0.0.1"]).unwrap();
        let crypto = QuicServerConfig::try_from(certs.server(&[]).unwrap().quic()).unwrap();
        let config = ServerConfig::with_crypto(Arc::new(crypto));
        let link = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let hole = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let remotes = [hole.local_addr().unwrap(), link.local_addr().unwrap()];
        let address = Address {
            host: "127.0.0.1".to_owned(),
            port: remotes[1].port(),
            transport: Transport::Quic,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        };
        let tls = certs.client().unwrap();

        let connecting = connect_to(None, &remotes, &address, &tls, Duration::from_secs(4));
        let accepting = async { link.accept().await.unwrap().await.unwrap() };
        let (stream, accepted) = Box::pin(async { tokio::join!(connecting, accepting) }).await;

        assert!(stream.is_ok());
        assert!(accepted.close_reason().is_none());
    }
}
