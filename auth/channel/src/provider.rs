//! The suites and groups of mode T, in our order of preference.

use std::sync::Arc;

use proto::time::Wall;
use rustls::client::VerifierBuilderError;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// Nothing older is spoken.
pub(crate) const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// AES first: every server and nearly every client has it in hardware.
const SUITES: &[SupportedCipherSuite] = &[
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
];

/// The hybrid first, so that what is recorded today stays closed.
const GROUPS: &[&dyn SupportedKxGroup] =
    &[kx_group::X25519MLKEM768, kx_group::X25519, kx_group::SECP256R1];

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Text that is not PEM.
    #[error("{what} could not be read as PEM")]
    Pem {
        /// Which text.
        what: &'static str,
        /// What the parser says.
        source: rustls::pki_types::pem::Error,
    },
    /// PEM without a certificate in it.
    #[error("{what} holds no certificate")]
    NoCertificate {
        /// Which text.
        what: &'static str,
    },
    /// Bytes that are not a certificate.
    #[error("the certificate could not be read")]
    Certificate(#[from] x509_cert::der::Error),
    /// A certificate that clients would refuse.
    #[error("the certificate is not valid now, but from {from} to {until} (ms since 1970)")]
    NotNow {
        /// First instant.
        from: Wall,
        /// Last instant.
        until: Wall,
    },
    /// The authorities to believe cannot be used.
    #[error("the authorities could not be used")]
    Authorities(#[from] VerifierBuilderError),
    /// The library refused, such as for a key that does not fit its certificate.
    #[error("TLS could not be set up")]
    Tls(#[from] rustls::Error),
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    let mut provider = default_provider();
    provider.cipher_suites = SUITES.to_vec();
    provider.kx_groups = GROUPS.to_vec();
    Arc::new(provider)
}
