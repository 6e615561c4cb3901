//! Listeners: from a connection to a conversation.
//!
//! A connection is admitted before anything is allocated for it: by its address, and by a place
//! among those that are not logged in.

mod gate;
mod origin;
mod passed;
mod quic;
mod upgrade;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use auth_core::derive::{LinkId, link_id};
use channel::ServerTls;
use link_core::bucket::Rate;
use link_core::framing::Framing;
use link_core::places::{NoPlace, Places};
use link_core::session::Limits;
use parking_lot::Mutex;
use proto::address::{Address, Transport};
use proto::limits::UPLINK_FRAME_BYTES_MAX;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::Parts;
use crate::config::{Config, ListenerConfig, ms};
use crate::converse::{Conversation, Place, Presence};
use crate::io::Io;
use crate::node::Node;
use crate::socket::Socket;
use crate::wire::Decoder;

pub(crate) use gate::Gate;
pub(crate) use origin::Origin;
pub(crate) use quic::QuicStream;

use passed::{Knock, Unnamed};

/// Bytes of a frame before login: a Hello and a Login with a long token and eight rooms need 3 KiB.
const EARLY_FRAME_BYTES_MAX: u32 = 8 * 1024;
/// Bytes of a connection that the system buffers; the rest waits in the rooms' rings, shared.
const SEND_BUFFER_BYTES: u32 = 64 * 1024;
/// Of these, bytes that are not on their way yet: as soon as there are more, the next write waits.
const UNSENT_BYTES: u32 = 16 * 1024;
/// Bytes of a connection that the system holds until they are read. A viewer's frames are short.
const RECEIVE_BUFFER_BYTES: u32 = 32 * 1024;
/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 4096;
/// Pause after the system refused a connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a listener's sessions share.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: Address,
    pub(crate) link: LinkId,
    pub(crate) framing: Framing,
    pub(crate) limits: Arc<Limits>,
    /// Whether a login must be bound to the TLS connection.
    pub(crate) must_bind: bool,
    tls: Option<ServerTls>,
}

/// A socket on which connections come in.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener),
    Quic(quic::Endpoint),
}

impl Bound {
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(tcp) => tcp.local_addr(),
            Self::Quic(endpoint) => endpoint.local_addr(),
        }
    }
}

/// Binds a listener.
pub(crate) fn bind(
    config: &Config,
    listener: &ListenerConfig,
    parts: &Parts,
) -> anyhow::Result<(Bound, Arc<Listener>)> {
    let tls = certificate(listener.transport, parts);
    anyhow::ensure!(
        tls.is_some() || !listener.is_tls(),
        "{} on {} has no certificate",
        listener.transport.name(),
        listener.listen
    );
    let bound = match &tls {
        Some(tls) if listener.transport == Transport::Quic => {
            Bound::Quic(quic::bind(config, listener.listen, tls)?)
        }
        _ => Bound::Tcp(bind_tcp(listener.listen)?),
    };
    let port = if listener.port == 0 { bound.local_addr()?.port() } else { listener.port };
    let address = Address {
        host: listener.host.clone(),
        port,
        transport: listener.transport,
        carrier: listener.carrier,
        machine_room: listener.machine_room.clone(),
    };
    let framing = match listener.transport {
        Transport::Ws | Transport::Wss => Framing::WebSocket,
        Transport::Tcp | Transport::Tls | Transport::Quic | Transport::National => Framing::Stream,
    };
    let tls = tls.map(|it| match framing {
        Framing::Stream => it.with_alpn(&[]),
        Framing::WebSocket => it.with_alpn(&[b"http/1.1"]),
    });
    let limits = Limits {
        login: ms(config.login_ms_max),
        phase: ms(config.login_ms_max / 2),
        silence: ms(config.silence_ms_max),
        heartbeat: ms(config.heartbeat_ms),
        frames: Rate { burst: config.frames_burst, per_s: config.frames_per_s },
        frame_bytes_max: u32::try_from(UPLINK_FRAME_BYTES_MAX).unwrap_or(u32::MAX),
        compress: config.compress,
    };
    let listener = Listener {
        link: link_id(&address.authority()),
        address,
        framing,
        limits: Arc::new(limits),
        must_bind: listener.must_bind(),
        tls,
    };
    Ok((bound, Arc::new(listener)))
}

