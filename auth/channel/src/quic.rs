//! TLS inside QUIC (RFC 9001): mode T always, one application protocol, and no early data.
//!
//! QUIC takes the handshake apart itself, so what is given here are configurations, not streams.
//! What a QUIC library makes of them is its caller's matter; the exporter of its connection is
//! asked for [`crate::EXPORTER_LABEL`] with an empty context, as over TLS.

pub(crate) mod keys;
mod session;

use std::sync::Arc;

use quinn_proto::crypto::ServerConfig as Handshakes;
use quinn_proto::crypto::rustls::NoInitialCipherSuite;
use rustls::{ClientConfig, ServerConfig};

use crate::client::ClientTls;
use crate::server::ServerTls;

/// The protocol that both ends must offer (RFC 9001, section 8.1): frames of this version on one
/// stream.
pub const QUIC_ALPN: &[u8] = b"dm/1";
/// QUIC's version 1 (RFC 9000); drafts are not spoken.
pub const QUIC_VERSION: u32 = 1;

impl ServerTls {
    /// The same certificate and tickets for QUIC; it follows [`ServerTls::replace`]. A national
    /// certificate [beside](ServerTls::beside) it is left out.
    ///
    /// What could be sent before the handshake is complete could be sent twice, so nothing is
    /// taken early: a ticket says that 0 bytes are.
    #[must_use]
    pub fn quic(&self) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.with_alpn(&[QUIC_ALPN]).config);
        config.max_early_data_size = 0;
        Arc::new(config)
    }

    /// The same for quinn, whose connections keep as little of their handshake as can be. Of
    /// exporters there is the one that logins are bound to.
    ///
    /// # Errors
    /// When the certificate is a national one: QUIC has no suite for it.
    pub fn lean_quic(&self) -> Result<Arc<dyn Handshakes>, NoInitialCipherSuite> {
        Ok(Arc::new(session::Handshakes::new(self.quic())?))
    }
}

impl ClientTls {
    /// Whom to believe, for QUIC.
    #[must_use]
    pub fn quic(&self) -> Arc<ClientConfig> {
        let mut config = self.with_alpn(&[QUIC_ALPN]).config();
        config.enable_early_data = false;
        Arc::new(config)
    }
}
