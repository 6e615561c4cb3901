//! The ticket keys of all apps, parsed once.

use std::collections::BTreeMap;

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use proto::id::AppId;

use super::{Audience, Jwks, TicketRefusal};
use crate::app::{App, TicketAlg, TicketKey};

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
        source: jsonwebtoken::errors::Error,
    },
}

/// The ticket keys of all apps. `Debug` prints no secret.
#[derive(Clone, Debug)]
pub struct TicketKeys {
    apps: BTreeMap<AppId, BTreeMap<String, PinnedKey>>,
    audience: Option<String>,
}

/// A key with the one algorithm it may be used with.
#[derive(Clone, Debug)]
pub(super) struct PinnedKey {
    decoding: DecodingKey,
    validation: Validation,
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
        let mut parsed: BTreeMap<AppId, BTreeMap<String, PinnedKey>> = BTreeMap::new();
        for app in apps {
            let keys = parsed.entry(app.id).or_default();
            let configured = app.ticket_keys.iter().map(|it| (&it.kid, pinned(app.id, it)));
            let set = sets.get(&app.id).into_iter().flat_map(|it| &it.keys);
            for (kid, key) in configured.chain(set.map(|(kid, key)| (kid, Ok(key.clone())))) {
                if keys.insert(kid.clone(), key?).is_some() {
                    return Err(TicketKeyError::Twice { app: app.id, kid: kid.clone() });
                }
            }
        }
        Ok(Self { apps: parsed, audience })
    }

    pub(super) fn find(&self, app: AppId, kid: &str) -> Result<&PinnedKey, TicketRefusal> {
        let keys = self.apps.get(&app).ok_or(TicketRefusal::UnknownApp { app })?;
        keys.get(kid).ok_or(TicketRefusal::UnknownKey { app })
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
    pub(super) fn new(alg: TicketAlg, decoding: DecodingKey) -> Self {
        let mut validation = Validation::new(algorithm(alg));
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        Self { decoding, validation }
    }

    pub(super) const fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }

    pub(super) const fn validation(&self) -> &Validation {
        &self.validation
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
    let decoding = match key.alg {
        TicketAlg::EdDsa => DecodingKey::from_ed_pem(bytes),
        TicketAlg::Es256 => DecodingKey::from_ec_pem(bytes),
        TicketAlg::Hs256 => DecodingKey::from_secret(bytes),
    };
    let decoding = decoding.map_err(|source| TicketKeyError::Unreadable {
        app,
        kid: key.kid.clone(),
        source,
    })?;
    Ok(PinnedKey::new(key.alg, decoding))
}
