//! Tickets that nobody may take.

use auth_core::app::TicketAlg;
use auth_core::ticket::{Claims, TicketRefusal};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use proto::id::AppId;

use crate::scene::{
    APP, EC_PRIVATE, EC_PUBLIC, ED_PRIVATE, ED_PUBLIC, NOW_S, SHARED, claims, hs256, hs256_of,
    sign, signer, verify_at,
};

#[test]
fn app_and_key_must_be_ours() {
    let foreign = sign(&Claims { app: AppId(2), ..claims() });
    let unnamed = signer("other", TicketAlg::Hs256, SHARED).sign(&claims()).unwrap();
    let guess = "another secret that is 32 bytes or longer";
    let guessed = signer("", TicketAlg::Hs256, guess).sign(&claims()).unwrap();

    assert_eq!(verify_at(&foreign, NOW_S), Err(TicketRefusal::UnknownApp { app: AppId(2) }));
    assert_eq!(verify_at(&unnamed, NOW_S), Err(TicketRefusal::UnknownKey { app: APP }));
    assert_eq!(verify_at(&guessed, NOW_S), Err(TicketRefusal::WrongSignature));
}

/// The class of CVE-2015-9235: the ticket chooses how it is checked.
#[test]
fn the_algorithm_is_the_key_s_whatever_the_ticket_says() {
    let hs_with_public_key = |public| {
        let text = signer("", TicketAlg::Hs256, public).sign(&claims()).unwrap();
        let (_, rest) = text.split_once('.').unwrap();
        rest.to_owned()
    };

    let ed_as_hs = signer("ed", TicketAlg::Hs256, ED_PUBLIC).sign(&claims()).unwrap();
    let ec_as_hs = signer("ec", TicketAlg::Hs256, EC_PUBLIC).sign(&claims()).unwrap();
    let ec_as_ed = signer("ec", TicketAlg::EdDsa, ED_PRIVATE).sign(&claims()).unwrap();
    let hs_as_ed = signer("", TicketAlg::EdDsa, ED_PRIVATE).sign(&claims()).unwrap();
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA","kid":"ed"}"#);
    let hs_signature_as_ed = format!("{header}.{}", hs_with_public_key(ED_PUBLIC));

    assert_eq!(verify_at(&ed_as_hs, NOW_S), Err(TicketRefusal::WrongAlg));
    assert_eq!(verify_at(&ec_as_hs, NOW_S), Err(TicketRefusal::WrongAlg));
    assert_eq!(verify_at(&ec_as_ed, NOW_S), Err(TicketRefusal::WrongAlg));
    assert_eq!(verify_at(&hs_as_ed, NOW_S), Err(TicketRefusal::WrongAlg));
    assert_eq!(verify_at(&hs_signature_as_ed, NOW_S), Err(TicketRefusal::WrongSignature));
}

#[test]
fn a_ticket_without_a_signature_is_none() {
    let payload = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims()).unwrap());
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        for kid in ["", r#","kid":"ed""#, r#","kid":"ec""#] {
            let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}"{kid}}}"#));
            for text in [format!("{header}.{payload}."), format!("{header}.{payload}")] {
                assert_eq!(verify_at(&text, NOW_S), Err(TicketRefusal::Malformed), "{alg}");
            }
        }
    }
    let signed = sign(&claims());
    let (bare, _) = signed.rsplit_once('.').unwrap();
    assert_eq!(verify_at(&format!("{bare}."), NOW_S), Err(TicketRefusal::WrongSignature));
}

