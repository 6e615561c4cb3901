//! The client's side of mode T.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::provider::{TlsError, VERSIONS, certificates, provider};

/// Whom a client believes. Clones share the sessions they can resume.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// Believes certificates that one of these authorities signed, and no others.
    pub fn trusting(ca_pem: &str) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("the authority", ca_pem)? {
            roots.add(certificate)?;
        }
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }

    /// The same, offering these protocols, best first.
    #[must_use]
    pub fn with_alpn(&self, alpn: &[&[u8]]) -> Self {
        let mut config = self.config();
        config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
        Self { config: Arc::new(config) }
    }

    /// Connects for tokio; give each handshake a deadline.
    #[must_use]
    pub fn connector(&self) -> TlsConnector {
        TlsConnector::from(Arc::clone(&self.config))
    }

    /// A configuration of its own, such as for `reqwest`, which sets the protocols itself.
    #[must_use]
    pub fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.config)
    }
}
