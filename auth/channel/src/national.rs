//! Mode G: TLS 1.3 with the national suites of RFC 8998, as a provider for rustls.
//!
//! One suite, one group, one signature scheme, so that nothing is left to negotiate and nothing
//! of mode T can be mixed in: [`SUITE`] (TLS_SM4_GCM_SM3), [`GROUP`] (curveSM2), [`SCHEME`]
//! (sm2sig_sm3). The other suite of the RFC, TLS_SM4_CCM_SM3, is not offered: it protects no
//! better, costs a second pass of the cipher over every record, and no peer needs it that has the
//! first. There is no hardware help for SM4 in common servers: a record costs about twenty times
//! what AES-GCM costs.
//!
//! The primitives are RustCrypto's (`sm2`, `sm3`, `sm4`, `aes-gcm`); rustls does the protocol and
//! knows these code points as unknown numbers. Certificates and keys come from [`certs`].
//!
//! What is weaker than in mode T: nobody independent has audited these primitives, and `sm4` looks
//! bytes up in a table, so whoever shares the processor's cache might learn of a traffic key from
//! its timing. Machines with neighbours that are not trusted should not serve this mode.

pub mod certs;
mod exchange;
mod hash;
mod key;
mod record;
mod sign;
mod verify;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs, tls13};
use rustls::{
    CipherSuite, CipherSuiteCommon, NamedGroup, SignatureScheme, SupportedCipherSuite,
    Tls13CipherSuite,
};

/// TLS_SM4_GCM_SM3 (RFC 8998, section 2).
pub const SUITE: CipherSuite = CipherSuite::Unknown(0x00C6);
/// curveSM2 (RFC 8998, section 2).
pub const GROUP: NamedGroup = NamedGroup::Unknown(41);
/// sm2sig_sm3 (RFC 8998, section 2).
pub const SCHEME: SignatureScheme = SignatureScheme::Unknown(0x0708);

/// Records sealed with one key before it is renewed.
///
/// RFC 8446, section 5.5 allows AES-GCM 2^24.5 full records for a safety margin of 2^-57. The
/// arithmetic behind it sees only the 128-bit block, which SM4 shares. rustls sends a KeyUpdate
/// by itself when this is reached.
const SEALED_RECORDS_MAX: u64 = 1 << 24;

static HKDF_SM3: tls13::HkdfUsingHmac<'static> = tls13::HkdfUsingHmac(&hash::HmacSm3);

static SM4_GCM_SM3: Tls13CipherSuite = Tls13CipherSuite {
    common: CipherSuiteCommon {
        suite: SUITE,
        hash_provider: &hash::Sm3Hash,
        confidentiality_limit: SEALED_RECORDS_MAX,
    },
    hkdf_provider: &HKDF_SM3,
    aead_alg: &record::Sm4Gcm,
    quic: None,
};

/// Everything rustls needs for mode G, and nothing of mode T.
///
/// Only TLS 1.3 works with it. Randomness is the operating system's, through aws-lc-rs.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![SupportedCipherSuite::Tls13(&SM4_GCM_SM3)],
        kx_groups: vec![&exchange::CurveSm2],
        signature_verification_algorithms: verify::ALGORITHMS,
        secure_random: aws_lc_rs::default_provider().secure_random,
        key_provider: &sign::Sm2Keys,
    })
}
