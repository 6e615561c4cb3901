//! A connection by hand: any frame, in any order, well-formed or not.
//!
//! For tests of what a link refuses and for tools that look at single frames; a viewer uses
//! [`crate::Client`].

use std::time::Duration;

use bytes::Bytes;
use channel::ClientTls;
use proto::address::Address;
use proto::decode::DecodeError;
use proto::frame::{Credential, Downlink, Hello, Join, Login, Uplink};
use proto::id::DeviceId;
use tokio::time::timeout;

use crate::hello::hello;
use crate::wire::{Udp, Wire, WireError, decode};

/// Why a connection by hand gave no frame.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// The connection ended or failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The link sent something that is no frame.
    #[error("the frame cannot be read")]
    Decode(#[from] DecodeError),
}

/// A connection by hand.
#[derive(Debug)]
pub struct Raw {
    wire: Wire,
    deadline: Duration,
}

/// Connects; `deadline` also holds for every step afterwards.
///
/// # Errors
/// [`WireError`].
pub async fn connect(
    address: &Address,
    tls: Option<&ClientTls>,
    deadline: Duration,
) -> Result<Raw, WireError> {
    connect_over(None, address, tls, deadline).await
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
) -> Result<Raw, WireError> {
    Ok(Raw { wire: Wire::connect_over(udp, address, tls, deadline).await?, deadline })
}

impl Raw {
    /// Sends a frame.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn send(&mut self, frame: &Uplink) -> Result<(), WireError> {
        self.wire.send(frame.encode(), self.deadline).await
    }

    /// Sends `kind | flags | anything` as a frame.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn send_frame(&mut self, frame: Bytes) -> Result<(), WireError> {
        self.wire.send(frame, self.deadline).await
    }

    /// Sends bytes as they are; over a WebSocket as one message.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn send_bytes(&mut self, bytes: Bytes) -> Result<(), WireError> {
        self.wire.send_raw(bytes, self.deadline).await
    }

    /// The next frame's bytes.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn recv_bytes(&mut self) -> Result<Bytes, WireError> {
        let frame = timeout(self.deadline, self.wire.recv()).await;
        frame.map_err(|_| WireError::Deadline(self.deadline))?
    }

    /// The next frame.
    ///
    /// # Errors
    /// [`RawError`].
    pub async fn recv(&mut self) -> Result<Downlink, RawError> {
        Ok(decode(&self.recv_bytes().await?)?)
    }

    /// Says Hello and Login in one flight, with a binder over TLS; the answers are to be received.
    /// It offers no compression, so that [`Raw::recv_bytes`] gives frames as they are.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn login(
        &mut self,
        credential: Credential,
        device: Option<DeviceId>,
        joins: Vec<Join>,
    ) -> Result<(), WireError> {
        let offer = Hello { codecs: Vec::new(), ..hello(self.wire.suites(), 1) };
        let hello = Uplink::Hello(offer).encode();
        let login = login(&self.wire, &hello, credential, device, joins);
        self.wire.send(hello, self.deadline).await?;
        self.wire.send(login, self.deadline).await
    }

    /// The TLS connection's own secret, for binders made by hand.
    #[must_use]
    pub const fn exporter(&self) -> Option<[u8; 32]> {
        self.wire.exporter()
    }
}

/// The frame of a login, bound to the connection where the connection allows it.
pub(crate) fn login(
    wire: &Wire,
    hello: &[u8],
    credential: Credential,
    device: Option<DeviceId>,
    joins: Vec<Join>,
) -> Bytes {
    let (Credential::Token(text) | Credential::ResumeTicket(text)) = &credential;
    let binder = wire.bound().map(|exporter| channel::binder(&exporter, hello, text.as_bytes()));
    Uplink::Login(Login { credential, binder, device, joins }).encode()
}
