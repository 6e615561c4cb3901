//! The other side of a ticket: what a business server does, for tools, demos and tests.

use std::fmt;

use jsonwebtoken::{EncodingKey, Header};
use proto::id::AppId;
use proto::item::Role;
use serde::{Deserialize, Serialize};

use super::keys::algorithm;
use crate::app::TicketAlg;
use crate::secret::Secret;

/// The claims of a ticket, as JSON carries them. Others are passed over.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claims {
    /// App.
    pub app: AppId,
    /// Account.
    pub sub: String,
    /// The one room, or `rooms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// The rooms, at most 8, or `room`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rooms: Vec<String>,
    /// What the viewer is there.
    #[serde(default)]
    pub role: Role,
    /// When it was issued, seconds since 1970.
    pub iat: u64,
    /// When it ends, seconds since 1970; at most a day after `iat`.
    pub exp: u64,
    /// When it begins to count, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
    /// Who it is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aud: Option<Audience>,
    /// The account is verified.
    #[serde(default)]
    pub verified: bool,
    /// The viewer is a minor.
    #[serde(default)]
    pub minor: bool,
    /// Whether the viewer may send; by default everyone but guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<bool>,
    /// Keeps the push in hot rooms.
    #[serde(default)]
    pub push: bool,
}

impl Claims {
    /// An ordinary viewer of one room; change what differs.
    #[must_use]
    pub fn viewer(app: AppId, sub: &str, room: &str, iat: u64, exp: u64) -> Self {
        Self {
            app,
            sub: sub.to_owned(),
            room: Some(room.to_owned()),
            rooms: Vec::new(),
            role: Role::Viewer,
            iat,
            exp,
            nbf: None,
            aud: None,
            verified: false,
            minor: false,
            send: None,
            push: false,
        }
    }
}

/// Who a ticket is made for: one name or several.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Audience {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Audience {
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Several(several) => several.iter().any(|it| it == name),
        }
    }
}

/// Why a ticket could not be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// Not a private key of the kind that the algorithm needs.
    #[error("the key does not fit its algorithm")]
    Key(#[source] jsonwebtoken::errors::Error),
    /// The library refused.
    #[error("the ticket could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

/// A business server's signing key. `Debug` prints nothing of it.
#[derive(Clone)]
pub struct Signer {
    header: Header,
    key: EncodingKey,
}

impl Signer {
    /// Parses a key: HS256 takes the shared secret, the others a private key as PKCS#8 PEM.
    pub fn new(kid: &str, alg: TicketAlg, key: &Secret) -> Result<Self, SignError> {
        let bytes = key.expose().as_bytes();
        let key = match alg {
            TicketAlg::EdDsa => EncodingKey::from_ed_pem(bytes),
            TicketAlg::Es256 => EncodingKey::from_ec_pem(bytes),
            TicketAlg::Hs256 => EncodingKey::from_secret(bytes),
        };
        let mut header = Header::new(algorithm(alg));
        header.kid = Some(kid.to_owned()).filter(|it| !it.is_empty());
        Ok(Self { header, key: key.map_err(SignError::Key)? })
    }

    /// Signs a ticket.
    pub fn sign(&self, claims: &Claims) -> Result<String, SignError> {
        jsonwebtoken::encode(&self.header, claims, &self.key).map_err(SignError::Sign)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(…)")
    }
}
