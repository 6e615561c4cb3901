//! QUIC listeners: one UDP socket, a connection for each session, and one stream in each.
//!
//! Whoever sends a datagram can write any address on it, so an address is believed once it has
//! answered. Until then a connection has a place of a few that no address holds by name, and
//! nothing is counted against anybody. When these places are taken, or an address knocks too often,
//! the client is asked to show first where it is: the Retry of RFC 9000, section 8.1.2, for which
//! nothing is remembered here.

mod stream;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use channel::{QUIC_VERSION, ServerTls};
use kit::task::Tasks;
use link_core::places::Places;
use parking_lot::Mutex;
use proto::close::CloseCode;
use quinn::{EndpointConfig, Incoming, ServerConfig, TransportConfig, VarInt};
use socket2::{Domain, Protocol, Type};

use super::gate::Gate;
use super::origin::Origin;
use super::{Entrance, Listener, SEND_BUFFER_BYTES, report};
use crate::config::{Config, ms};
use crate::converse::{FAREWELL_MAX, Place, Presence};
use crate::drain::GOODBYES_MAX;
use crate::socket::Socket;

pub(crate) use quinn::Endpoint;
pub(crate) use stream::QuicStream;

/// Of the places before login, one part in so many is for clients that may be anywhere.
const UNPROVEN_SHARE: u32 = 4;
/// Bytes that the system holds of one UDP socket in each direction, as far as it allows: 50 ms of
/// a gigabit, which all sessions of the listener share.
const UDP_BUFFER_BYTES: usize = 6 * 1024 * 1024;
/// Bytes of a session that wait to be decoded. It reads on before a frame is complete, so this
/// bounds what one round trip brings and not what a frame may have.
const RECEIVE_WINDOW_BYTES: u32 = 16 * 1024;
/// Bytes of a client's half of a handshake that came in the wrong order; a hello has 2 KiB.
const CRYPTO_BYTES: usize = 8 * 1024;
/// Connections that wait for the accept loop, which never waits itself, and bytes of each.
const BACKLOG: usize = 4096;
const BACKLOG_BYTES: u64 = 4 * 1024;

/// Binds a listener.
pub(super) fn bind(
    config: &Config,
    listen: SocketAddr,
    tls: &ServerTls,
) -> anyhow::Result<Endpoint> {
    let handshakes = tls.lean_quic().context("TLS is not fit for QUIC")?;
    let mut server = ServerConfig::with_crypto(handshakes);
    server.transport_config(Arc::new(transport(ms(config.silence_ms_max))?));
    server.max_incoming(BACKLOG);
    server.incoming_buffer_size(BACKLOG_BYTES);
    server.incoming_buffer_size_total(BACKLOG_BYTES * BACKLOG as u64);
    let runtime = Arc::new(quinn::TokioRuntime);
    let socket = udp(listen).with_context(|| format!("could not bind {listen}"))?;
    let mut endpoint = EndpointConfig::default();
    // Drafts are answered with what is spoken, and not with handshakes that fail.
    endpoint.supported_versions(vec![QUIC_VERSION]);
    Endpoint::new(endpoint, Some(server), socket, runtime).context("the UDP socket cannot be used")
}

fn udp(listen: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket =
        socket2::Socket::new(Domain::for_address(listen), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(UDP_BUFFER_BYTES)?;
    socket.set_send_buffer_size(UDP_BUFFER_BYTES)?;
    socket.bind(&listen.into())?;
    Ok(socket.into())
}

/// What every connection may do, and what it may hold.
fn transport(silence: Duration) -> anyhow::Result<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(1_u32.into())
        .max_concurrent_uni_streams(0_u32.into())
        .stream_receive_window(RECEIVE_WINDOW_BYTES.into())
        .receive_window(RECEIVE_WINDOW_BYTES.into())
        .send_window(SEND_BUFFER_BYTES.into())
        .crypto_buffer_size(CRYPTO_BYTES)
        .datagram_receive_buffer_size(None)
        // Otherwise each connection keeps a buffer for ten datagrams, 13 KiB, from its handshake
        // on; and most flushes fit into one.
        .enable_segmentation_offload(false)
        // Silence ends a session first, which says so and counts it; this is for what is left.
        .max_idle_timeout(Some((silence + 2 * FAREWELL_MAX).try_into()?));
    Ok(transport)
}

/// A connection that may go on with its handshake.
enum Knock {
    /// From an address that answered, and which counts for what it does.
    Proven(Presence),
    /// From wherever it says.
    Unproven(Place),
}

/// What clients may take up that have not shown where they are.
struct Unproven {
    gate: Gate,
    places: Arc<Mutex<Places>>,
}

