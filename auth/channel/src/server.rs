//! The server's side of mode T.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use kit::http::Accept;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::NoServerSessionStorage;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::provider::{TlsError, VERSIONS, certificates, provider};

/// A certificate with its key, ready to accept. Clones share it.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads a certificate chain, leaf first, and its private key.
    ///
    /// With `alpn`, clients that offer protocols must offer one of them; the first that fits in
    /// this order is spoken. Nothing about a session is stored here: a client gets one stateless
    /// ticket to come back with. There is no early data.
    pub fn from_pem(chain_pem: &str, key_pem: &str, alpn: &[&[u8]]) -> Result<Self, TlsError> {
        let chain = certificates("the certificate chain", chain_pem)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())
            .map_err(|source| TlsError::Pem { what: "the private key", source })?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = Ticketer::new()?;
        config.send_tls13_tickets = 1;
        config.max_tls13_tickets = 1;
        config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
        Ok(Self { config: Arc::new(config) })
    }

    /// The same certificate and tickets for another set of protocols.
    #[must_use]
    pub fn with_alpn(&self, alpn: &[&[u8]]) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
        Self { config: Arc::new(config) }
    }

    /// Accepts connections for tokio; give each handshake a deadline.
    #[must_use]
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// For what drives rustls itself.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

impl Accept for ServerTls {
    type Io = TlsStream<TcpStream>;

    fn accept(
        &self,
        stream: TcpStream,
    ) -> Pin<Box<dyn Future<Output = io::Result<Self::Io>> + Send>> {
        Box::pin(self.acceptor().accept(stream))
    }
}
