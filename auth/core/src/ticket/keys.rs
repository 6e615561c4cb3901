//! The ticket keys of all apps, parsed once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey};
use foldhash::HashMap;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey};
use proto::id::AppId;

use super::{Audience, Jwks, TicketRefusal, head};
use crate::app::{App, TicketAlg, TicketKey};
use crate::mac;

/// Bytes that a shared secret has at least: as long as the MAC, so that it cannot be guessed.
pub(super) const SECRET_BYTES_MIN: usize = 32;

/// Why a configured key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TicketKeyError {
    /// Two keys of one app with the same name, or two apps with the same number.
    #[error("app {app} has two ticket keys named {kid:?}")]
    Twice {
        /// App.
        app: AppId,
        /// Name.
        kid: String,
    },
    /// A shared secret that could be guessed.
    #[error("ticket key {kid:?} of app {app} is shorter than {SECRET_BYTES_MIN} bytes")]
    Short {
        /// App.
        app: AppId,
        /// Name.
        kid: String,
    },
    /// Not a public key of the kind that the algorithm needs.
    #[error("ticket key {kid:?} of app {app} is not a public key in PEM for its algorithm")]
    Unreadable {
        /// App.
        app: AppId,
        /// Name.
        kid: String,
        /// What the parser says.
        source: Error,
    },
}

/// The ticket keys of all apps. `Debug` prints no secret.
#[derive(Clone, Debug)]
pub struct TicketKeys {
    apps: BTreeMap<AppId, Keys>,
    audience: Option<String>,
}

/// The ticket keys of one app.
#[derive(Clone, Debug, Default)]
struct Keys {
    /// By name.
    named: BTreeMap<String, Arc<PinnedKey>>,
    /// By the heads that usually name them.
    headed: HashMap<String, Arc<PinnedKey>>,
}

/// A key with the one algorithm it may be used with, ready to verify. `Debug` prints nothing of it.
#[derive(Clone)]
pub(super) enum PinnedKey {
    /// EdDSA with Ed25519.
    EdDsa(ParsedPublicKey),
    /// ES256.
    Es256(ParsedPublicKey),
    /// HS256.
    Hs256(Box<mac::Secret>),
}

impl TicketKeys {
    /// Parses the configured keys of all apps, and adds those of their sets.
    ///
    /// With an `audience`, tickets must name it in `aud`; without one, tickets must not have an
    /// `aud`, since whoever is not named in it must refuse (RFC 7519 4.1.3).
    pub fn new(
        apps: &[App],
        sets: &BTreeMap<AppId, Jwks>,
        audience: Option<String>,
    ) -> Result<Self, TicketKeyError> {
        let mut parsed: BTreeMap<AppId, Keys> = BTreeMap::new();
        for app in apps {
            let keys = parsed.entry(app.id).or_default();
            let configured = app.ticket_keys.iter().map(|it| (&it.kid, pinned(app.id, it)));
            let set = sets.get(&app.id).into_iter().flat_map(|it| &it.keys);
            for (kid, key) in configured.chain(set.map(|(kid, key)| (kid, Ok(key.clone())))) {
                let key = Arc::new(key?);
                let heads = head::usual(kid, key.alg()).into_iter();
                keys.headed.extend(heads.map(|it| (it, Arc::clone(&key))));
                if keys.named.insert(kid.clone(), key).is_some() {
                    return Err(TicketKeyError::Twice { app: app.id, kid: kid.clone() });
                }
            }
        }
        Ok(Self { apps: parsed, audience })
    }

    pub(super) fn find(&self, app: AppId, kid: &str) -> Result<&PinnedKey, TicketRefusal> {
        let keys = self.apps.get(&app).ok_or(TicketRefusal::UnknownApp { app })?;
        keys.named.get(kid).map(Arc::as_ref).ok_or(TicketRefusal::UnknownKey { app })
    }

    /// The key that a head names, if it is written as usual; its algorithm is the key's then.
    pub(super) fn of_usual(&self, app: AppId, head: &str) -> Option<&PinnedKey> {
        self.apps.get(&app)?.headed.get(head).map(Arc::as_ref)
    }

    pub(super) fn is_audience(&self, named: Option<&Audience>) -> bool {
        match (&self.audience, named) {
            (None, None) => true,
            (Some(ours), Some(named)) => named.has(ours),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl PinnedKey {
    /// A public key as its own bytes: with Ed25519 32, on P-256 an uncompressed point (SEC 1
    /// 2.3.3). HS256 takes the secret.
    pub(super) fn new(alg: TicketAlg, bytes: &[u8]) -> Result<Self, Error> {
        let rejected = |_| Error::from(ErrorKind::InvalidKeyFormat);
        Ok(match alg {
            TicketAlg::EdDsa => {
                Self::EdDsa(ParsedPublicKey::new(&ED25519, bytes).map_err(rejected)?)
            }
            TicketAlg::Es256 => {
                let key = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes);
                Self::Es256(key.map_err(rejected)?)
            }
            TicketAlg::Hs256 => Self::Hs256(Box::new(mac::Secret::new(bytes))),
        })
    }

    pub(super) const fn alg(&self) -> TicketAlg {
        match self {
            Self::EdDsa(_) => TicketAlg::EdDsa,
            Self::Es256(_) => TicketAlg::Es256,
            Self::Hs256(_) => TicketAlg::Hs256,
        }
    }

    /// Whether `signature` is that of `message`; with HS256 the time taken does not depend on where
    /// they differ.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::EdDsa(key) | Self::Es256(key) => key.verify_sig(message, signature).is_ok(),
            Self::Hs256(key) => key.has_signed(message, signature),
        }
    }
}

impl fmt::Debug for PinnedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedKey({:?}, …)", self.alg())
    }
}

pub(super) const fn algorithm(alg: TicketAlg) -> Algorithm {
    match alg {
        TicketAlg::EdDsa => Algorithm::EdDSA,
        TicketAlg::Es256 => Algorithm::ES256,
        TicketAlg::Hs256 => Algorithm::HS256,
    }
}

fn pinned(app: AppId, key: &TicketKey) -> Result<PinnedKey, TicketKeyError> {
    let bytes = key.key.expose().as_bytes();
    if key.alg == TicketAlg::Hs256 && bytes.len() < SECRET_BYTES_MIN {
        return Err(TicketKeyError::Short { app, kid: key.kid.clone() });
    }
    let parsed = match key.alg {
        TicketAlg::EdDsa => DecodingKey::from_ed_pem(bytes),
        TicketAlg::Es256 => DecodingKey::from_ec_pem(bytes),
        TicketAlg::Hs256 => DecodingKey::from_secret(bytes),
    };
    parsed
        .and_then(|it| PinnedKey::new(key.alg, it.try_get_as_bytes()?))
        .map_err(|source| TicketKeyError::Unreadable { app, kid: key.kid.clone(), source })
}