impl Unproven {
    fn new(entrance: &Entrance) -> Self {
        let config = &entrance.node.config;
        let gate = Gate::new(
            config.address_handshakes_per_s,
            config.address_handshakes_burst,
            config.addresses_max,
            &entrance.node.clock,
        );
        let places_max = (config.handshakes_max / UNPROVEN_SHARE).max(1);
        Self { gate, places: Arc::new(Mutex::new(Places::new(places_max, places_max))) }
    }

    fn admit(&self, peer: SocketAddr) -> Option<Place> {
        let origin = Origin::Peer(peer);
        let is_admitted = self.gate.admit(origin);
        is_admitted.then(|| Place::take(&self.places, origin.site()).ok()).flatten()
    }
}

/// Accepts connections until the entrance is shut, then waits for the sessions to end.
pub(super) async fn serve(
    endpoint: Endpoint,
    listener: Arc<Listener>,
    entrance: Entrance,
) -> anyhow::Result<()> {
    let unproven = Unproven::new(&entrance);
    let mut tasks = Tasks::default();
    loop {
        tokio::select! {
            () = entrance.shut.cancelled() => break,
            Some(ended) = tasks.next() => report(ended),
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { bail!("the UDP socket failed") };
                if let Some((incoming, knock)) = admit(&entrance, &unproven, incoming) {
                    let (listener, entrance) = (Arc::clone(&listener), entrance.clone());
                    tasks.spawn("handshake", async move {
                        greet(&entrance, listener, incoming, knock).await;
                        Ok(())
                    });
                }
            }
        }
    }
    // They look at the shut entrance themselves.
    tasks.join().await?;
    let refuse = async {
        while let Some(incoming) = endpoint.accept().await {
            incoming.refuse();
        }
    };
    // The sessions are told to end meanwhile, and what they were told last has to arrive.
    let drain_max = entrance.node.config.drain_max() + GOODBYES_MAX;
    tokio::select! {
        drained = tokio::time::timeout(drain_max, endpoint.wait_idle()) => {
            if drained.is_err() {
                tracing::warn!(connections = endpoint.open_connections(), "cut off");
            }
        }
        () = refuse => {}
    }
    endpoint.close(code(CloseCode::Draining), &[]);
    Ok(())
}

/// Lets a connection go on with its handshake, or answers it otherwise.
fn admit(
    entrance: &Entrance,
    unproven: &Unproven,
    incoming: Incoming,
) -> Option<(Incoming, Knock)> {
    let peer = incoming.remote_address();
    if incoming.remote_address_validated() {
        let Some(presence) = entrance.admit(Origin::Peer(peer)) else {
            incoming.refuse();
            return None;
        };
        return Some((incoming, Knock::Proven(presence)));
    }
    let Some(place) = unproven.admit(peer) else {
        // One that cannot be asked is refused by being dropped.
        if incoming.retry().is_ok() {
            entrance.node.counts.retries.inc();
        }
        return None;
    };
    Some((incoming, Knock::Unproven(place)))
}

/// One connection, from its first datagram to its first turn.
async fn greet(entrance: &Entrance, listener: Arc<Listener>, incoming: Incoming, knock: Knock) {
    let handshake = handshake(entrance, incoming, knock);
    let handshake = tokio::time::timeout(listener.limits.phase, handshake);
    let shaken = tokio::select! {
        () = entrance.shut.cancelled() => return,
        shaken = handshake => shaken,
    };
    match shaken {
        Ok(Ok(Some((stream, presence)))) => {
            entrance.converse(Socket::Quic(Box::new(stream)), &[], listener, presence);
        }
        Ok(Ok(None)) => {}
        Ok(Err(error)) => {
            tracing::debug!(error = format!("{error:#}"), "a handshake failed");
            entrance.node.counts.turned_away("handshake");
        }
        Err(_) => entrance.node.counts.turned_away("handshake"),
    }
}

/// The stream that the client opens; none if its address may not come in, now that it is known.
async fn handshake(
    entrance: &Entrance,
    incoming: Incoming,
    knock: Knock,
) -> anyhow::Result<Option<(QuicStream, Presence)>> {
    // The address that answers. Right behind the handshake the client may go on from another one,
    // of which nothing is known yet.
    let peer = incoming.remote_address();
    let connection = incoming.accept()?.await?;
    let presence = match knock {
        Knock::Proven(presence) => presence,
        Knock::Unproven(place) => {
            drop(place);
            let Some(presence) = entrance.admit(Origin::Peer(peer)) else {
                connection.close(code(CloseCode::Full), CloseCode::Full.name().as_bytes());
                return Ok(None);
            };
            presence
        }
    };
    let (send, recv) = connection.accept_bi().await?;
    Ok(Some((QuicStream::new(connection, send, recv), presence)))
}

/// The number with which a connection is closed: that of the Close frame.
fn code(code: CloseCode) -> VarInt {
    u32::from(code.code()).into()
}
