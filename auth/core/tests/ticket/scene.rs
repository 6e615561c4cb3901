//! The app, its keys, and tickets of it.

use std::collections::BTreeMap;

use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::revocation::Revocations;
use auth_core::secret::Secret;
use auth_core::ticket::{Claims, Signer, Ticket, TicketKeys, TicketRefusal, verify};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use proto::id::{AppId, RoomId};
use proto::time::Wall;
use sha2::Sha256;

pub(crate) const APP: AppId = AppId(1);
pub(crate) const NOW_S: u64 = 1_785_000_000;
pub(crate) const SHARED: &str = "a secret of two servers, 32 bytes or more";

/// Made with `openssl genpkey` for these tests.
pub(crate) const ED_PRIVATE: &str = include_str!("../keys/ed.private.pem");
pub(crate) const ED_PUBLIC: &str = include_str!("../keys/ed.public.pem");
pub(crate) const EC_PRIVATE: &str = include_str!("../keys/ec.private.pem");
pub(crate) const EC_PUBLIC: &str = include_str!("../keys/ec.public.pem");

pub(crate) fn verify_at(text: &str, now_s: u64) -> Result<Ticket, TicketRefusal> {
    verify(text, &keys(), &Revocations::new(1), Wall(now_s * 1000))
}

pub(crate) fn claims() -> Claims {
    Claims::viewer(APP, "user-42", "room-1", NOW_S, NOW_S + 3600)
}

pub(crate) fn sign(claims: &Claims) -> String {
    signer("", TicketAlg::Hs256, SHARED).sign(claims).unwrap()
}

pub(crate) fn signer(kid: &str, alg: TicketAlg, private: &str) -> Signer {
    Signer::new(kid, alg, &Secret::new(private.to_owned())).unwrap()
}

/// A ticket with any header, signed as HS256.
pub(crate) fn hs256(header: &str, secret: &str) -> String {
    hs256_of(header, &serde_json::to_string(&claims()).unwrap(), secret)
}

pub(crate) fn hs256_of(header: &str, payload: &str, secret: &str) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    let mac = mac.chain_update(&message).finalize().into_bytes();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac))
}

pub(crate) fn key(kid: &str, alg: TicketAlg, public: &str) -> TicketKey {
    TicketKey { kid: kid.to_owned(), alg, key: Secret::new(public.to_owned()) }
}

pub(crate) fn app() -> App {
    let app: App = serde_json::from_str(r#"{"id": 1}"#).unwrap();
    let ticket_keys = vec![
        key("", TicketAlg::Hs256, SHARED),
        key("ed", TicketAlg::EdDsa, ED_PUBLIC),
        key("ec", TicketAlg::Es256, EC_PUBLIC),
    ];
    App { ticket_keys, ..app }
}

pub(crate) fn keys() -> TicketKeys {
    TicketKeys::new(&[app()], &BTreeMap::new(), None).unwrap()
}

pub(crate) fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
