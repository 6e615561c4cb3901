//! The suites and groups of mode T, in our order of preference, and reading PEM.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
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

/// All certificates of a PEM text, at least one.
pub(crate) fn certificates(
    what: &'static str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem { what, source })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { what });
    }
    Ok(certificates)
}
