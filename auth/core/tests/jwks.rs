//! Ticket keys from JWK sets: which are used, which are skipped, which sets are refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::revocation::Revocations;
use auth_core::secret::Secret;
use auth_core::ticket::{
    Claims, JWKS_BYTES_MAX, Jwks, JwksError, Signer, TicketKeyError, TicketKeys, TicketRefusal,
    Unusable, verify,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use proto::id::AppId;
use proto::time::Wall;
use serde_json::{Value, json};

const APP: AppId = AppId(1);
const NOW_S: u64 = 1_785_000_000;
const SHARED: &str = "a secret of two servers, 32 bytes or more";
const ED_PRIVATE: &str = include_str!("keys/ed.private.pem");
const EC_PRIVATE: &str = include_str!("keys/ec.private.pem");
const EC_PUBLIC: &str = include_str!("keys/ec.public.pem");

#[test]
fn each_kind_verifies_what_its_private_key_signed() {
    let keys = keys(&[ed(), ec(), oct()]).unwrap();

    for (kid, alg, private) in [
        ("ed", TicketAlg::EdDsa, ED_PRIVATE),
        ("ec", TicketAlg::Es256, EC_PRIVATE),
        ("", TicketAlg::Hs256, SHARED),
    ] {
        assert_eq!(check(&sign(kid, alg, private), &keys), Ok(()), "{kid}");
    }
}

/// A kind has one algorithm, so no ticket can choose another.
#[test]
fn a_public_key_is_no_shared_secret() {
    let keys = keys(&[ed(), ec(), oct()]).unwrap();
    let point = [&[4], &part(&ec(), "x")[..], &part(&ec(), "y")[..]].concat();
    let as_text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);

    for guess in [EC_PUBLIC, &as_text(&point), ec()["x"].as_str().unwrap()] {
        let text = sign("ec", TicketAlg::Hs256, guess);

        assert_eq!(check(&text, &keys), Err(TicketRefusal::WrongAlg), "{guess}");
    }
    assert_eq!(
        check(&sign("ed", TicketAlg::Es256, EC_PRIVATE), &keys),
        Err(TicketRefusal::WrongAlg)
    );
    assert_eq!(check(&sign("", TicketAlg::EdDsa, ED_PRIVATE), &keys), Err(TicketRefusal::WrongAlg));
}

#[test]
fn what_cannot_be_used_is_skipped_and_told() {
    let skipped = |jwk: Value| {
        let jwks = Jwks::parse(&set(&[ed(), jwk.clone()])).unwrap();
        assert_eq!(jwks.kids().collect::<Vec<_>>(), ["ed"], "{jwk}");
        let [skipped] = jwks.skipped() else { panic!("{jwk}") };
        assert_eq!(skipped.key_no, 1);
        skipped.why
    };

    assert_eq!(
        skipped(json!({"kty": "RSA", "kid": "r", "n": "AQAB", "e": "AQAB"})),
        Unusable::Kind
    );
    assert_eq!(skipped(with(&ec(), "crv", json!("P-384"))), Unusable::Kind);
    assert_eq!(skipped(with(&ed(), "crv", json!("X25519"))), Unusable::Kind);
    assert_eq!(skipped(with(&ed(), "kty", json!("EC"))), Unusable::Kind);
    assert_eq!(skipped(with(&ec(), "alg", json!("HS256"))), Unusable::Alg);
    assert_eq!(skipped(with(&oct(), "alg", json!("HS512"))), Unusable::Alg);
    assert_eq!(skipped(with(&ec(), "use", json!("enc"))), Unusable::Purpose);
    assert_eq!(skipped(with(&ec(), "key_ops", json!(["sign"]))), Unusable::Purpose);
    assert_eq!(skipped(with(&ec(), "key_ops", json!([]))), Unusable::Purpose);
    assert_eq!(skipped(with(&ed(), "d", json!("AAAA"))), Unusable::Private);
    assert_eq!(skipped(with(&oct(), "k", json!("c2hvcnQ"))), Unusable::Short);
    assert_eq!(skipped(json!(5)), Unusable::Malformed);
    assert_eq!(skipped(json!({"kid": "none"})), Unusable::Malformed);
    assert_eq!(skipped(with(&ec(), "kid", json!(5))), Unusable::Malformed);
    assert_eq!(skipped(with(&ec(), "y", Value::Null)), Unusable::Malformed);
    assert_eq!(skipped(with(&ec(), "x", json!("AAAA"))), Unusable::Malformed);
    assert_eq!(skipped(with(&ec(), "x", ec()["y"].clone())), Unusable::Malformed);
    assert_eq!(skipped(with(&ed(), "x", json!("=="))), Unusable::Malformed);
    assert_eq!(skipped(with(&oct(), "k", Value::Null)), Unusable::Malformed);
}

#[test]
fn names_of_purpose_and_algorithm_that_fit_are_taken() {
    let jwks = [
        with(&with(&ec(), "alg", json!("ES256")), "use", json!("sig")),
        with(&with(&ed(), "alg", json!("Ed25519")), "key_ops", json!(["sign", "verify"])),
        with(&oct(), "alg", json!("HS256")),
    ];

    let jwks = Jwks::parse(&set(&jwks)).unwrap();

    assert_eq!(jwks.kids().collect::<Vec<_>>(), ["", "ec", "ed"]);
    assert_eq!(jwks.skipped(), []);
}