fn bind_tcp(listen: SocketAddr) -> anyhow::Result<TcpListener> {
    let socket = match listen {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit all of it.
    socket.set_nodelay(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES)?;
    socket.bind(listen).with_context(|| format!("could not bind {listen}"))?;
    Ok(socket.listen(BACKLOG)?)
}

/// What a listener shows to those who connect.
fn certificate(transport: Transport, parts: &Parts) -> Option<ServerTls> {
    match transport {
        Transport::Tcp | Transport::Ws => None,
        Transport::National => parts.national.clone(),
        Transport::Quic => parts.tls.clone(),
        Transport::Tls | Transport::Wss => {
            let tls = parts.tls.as_ref()?;
            Some(parts.national.as_ref().map_or_else(|| tls.clone(), |it| tls.beside(it)))
        }
    }
}

/// What listeners share.
#[derive(Clone, Debug)]
pub(crate) struct Entrance {
    pub(crate) node: Arc<Node>,
    pub(crate) gate: Arc<Gate>,
    /// Places for connections before login; the reserve's are others.
    pub(crate) places: Arc<Mutex<Places>>,
    /// Fires when no connection is to be accepted any more.
    pub(crate) shut: CancellationToken,
}

/// A connection that is ready for its conversation, and what was read of that already.
type Shaken = (Socket, Vec<u8>, Presence);

/// Accepts connections until the entrance is shut, then waits for the handshakes to end.
pub(crate) async fn serve(
    bound: Bound,
    listener: Arc<Listener>,
    entrance: Entrance,
) -> anyhow::Result<()> {
    match bound {
        Bound::Tcp(tcp) => serve_tcp(tcp, listener, entrance).await,
        Bound::Quic(endpoint) => quic::serve(endpoint, listener, entrance).await,
    }
}

async fn serve_tcp(
    tcp: TcpListener,
    listener: Arc<Listener>,
    entrance: Entrance,
) -> anyhow::Result<()> {
    let unnamed = Unnamed::new(&entrance);
    let mut tasks = kit::task::Tasks::default();
    loop {
        tokio::select! {
            () = entrance.shut.cancelled() => break,
            Some(ended) = tasks.next() => report(ended),
            accepted = tcp.accept() => match accepted {
                Ok((stream, peer)) => {
                    if let Some(knock) = unnamed.knock(&entrance, peer) {
                        let (listener, entrance) = (Arc::clone(&listener), entrance.clone());
                        tasks.spawn("handshake", async move {
                            entrance.greet(stream, listener, knock).await;
                            Ok(())
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection was accepted");
                    entrance.node.clock.sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(tcp);
    // They look at the shut entrance themselves.
    tasks.join().await
}

impl Entrance {
    fn admit(&self, origin: Origin) -> Option<Presence> {
        if let Err(why) = self.gate.knock(origin) {
            self.node.counts.turned_away(why);
            return None;
        }
        let site = origin.site();
        match Place::take(&self.places, site) {
            Ok(place) => Some(Presence::new(&self.node, place, origin)),
            Err(NoPlace::Full) => {
                self.node.signs.lock().note(site, self.node.clock.mono());
                self.node.counts.turned_away("full");
                None
            }
            Err(NoPlace::Share) => {
                self.node.counts.turned_away("share");
                None
            }
        }
    }

    /// One connection, from TCP to its first turn.
    async fn greet(&self, stream: TcpStream, listener: Arc<Listener>, knock: Knock) {
        let handshake = self.handshake(stream, &listener, knock);
        let handshake = tokio::time::timeout(listener.limits.phase, handshake);
        let shaken = tokio::select! {
            () = self.shut.cancelled() => return,
            shaken = handshake => shaken,
        };
        let (socket, behind, presence) = match shaken {
            Ok(Ok(Some(shaken))) => shaken,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => {
                tracing::debug!(error = format!("{error:#}"), "a handshake failed");
                return self.node.counts.turned_away("handshake");
            }
            Err(_) => return self.node.counts.turned_away("handshake"),
        };
        self.converse(socket, &behind, listener, presence);
    }

    /// Begins the conversation over a connection that is ready for it; `behind` was read already.
    fn converse(
        &self,
        mut socket: Socket,
        behind: &[u8],
        listener: Arc<Listener>,
        presence: Presence,
    ) {
        let protection = socket.protection();
        let decoder = Decoder::new(listener.framing, EARLY_FRAME_BYTES_MAX);
        let line = Arc::clone(&presence.line);
        let io = Io::new(socket, decoder);
        line.begin(Conversation::new(listener, io, protection, presence, behind));
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        listener: &Listener,
        knock: Knock,
    ) -> anyhow::Result<Option<Shaken>> {
        match knock {
            Knock::Own(presence) => self.shake(stream, listener, presence).await.map(Some),
            Knock::Passed(proxy, place) => self.pass(stream, listener, proxy, place).await,
        }
    }

    async fn shake(
        &self,
        stream: TcpStream,
        listener: &Listener,
        presence: Presence,
    ) -> anyhow::Result<Shaken> {
        let mut socket = match &listener.tls {
            Some(tls) if self.node.config.lean_tls => tls.accept_lean(stream).await?.into(),
            Some(tls) => Socket::buffered(Box::new(tls.accept(stream).await?)),
            None => Socket::Plain(Box::new(stream)),
        };
        let behind = match listener.framing {
            Framing::Stream => Vec::new(),
            Framing::WebSocket => {
                let (request, behind) = upgrade::read(&mut socket).await?;
                upgrade::answer(&mut socket, &request, &self.node.config.origins).await?;
                behind
            }
        };
        Ok((socket, behind, presence))
    }
}

fn report(ended: anyhow::Result<()>) {
    if let Err(error) = ended {
        tracing::error!(error = format!("{error:#}"), "a handshake failed");
    }
}
