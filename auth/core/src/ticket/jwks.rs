//! Ticket keys from a file: a JWK set (RFC 7517), as many business servers keep one already.
//!
//! A key's kind fixes the one algorithm it is used with: OKP with Ed25519 is EdDSA (RFC 8037), EC
//! with P-256 is ES256, and oct is HS256 (RFC 7518 6). Whatever else the set holds is skipped, as
//! RFC 7517 5 wants it, and told. Nothing is fetched, neither `x5u` nor `jku`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::keys::{PinnedKey, SECRET_BYTES_MIN};
use crate::app::TicketAlg;

/// Bytes of a set: 64 keys with some certificates beside them.
pub const JWKS_BYTES_MAX: usize = 256 * 1024;
/// Keys of a set, the skipped ones included.
pub const JWKS_KEYS_MAX: usize = 64;
/// Bytes of an Ed25519 public key, and of each coordinate on P-256 (RFC 7518 6.2.1).
const COORDINATE_BYTES: usize = 32;

/// The keys of a set by their names. `Debug` prints no secret.
#[derive(Clone, Debug, Default)]
pub struct Jwks {
    pub(super) keys: BTreeMap<String, PinnedKey>,
    skipped: Vec<Skipped>,
}

/// A key that is not used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Skipped {
    /// Its place in the set, from 0.
    pub key_no: usize,
    /// Why.
    pub why: Unusable,
}

/// Why a key of a set is not used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unusable {
    /// A member is missing, or is not what it should be.
    #[error("a member is missing or damaged")]
    Malformed,
    /// Neither Ed25519 nor P-256 nor oct.
    #[error("its kind is not served")]
    Kind,
    /// `alg` is not that of its kind.
    #[error("its alg is not that of its kind")]
    Alg,
    /// `use` or `key_ops` say that it does not verify signatures.
    #[error("it is not for verifying")]
    Purpose,
    /// A private key: whoever reads it here could sign tickets.
    #[error("it is a private key")]
    Private,
    /// A shared secret that could be guessed.
    #[error("its secret is shorter than {SECRET_BYTES_MIN} bytes")]
    Short,
}

/// Why a set cannot be used.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum JwksError {
    /// Longer than [`JWKS_BYTES_MAX`].
    #[error("a JWK set of more than {JWKS_BYTES_MAX} bytes")]
    TooLong,
    /// Not an object with a list named `keys`. What the parser says may hold a secret and is left
    /// out.
    #[error("no JWK set, as line {line} shows")]
    NoSet {
        /// Line, from 1.
        line: usize,
    },
    /// More than [`JWKS_KEYS_MAX`].
    #[error("{keys} keys are more than {JWKS_KEYS_MAX}")]
    TooMany {
        /// Keys found.
        keys: usize,
    },
    /// Two keys of one name: which one was meant?
    #[error("two keys are named {kid:?}")]
    Twice {
        /// Name.
        kid: String,
    },
    /// There are keys, and every one of them is skipped. An empty list is a set.
    #[error("none of its keys can be used; the first: {first}")]
    NoneUsable {
        /// Why the first one is skipped.
        first: Unusable,
    },
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// The members that matter here; a set may hold others.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    k: Option<String>,
    d: Option<IgnoredAny>,
}

impl Jwks {
    /// Reads a set.
    pub fn parse(bytes: &[u8]) -> Result<Self, JwksError> {
        if bytes.len() > JWKS_BYTES_MAX {
            return Err(JwksError::TooLong);
        }
        let set: Set = serde_json::from_slice(bytes)
            .map_err(|error| JwksError::NoSet { line: error.line() })?;
        if set.keys.len() > JWKS_KEYS_MAX {
            return Err(JwksError::TooMany { keys: set.keys.len() });
        }
        let mut jwks = Self::default();
        for (key_no, jwk) in set.keys.into_iter().enumerate() {
            match key(jwk) {
                Ok((kid, key)) => {
                    if jwks.keys.insert(kid.clone(), key).is_some() {
                        return Err(JwksError::Twice { kid });
                    }
                }
                Err(why) => jwks.skipped.push(Skipped { key_no, why }),
            }
        }
        match jwks.skipped.first() {
            Some(first) if jwks.keys.is_empty() => Err(JwksError::NoneUsable { first: first.why }),
            Some(_) | None => Ok(jwks),
        }
    }

    /// The names of its keys; the one without a name is the empty text.
    pub fn kids(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    /// The keys that are not used.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }
}

fn key(jwk: Value) -> Result<(String, PinnedKey), Unusable> {
    let jwk: Jwk = serde_json::from_value(jwk).map_err(|_| Unusable::Malformed)?;
    if jwk.d.is_some() {
        return Err(Unusable::Private);
    }
    let is_for_verifying = jwk.purpose.as_deref().is_none_or(|it| it == "sig")
        && jwk.key_ops.as_ref().is_none_or(|it| it.iter().any(|it| it == "verify"));
    if !is_for_verifying {
        return Err(Unusable::Purpose);
    }
    let (alg, names) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        // RFC 9864 names the curve.
        ("OKP", Some("Ed25519")) => (TicketAlg::EdDsa, ["EdDSA", "Ed25519"].as_slice()),
        ("EC", Some("P-256")) => (TicketAlg::Es256, ["ES256"].as_slice()),
        ("oct", _) => (TicketAlg::Hs256, ["HS256"].as_slice()),
        _ => return Err(Unusable::Kind),
    };
    if jwk.alg.as_deref().is_some_and(|it| !names.contains(&it)) {
        return Err(Unusable::Alg);
    }
    let bytes = match alg {
        TicketAlg::EdDsa => coordinate(jwk.x)?.to_vec(),
        TicketAlg::Es256 => [&[4], &coordinate(jwk.x)?[..], &coordinate(jwk.y)?[..]].concat(),
        TicketAlg::Hs256 => secret(jwk.k)?,
    };
    let key = PinnedKey::new(alg, &bytes).map_err(|_| Unusable::Malformed)?;
    Ok((jwk.kid.unwrap_or_default(), key))
}

fn coordinate(text: Option<String>) -> Result<[u8; COORDINATE_BYTES], Unusable> {
    decode(text)?.try_into().map_err(|_| Unusable::Malformed)
}

fn secret(text: Option<String>) -> Result<Vec<u8>, Unusable> {
    let secret = decode(text)?;
    if secret.len() < SECRET_BYTES_MIN {
        return Err(Unusable::Short);
    }
    Ok(secret)
}

fn decode(text: Option<String>) -> Result<Vec<u8>, Unusable> {
    URL_SAFE_NO_PAD.decode(text.ok_or(Unusable::Malformed)?).map_err(|_| Unusable::Malformed)
}
