//! The server's side: a certificate that can be replaced while connections come in.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kit::http::Accept;
use kit::meter::{Meter, list};
use proto::suite::Suite;
use proto::time::Wall;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{Acceptor, ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

use crate::capped::Capped;
use crate::certificate::{Validity, certificates};
use crate::lean::{Shaken, shake};
use crate::provider::{TlsError, VERSIONS, provider};
use crate::suite::is_national;

/// What a client's connection becomes.
pub type ServerStream = TlsStream<Capped>;

/// A certificate with its key, ready to accept. Clones share it, and what replaces it.
#[derive(Clone, Debug)]
pub struct ServerTls {
    identity: Arc<Identity>,
    pub(crate) config: Arc<ServerConfig>,
    /// For clients that offer national suites and no others.
    national: Option<Arc<ServerConfig>>,
}

/// The certificate of a server, and what it is for.
#[derive(Debug)]
struct Identity {
    suite: Suite,
    provider: Arc<CryptoProvider>,
    current: ArcSwap<Current>,
}

/// A chain and its key, which belong together and are replaced together.
#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    validity: Validity,
}

impl ServerTls {
    /// Mode T: reads a certificate chain, leaf first, and its private key.
    ///
    /// With `alpn`, clients that offer protocols must offer one of them; the first that fits in
    /// this order is spoken. Nothing about a session is stored here: a client gets one stateless
    /// ticket to come back with, which outlives a change of the certificate. There is no early
    /// data.
    ///
    /// # Errors
    /// [`TlsError`], when the text is not a chain and the key that fits it.
    pub fn from_pem(chain_pem: &str, key_pem: &str, alpn: &[&[u8]]) -> Result<Self, TlsError> {
        let mut tls = Self::new(Suite::Tls, provider(), chain_pem, key_pem)?;
        let mut config = ServerConfig::clone(&tls.config);
        config.ticketer = Ticketer::new()?;
        config.send_tls13_tickets = 1;
        config.max_tls13_tickets = 1;
        tls.config = Arc::new(config);
        Ok(tls.with_alpn(alpn))
    }

    /// Mode G: the same with an SM2 certificate.
    ///
    /// There are no tickets to come back with: what seals them is not one of the national suites.
    ///
    /// # Errors
    /// As [`ServerTls::from_pem`].
    pub fn national_from_pem(
        chain_pem: &str,
        key_pem: &str,
        alpn: &[&[u8]],
    ) -> Result<Self, TlsError> {
        let provider = crate::national::provider();
        let tls = Self::new(Suite::National, provider, chain_pem, key_pem)?;
        Ok(tls.with_alpn(alpn))
    }

    fn new(
        suite: Suite,
        provider: Arc<CryptoProvider>,
        chain_pem: &str,
        key_pem: &str,
    ) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(Current::read(&provider, chain_pem, key_pem)?);
        let identity = Arc::new(Identity { suite, provider: Arc::clone(&provider), current });
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(VERSIONS)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&identity) as Arc<dyn ResolvesServerCert>);
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { identity, config: Arc::new(config), national: None })
    }

    /// The same certificate and tickets for another set of protocols.
    #[must_use]
    pub fn with_alpn(&self, alpn: &[&[u8]]) -> Self {
        let with_alpn = |config: &Arc<ServerConfig>| {
            let mut config = ServerConfig::clone(config);
            config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
            Arc::new(config)
        };
        Self {
            identity: Arc::clone(&self.identity),
            config: with_alpn(&self.config),
            national: self.national.as_ref().map(with_alpn),
        }
    }

    /// The same, with `national` for clients that offer national suites and no others.
    ///
    /// A client that offers both kinds is served by this one, and gets no national suite.
    #[must_use]
    pub fn beside(&self, national: &Self) -> Self {
        Self { national: Some(Arc::clone(&national.config)), ..self.clone() }
    }

    /// Takes a new chain and key in place of the old ones, for this and everything made from it.
    /// Connections that exist go on.
    ///
    /// # Errors
    /// [`TlsError`], when the new pair is not good at `now`; then the old one stays.
    pub fn replace(&self, chain_pem: &str, key_pem: &str, now: Wall) -> Result<(), TlsError> {
        let current = Current::read(&self.identity.provider, chain_pem, key_pem)?;
        current.validity.check(now)?;
        self.identity.current.store(Arc::new(current));
        Ok(())
    }

    /// What its connections are protected by, unless a national certificate is
    /// [beside](ServerTls::beside) it.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.identity.suite
    }

    /// When the certificate may be used.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.identity.current.load().validity
    }

    /// Sets the gauge with the certificate's end, so that an alarm can come before it.
    pub fn tell_end(&self, meter: &Meter) {
        let end_s = i64::try_from(self.validity().until.unix_s()).unwrap_or(i64::MAX);
        meter.gauge(list::CHANNEL_CERTIFICATE_END_SECONDS, &[self.suite().name()]).set(end_s);
    }

    /// What a client that offers these suites is served by.
    pub(crate) fn config_for(&self, offered: &[CipherSuite]) -> &Arc<ServerConfig> {
        match &self.national {
            Some(national) if is_national(offered) => national,
            Some(_) | None => &self.config,
        }
    }

    /// Shakes hands as [`ServerTls::accept`] does, and keeps as little of the connection as can be.
    /// Give it a deadline.
    ///
    /// # Errors
    /// As [`ServerTls::accept`].
    pub async fn accept_lean(&self, stream: TcpStream) -> io::Result<Shaken> {
        shake(stream, self).await
    }

    /// Shakes hands; give it a deadline. [`crate::suite`] says what came of it. The client gets
    /// its ticket together with the first bytes that are written to it.
    ///
    /// # Errors
    /// When the client leaves, offers nothing that fits, or sends too much before it is done. It
    /// was sent an alert where the protocol has one.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<ServerStream> {
        let stream = Capped::new(stream);
        let accepting = match &self.national {
            None => TlsAcceptor::from(Arc::clone(&self.config)).accept(stream),
            Some(_) => {
                let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
                let config = self.config_for(hello.client_hello().cipher_suites());
                hello.into_stream(Arc::clone(config))
            }
        };
        let mut stream = accepting.await?;
        stream.get_mut().0.lift();
        Ok(stream)
    }
}

impl Current {
    fn read(provider: &CryptoProvider, chain_pem: &str, key_pem: &str) -> Result<Self, TlsError> {
        let chain = certificates("the certificate chain", chain_pem)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())
            .map_err(|source| TlsError::Pem { what: "the private key", source })?;
        let validity = Validity::of(&chain[0])?;
        let key = CertifiedKey::from_der(chain, key, provider)?;
        Ok(Self { key: Arc::new(key), validity })
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.load().key))
    }
}

impl Accept for ServerTls {
    type Io = ServerStream;

    fn accept(&self, stream: TcpStream) -> BoxFuture<'static, io::Result<Self::Io>> {
        let tls = self.clone();
        async move { Self::accept(&tls, stream).await }.boxed()
    }
}
