//! A new key of a business server, in the forms in which its two ends keep it.
//!
//! Private keys are PKCS#8 (RFC 5958), public ones SubjectPublicKeyInfo (RFC 8410 for Ed25519, RFC
//! 5480 for P-256), both as PEM. They have one length each, so all but the key itself is constant.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::EncodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, PublicKeyUse};
use zeroize::Zeroizing;

use super::SignError;
use super::keys::algorithm;
use crate::app::{TicketAlg, TicketKey};
use crate::secret::Secret;

/// What comes before an Ed25519 private key (RFC 8410 7).
const ED_PRIVATE: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
/// What comes before an Ed25519 public key.
const ED_PUBLIC: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// What comes before a P-256 private key without its public half (RFC 5915 3).
const EC_PRIVATE_ALONE: &[u8] = b"\x30\x41\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\
    \x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x04\x27\x30\x25\x02\x01\x01\x04\x20";
/// What comes before a P-256 private key that its public half follows.
const EC_PRIVATE: &[u8] = b"\x30\x81\x87\x02\x01\x00\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\
    \x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x04\x6d\x30\x6b\x02\x01\x01\x04\x20";
/// What comes between the halves of a P-256 private key: an uncompressed point follows.
const EC_BETWEEN: &[u8] = b"\xa1\x44\x03\x42\x00\x04";
/// What comes before the coordinates of a P-256 public key.
const EC_PUBLIC: &[u8] = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\
    \x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04";

/// A key with both its ends. `Debug` prints nothing of it.
#[derive(Clone)]
pub struct Pair {
    /// What the business server signs with: HS256 the shared secret, the others PEM.
    pub private: Secret,
    /// What tickets are verified with, for the configuration.
    pub ticket_key: TicketKey,
    /// The same as a JWK set (RFC 7517) with this key alone. With HS256 it is secret, too.
    pub jwks: Secret,
}

impl Pair {
    /// The key that these random bytes are, named `kid`.
    ///
    /// # Errors
    /// With ES256, for one seed of 2^32: it is no number on the curve. Draw another.
    pub fn from_seed(alg: TicketAlg, kid: &str, seed: &[u8; 32]) -> Result<Self, SignError> {
        let shared = Zeroizing::new(hex::encode(seed));
        let key = match alg {
            TicketAlg::EdDsa => EncodingKey::from_ed_der(&joined(&[ED_PRIVATE, seed])),
            TicketAlg::Es256 => EncodingKey::from_ec_der(&joined(&[EC_PRIVATE_ALONE, seed])),
            TicketAlg::Hs256 => {
                EncodingKey::from_secret(shared.as_bytes()).map_err(SignError::Key)?
            }
        };
        let mut jwk = Jwk::from_encoding_key(&key, algorithm(alg)).map_err(SignError::Key)?;
        jwk.common.key_id = Some(kid.to_owned());
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        let (private, public) = if let AlgorithmParameters::OctetKeyPair(public) = &jwk.algorithm {
            (
                pem("PRIVATE KEY", &[ED_PRIVATE, seed]),
                pem("PUBLIC KEY", &[ED_PUBLIC, &decode(&public.x)]),
            )
        } else if let AlgorithmParameters::EllipticCurve(public) = &jwk.algorithm {
            let (x, y) = (decode(&public.x), decode(&public.y));
            (
                pem("PRIVATE KEY", &[EC_PRIVATE, seed, EC_BETWEEN, &x, &y]),
                pem("PUBLIC KEY", &[EC_PUBLIC, &x, &y]),
            )
        } else {
            (shared.to_string(), shared.to_string())
        };
        let jwks = serde_json::to_string_pretty(&JwkSet { keys: vec![jwk] })
            .expect("a set has string keys only and no failing serializer");
        Ok(Self {
            private: Secret::new(private),
            ticket_key: TicketKey { kid: kid.to_owned(), alg, key: Secret::new(public) },
            jwks: Secret::new(jwks),
        })
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pair(…)")
    }
}

fn joined(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(parts.concat())
}

fn decode(coordinate: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(coordinate).expect("the library writes coordinates as base64url")
}

/// RFC 7468: lines of 64 characters.
fn pem(label: &str, parts: &[&[u8]]) -> String {
    let text = Zeroizing::new(STANDARD.encode(joined(parts)));
    let mut pem = format!("-----BEGIN {label}-----\n");
    for (at, character) in text.char_indices() {
        if at > 0 && at % 64 == 0 {
            pem.push('\n');
        }
        pem.push(character);
    }
    pem + &format!("\n-----END {label}-----\n")
}