/// Such a ticket is as good as its signature with the key that we hold; nothing is fetched.
#[test]
fn keys_that_a_ticket_brings_along_are_not_looked_at() {
    for member in [
        r#""jku":"https://127.0.0.1:1/keys""#,
        r#""x5u":"https://127.0.0.1:1/chain""#,
        r#""jwk":{"kty":"oct","k":"YSBndWVzcyB0aGF0IGhhcyB0aGlydHktdHdvIGJ5dGVz"}"#,
        r#""x5c":["AAAA"]"#,
    ] {
        let header = format!(r#"{{"alg":"HS256",{member}}}"#);

        let ours = verify_at(&hs256(&header, SHARED), NOW_S);
        let theirs = verify_at(&hs256(&header, "a guess that has thirty-two bytes"), NOW_S);

        assert_eq!(ours.map(|it| it.app), Ok(APP), "{header}");
        assert_eq!(theirs, Err(TicketRefusal::WrongSignature), "{header}");
    }
    let path = hs256(r#"{"alg":"HS256","kid":"../../dev/null"}"#, SHARED);
    assert_eq!(verify_at(&path, NOW_S), Err(TicketRefusal::UnknownKey { app: APP }));
}

/// RFC 7515 4.1.11: whoever does not understand what is critical must refuse.
#[test]
fn what_is_critical_and_not_understood_is_refused() {
    for header in [
        r#"{"alg":"HS256","crit":["exp"],"exp":1}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
        r#"{"alg":"HS256","b64":false}"#,
        r#"{"alg":"HS256","crit":[]}"#,
        r#"{"alg":"HS256","crit":"b64"}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":true}"#,
        r#"{"alg":"HS256","b64":null}"#,
    ] {
        let refused = verify_at(&hs256(header, SHARED), NOW_S);

        assert_eq!(refused, Err(TicketRefusal::Malformed), "{header}");
    }
}

/// Whoever has no key learns nothing of the claims but what is wrong with their app.
#[test]
fn damaged_claims_are_told_after_the_signature() {
    let header = r#"{"alg":"HS256"}"#;
    let guess = "another secret that is 32 bytes or longer";
    let check = |header, payload, secret| {
        let text = hs256_of(header, payload, secret);
        verify_at(&text, NOW_S).unwrap_err()
    };

    for damaged in [r#"{"app":1}"#, r#"{"app":1,"sub":5,"iat":1,"exp":2}"#] {
        assert_eq!(check(header, damaged, guess), TicketRefusal::WrongSignature, "{damaged}");
        assert_eq!(check(header, damaged, SHARED), TicketRefusal::Malformed, "{damaged}");
        let other = r#"{"alg":"EdDSA"}"#;
        assert_eq!(check(other, damaged, SHARED), TicketRefusal::WrongAlg, "{damaged}");
    }
    let foreign = check(header, r#"{"app":2}"#, SHARED);
    assert_eq!(foreign, TicketRefusal::UnknownApp { app: AppId(2) });
    assert_eq!(check(header, r#"{"sub":"a"}"#, guess), TicketRefusal::Malformed);
}

#[test]
fn every_flipped_bit_is_refused() {
    for (kid, alg, private) in [
        ("", TicketAlg::Hs256, SHARED),
        ("ed", TicketAlg::EdDsa, ED_PRIVATE),
        ("ec", TicketAlg::Es256, EC_PRIVATE),
    ] {
        let text = signer(kid, alg, private).sign(&claims()).unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << (at % 7);
            let flipped = String::from_utf8(bytes).unwrap();

            assert!(verify_at(&flipped, NOW_S).is_err(), "byte {at}");
        }
        for end in 0..text.len() {
            assert!(verify_at(&text[..end], NOW_S).is_err(), "{end}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "[A-Za-z0-9_.-]{0,200}|\\PC{0,50}") {
        prop_assert!(verify_at(&text, NOW_S).is_err());
    }

    /// Whatever JSON stands in a ticket that the app itself signed.
    #[test]
    fn no_signed_claims_panic(sub in "\\PC{0,80}", name in "\\PC{0,80}", iat in any::<u64>(), exp in any::<u64>()) {
        let claims = Claims { sub, room: Some(name), iat, exp, ..claims() };

        let verified = verify_at(&sign(&claims), NOW_S);

        prop_assert!(verified.is_err() || (claims.iat <= NOW_S + 30 && NOW_S <= claims.exp + 30));
    }
}

#[test]
fn a_long_text_is_not_read() {
    let text = "a".repeat(4097);

    assert_eq!(verify_at(&text, NOW_S), Err(TicketRefusal::TooLong { bytes: 4097 }));
}
