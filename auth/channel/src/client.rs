//! The client's side.

use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::certificate::certificates;
use crate::pins::{Pinned, Pins};
use crate::provider::{TlsError, VERSIONS, provider};

/// Whom a client believes. Clones share the sessions they can resume.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    chain: Arc<WebPkiServerVerifier>,
}

impl ClientTls {
    /// Mode T: believes certificates that one of these authorities signed, and no others.
    ///
    /// # Errors
    /// [`TlsError`], when the text holds no authority.
    pub fn trusting(ca_pem: &str) -> Result<Self, TlsError> {
        Self::new(provider(), ca_pem)
    }

    /// Mode G: the same with the national suites, and nothing but them is offered.
    ///
    /// # Errors
    /// As [`ClientTls::trusting`].
    pub fn national(ca_pem: &str) -> Result<Self, TlsError> {
        Self::new(crate::national::provider(), ca_pem)
    }

    fn new(provider: Arc<CryptoProvider>, ca_pem: &str) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("the authority", ca_pem)? {
            roots.add(certificate)?;
        }
        let chain =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(VERSIONS)?
            .with_webpki_verifier(Arc::clone(&chain))
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config), chain })
    }

    /// The same, believing only servers that have one of these keys as well.
    ///
    /// A connection to another fails with [`crate::Unpinned`].
    #[must_use]
    pub fn pinned(&self, pins: Pins) -> Self {
        let mut config = self.config();
        let chain = Arc::clone(&self.chain);
        config.dangerous().set_certificate_verifier(Arc::new(Pinned { chain, pins }));
        // Sessions that began without pins are not gone on with.
        config.resumption = Resumption::default();
        Self { config: Arc::new(config), chain: Arc::clone(&self.chain) }
    }

    /// The same, going on with no earlier session: every handshake is a full one.
    #[must_use]
    pub fn afresh(&self) -> Self {
        let mut config = self.config();
        config.resumption = Resumption::disabled();
        Self { config: Arc::new(config), chain: Arc::clone(&self.chain) }
    }

    /// The same, offering these protocols, best first.
    #[must_use]
    pub fn with_alpn(&self, alpn: &[&[u8]]) -> Self {
        let mut config = self.config();
        config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
        Self { config: Arc::new(config), chain: Arc::clone(&self.chain) }
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
