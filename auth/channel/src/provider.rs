//! The suites and groups of mode T, in our order of preference.

use std::sync::{Arc, LazyLock};

use proto::time::Wall;
use rustls::client::VerifierBuilderError;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CipherSuiteCommon, CryptoProvider, SupportedKxGroup};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, Tls13CipherSuite};

use crate::quic::keys;

/// Nothing older is spoken.
pub(crate) const VERSIONS: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// AES first: every server and nearly every client has it in hardware. They are rustls' own, but for
/// the keys of QUIC.
static SUITES: LazyLock<[Tls13CipherSuite; 3]> = LazyLock::new(|| {
    [
        (cipher_suite::TLS13_AES_128_GCM_SHA256, &keys::AES_128),
        (cipher_suite::TLS13_AES_256_GCM_SHA384, &keys::AES_256),
        (cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, &keys::CHACHA20),
    ]
    .map(|(suite, quic)| {
        let own = suite.tls13().expect("their names say TLS 1.3");
        Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: own.common.suite,
                hash_provider: own.common.hash_provider,
                confidentiality_limit: own.common.confidentiality_limit,
            },
            hkdf_provider: own.hkdf_provider,
            aead_alg: own.aead_alg,
            quic: Some(quic),
        }
    })
});

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
    provider.cipher_suites = SUITES.iter().map(SupportedCipherSuite::Tls13).collect();
    provider.kx_groups = GROUPS.to_vec();
    Arc::new(provider)
}
