//! Checking SM2 signatures (GB/T 32918.2 with SM3), in certificates and in handshakes.
//!
//! The two differ in the identity that is hashed in front of what is signed: certificates use
//! the default of GB/T 35276, a handshake its own (RFC 8998, section 3.2.1). A signature of one
//! kind therefore never passes as the other.

use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm};
use sm2::dsa::signature::Verifier;
use sm2::dsa::{Signature, VerifyingKey};

use super::SCHEME;
use super::key::public_from_point;

/// Identity in signatures of certificates and of requests for one.
pub(super) const CERTIFICATE_IDENTITY: &str = "1234567812345678";
/// Identity in CertificateVerify.
pub(super) const HANDSHAKE_IDENTITY: &str = "TLSv1.3+GM+Cipher+Suite";

/// id-ecPublicKey on the SM2 curve, 1.2.156.10197.1.301; DER without the outer SEQUENCE.
const KEY_ALGORITHM: AlgorithmIdentifier = AlgorithmIdentifier::from_slice(&[
    0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, // id-ecPublicKey
    0x06, 0x08, 0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x82, 0x2D, // the curve
]);

/// SM2 with SM3, 1.2.156.10197.1.501; DER without the outer SEQUENCE.
const SIGNATURE_ALGORITHM: AlgorithmIdentifier = AlgorithmIdentifier::from_slice(&[
    0x06, 0x08, 0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x83, 0x75,
]);

/// Certificates are checked with all of the first, handshakes with what the scheme names.
pub(super) const ALGORITHMS: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[&Sm2Sm3 { identity: CERTIFICATE_IDENTITY }],
    mapping: HANDSHAKE,
};

const HANDSHAKE: &[(SignatureScheme, &[&dyn SignatureVerificationAlgorithm])] =
    &[(SCHEME, &[&Sm2Sm3 { identity: HANDSHAKE_IDENTITY }])];

#[derive(Debug)]
struct Sm2Sm3 {
    identity: &'static str,
}

impl SignatureVerificationAlgorithm for Sm2Sm3 {
    fn verify_signature(
        &self,
        point: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        verify(self.identity, point, message, signature).ok_or(InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        KEY_ALGORITHM
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        SIGNATURE_ALGORITHM
    }
}

/// Whether `signature` (DER, canonical, nothing after it) is that of `point`'s owner.
pub(super) fn verify(identity: &str, point: &[u8], message: &[u8], signature: &[u8]) -> Option<()> {
    let public = public_from_point(point)?;
    let key = VerifyingKey::new(identity, public).ok()?;
    let signature = Signature::from_der(signature).ok()?;
    key.verify(message, &signature).ok()
}