#[test]
fn a_set_that_is_broken_is_refused_whole() {
    let refused = |bytes: &[u8]| Jwks::parse(bytes).unwrap_err();
    let cut = &set(&[ed(), ec()])[..200];

    assert_eq!(refused(b""), JwksError::NoSet { line: 1 });
    assert_eq!(refused(cut), JwksError::NoSet { line: 1 });
    assert_eq!(refused(b"{\n\"key\": []}"), JwksError::NoSet { line: 2 });
    assert_eq!(refused(b"[]"), JwksError::NoSet { line: 1 });
    assert_eq!(refused(&vec![b' '; JWKS_BYTES_MAX + 1]), JwksError::TooLong);
    assert_eq!(refused(&set(&vec![ed(); 65])), JwksError::TooMany { keys: 65 });
    assert_eq!(refused(&set(&[ed(), ed()])), JwksError::Twice { kid: "ed".to_owned() });
    assert_eq!(
        refused(&set(&[json!({"kty": "RSA"})])),
        JwksError::NoneUsable { first: Unusable::Kind }
    );
}

#[test]
fn an_empty_set_takes_all_keys_away() {
    let keys = keys(&[]).unwrap();

    let refused = check(&sign("ed", TicketAlg::EdDsa, ED_PRIVATE), &keys);

    assert_eq!(refused, Err(TicketRefusal::UnknownKey { app: APP }));
}

#[test]
fn a_name_that_is_configured_too_is_refused() {
    let configured = TicketKey {
        kid: "ed".to_owned(),
        alg: TicketAlg::Hs256,
        key: Secret::new(SHARED.to_owned()),
    };
    let app = App { ticket_keys: vec![configured], ..app(APP) };
    let sets = BTreeMap::from([(APP, Jwks::parse(&set(&[ed()])).unwrap())]);

    let refused = TicketKeys::new(&[app], &sets, None).unwrap_err();

    assert!(matches!(refused, TicketKeyError::Twice { app: APP, kid } if kid == "ed"));
}

#[test]
fn a_set_serves_its_own_app_only() {
    let sets = BTreeMap::from([(AppId(2), Jwks::parse(&set(&[ed()])).unwrap())]);
    let keys = TicketKeys::new(&[app(APP), app(AppId(2))], &sets, None).unwrap();

    let refused = check(&sign("ed", TicketAlg::EdDsa, ED_PRIVATE), &keys);

    assert_eq!(refused, Err(TicketRefusal::UnknownKey { app: APP }));
}

#[test]
fn nothing_secret_is_printed() {
    let jwks = Jwks::parse(&set(&[oct()])).unwrap();
    let wrong = Jwks::parse(format!(r#"{{"keys": "{SHARED}"}}"#).as_bytes()).unwrap_err();

    let printed = format!("{jwks:?} {wrong:?} {wrong}");

    assert!(!printed.contains(SHARED) && !printed.contains(oct()["k"].as_str().unwrap()));
    assert!(!printed.contains(&format!("{:?}", SHARED.as_bytes())), "{printed}");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        drop(Jwks::parse(&bytes));
    }

    #[test]
    fn no_members_panic(
        kty in "OKP|EC|oct|RSA|\\PC{0,5}",
        crv in "Ed25519|P-256|\\PC{0,5}",
        x in "[A-Za-z0-9_=-]{0,60}",
        text in "\\PC{0,40}",
    ) {
        let jwk = json!({"kty": kty, "crv": crv, "x": x, "y": x, "k": text, "kid": text});
        let Ok(jwks) = Jwks::parse(&set(&[jwk])) else { return Ok(()) };
        let keys = TicketKeys::new(&[app(APP)], &BTreeMap::from([(APP, jwks)]), None).unwrap();

        let refused = check(&sign(&text, TicketAlg::Es256, EC_PRIVATE), &keys);

        prop_assert!(refused.is_err());
    }
}

fn keys(jwks: &[Value]) -> Result<TicketKeys, TicketKeyError> {
    let sets = BTreeMap::from([(APP, Jwks::parse(&set(jwks)).unwrap())]);
    TicketKeys::new(&[app(APP)], &sets, None)
}

fn check(text: &str, keys: &TicketKeys) -> Result<(), TicketRefusal> {
    verify(text, keys, &Revocations::new(1), Wall(NOW_S * 1000)).map(|_| ())
}

fn sign(kid: &str, alg: TicketAlg, private: &str) -> String {
    let signer = Signer::new(kid, alg, &Secret::new(private.to_owned())).unwrap();
    signer.sign(&Claims::viewer(APP, "user-42", "room-1", NOW_S, NOW_S + 3600)).unwrap()
}

fn set(jwks: &[Value]) -> Vec<u8> {
    serde_json::to_vec(&json!({"keys": jwks})).unwrap()
}

fn with(jwk: &Value, member: &str, value: Value) -> Value {
    let mut jwk = jwk.clone();
    jwk[member] = value;
    jwk
}

fn part(jwk: &Value, member: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(jwk[member].as_str().unwrap()).unwrap()
}

/// The public half of `keys/ed.private.pem`.
fn ed() -> Value {
    json!({
        "kty": "OKP", "crv": "Ed25519", "kid": "ed",
        "x": "zqwDaYLxflrlapG1L4DB7prCTIL0FTeTn-TCpNAfKGU",
    })
}

/// The public half of `keys/ec.private.pem`.
fn ec() -> Value {
    json!({
        "kty": "EC", "crv": "P-256", "kid": "ec",
        "x": "i86e4FIpq3ZkaXf2E7plNtqNpbBVsoiVOXo5JaQMZzs",
        "y": "opkqAfvytfw4FcUGBOO8e3-lzREbf-NRSqOWYPULEGE",
    })
}

/// Without a name: for tickets without `kid`.
fn oct() -> Value {
    json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode(SHARED)})
}

fn app(id: AppId) -> App {
    serde_json::from_value(json!({"id": id})).unwrap()
}
