//! One customer's application, as configured: `[[app]]`.

use std::path::PathBuf;

use proto::id::AppId;
use proto::policy::Policy;
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// One customer's application.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// Its number, in tokens and on the bus.
    pub id: AppId,
    /// For people.
    #[serde(default)]
    pub name: String,
    /// Keys that its business servers sign tickets with.
    #[serde(default)]
    pub ticket_keys: Vec<TicketKey>,
    /// File with more such keys: a JWK set (RFC 7517), for its owner and this process. It is read
    /// again within seconds of a change, so keys come and go without a restart; a broken one
    /// changes nothing. Empty: there is none. Ed25519, P-256 and oct keys are used.
    #[serde(default)]
    pub jwks: PathBuf,
    /// Keys that open the business API.
    #[serde(default)]
    pub api_keys: Vec<Secret>,
    /// What it asks of those who enter, until the auth service is told something else.
    #[serde(default)]
    pub policy: Policy,
}

/// A key that tickets are signed with; its algorithm is this, whatever a ticket says.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TicketKey {
    /// Name in the ticket's header; the key without a name serves tickets without `kid`.
    #[serde(default)]
    pub kid: String,
    /// Algorithm.
    pub alg: TicketAlg,
    /// HS256: the shared secret, at least 32 bytes. Others: the public key as PEM.
    pub key: Secret,
}

/// Signature algorithm of tickets.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum TicketAlg {
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// ECDSA over P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// HMAC-SHA-256 with a shared secret.
    #[serde(rename = "HS256")]
    Hs256,
}
