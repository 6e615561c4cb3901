//! Tickets: what a business server can sign, and what nobody can.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::revocation::Revocations;
use auth_core::secret::Secret;
use auth_core::ticket::{
    Audience, Claims, Signer, Ticket, TicketKeyError, TicketKeys, TicketRefusal, verify,
};
use auth_core::token::{cap, flag};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use proto::control::Fact;
use proto::id::{AppId, RoomId, ViewerId};
use proto::item::Role;
use proto::time::Wall;
use sha2::Sha256;

const APP: AppId = AppId(1);
const NOW_S: u64 = 1_785_000_000;
const SHARED: &str = "a secret of two servers, 32 bytes or more";

/// Made with `openssl genpkey` for these tests.
const ED_PRIVATE: &str = include_str!("keys/ed.private.pem");
const ED_PUBLIC: &str = include_str!("keys/ed.public.pem");
const EC_PRIVATE: &str = include_str!("keys/ec.private.pem");
const EC_PUBLIC: &str = include_str!("keys/ec.public.pem");

#[test]
fn each_algorithm_signs_and_verifies() {
    for (kid, alg, private) in [
        ("", TicketAlg::Hs256, SHARED),
        ("ed", TicketAlg::EdDsa, ED_PRIVATE),
        ("ec", TicketAlg::Es256, EC_PRIVATE),
    ] {
        let text = signer(kid, alg, private).sign(&claims()).unwrap();

        let ticket = verify_at(&text, NOW_S).unwrap();

        let expected = Ticket {
            app: APP,
            account: ViewerId::parse("user-42").unwrap(),
            rooms: room("room-1").into(),
            role: Role::Viewer,
            may_send: true,
            caps: 0,
            issued: Wall(NOW_S * 1000),
            expires: Wall((NOW_S + 3600) * 1000),
        };
        assert_eq!(ticket, expected);
    }
}

#[test]
fn roles_and_claims_become_flags_and_caps() {
    let check = |change: fn(&mut Claims), flags, caps| {
        let mut claims = claims();
        change(&mut claims);
        let ticket = verify_at(&sign(&claims), NOW_S).unwrap();
        assert_eq!((ticket.flags(), ticket.caps), (flags, caps), "{claims:?}");
    };

    check(|_| {}, flag::MAY_SEND, 0);
    check(|it| it.send = Some(false), 0, 0);
    check(|it| it.role = Role::Guest, flag::GUEST, 0);
    check(|it| (it.role, it.send) = (Role::Guest, Some(true)), flag::GUEST | flag::MAY_SEND, 0);
    check(|it| it.role = Role::Vip, flag::MAY_SEND, cap::VIP);
    check(|it| it.role = Role::Moderator, flag::MAY_SEND | flag::MODERATOR, 0);
    check(|it| it.role = Role::Host, flag::MAY_SEND | flag::MODERATOR, cap::HOST);
    check(
        |it| (it.verified, it.minor, it.push) = (true, true, true),
        flag::MAY_SEND,
        cap::VERIFIED | cap::MINOR | cap::PROMOTED,
    );
}

#[test]
fn one_room_or_up_to_eight() {
    let check = |room: Option<&str>, rooms: &[&str]| {
        let rooms = rooms.iter().map(|&it| it.to_owned()).collect();
        let claims = Claims { room: room.map(str::to_owned), rooms, ..claims() };
        verify_at(&sign(&claims), NOW_S).map(|it| it.rooms.len())
    };

    assert_eq!(check(None, &["a", "b"]), Ok(2));
    assert_eq!(check(None, &["a"; 8]), Ok(8));
    assert_eq!(check(None, &["a"; 9]), Err(TicketRefusal::Malformed));
    assert_eq!(check(None, &[]), Err(TicketRefusal::Malformed));
    assert_eq!(check(Some("a"), &["b"]), Err(TicketRefusal::Malformed));
    assert_eq!(check(Some("../a"), &[]), Err(TicketRefusal::Malformed));
    assert_eq!(check(None, &["a", ""]), Err(TicketRefusal::Malformed));
}

#[test]
fn a_ticket_counts_from_its_time_to_its_end_with_30_s_on_both_sides() {
    let text = sign(&claims());
    let not_before = sign(&Claims { nbf: Some(NOW_S + 100), ..claims() });

    assert_eq!(verify_at(&text, NOW_S - 31), Err(TicketRefusal::NotYetValid { ahead_s: 31 }));
    assert!(verify_at(&text, NOW_S - 30).is_ok());
    assert!(verify_at(&text, NOW_S + 3630).is_ok());
    assert_eq!(verify_at(&text, NOW_S + 3631), Err(TicketRefusal::Expired { ago_s: 31 }));
    let early = verify_at(&not_before, NOW_S);
    assert_eq!(early, Err(TicketRefusal::NotYetValid { ahead_s: 100 }));
    assert!(verify_at(&not_before, NOW_S + 70).is_ok());
}

#[test]
fn a_ticket_lives_a_day_at_most() {
    let check = |life_s| verify_at(&sign(&Claims { exp: NOW_S + life_s, ..claims() }), NOW_S);

    assert!(check(86_400).is_ok());
    assert_eq!(check(86_401), Err(TicketRefusal::LifeTooLong { life_s: 86_401 }));
    let backwards = sign(&Claims { exp: NOW_S - 1, ..claims() });
    assert_eq!(verify_at(&backwards, NOW_S), Err(TicketRefusal::Malformed));
}

#[test]
fn numbers_at_the_end_of_their_range_do_no_harm() {
    let far = sign(&Claims { iat: u64::MAX, exp: u64::MAX, ..claims() });
    let nbf = sign(&Claims { nbf: Some(u64::MAX), ..claims() });

    assert!(matches!(verify_at(&far, NOW_S), Err(TicketRefusal::NotYetValid { .. })));
    assert!(matches!(verify_at(&nbf, NOW_S), Err(TicketRefusal::NotYetValid { .. })));
    assert!(verify_at(&sign(&claims()), u64::MAX / 1000).is_err());
}

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
fn a_key_serves_its_own_app_only() {
    let theirs = "the shared secret of another app, long";
    let other = App {
        id: AppId(2),
        ticket_keys: vec![key("", TicketAlg::Hs256, theirs), key("two", TicketAlg::Hs256, theirs)],
        ..app()
    };
    let keys = TicketKeys::new(&[app(), other], &BTreeMap::new(), None).unwrap();
    let check = |kid, app| {
        let text = signer(kid, TicketAlg::Hs256, theirs).sign(&Claims { app, ..claims() });
        verify(&text.unwrap(), &keys, &Revocations::new(1), Wall(NOW_S * 1000)).map(|_| ())
    };

    assert_eq!(check("", AppId(2)), Ok(()));
    assert_eq!(check("two", AppId(2)), Ok(()));
    assert_eq!(check("", APP), Err(TicketRefusal::WrongSignature));
    assert_eq!(check("two", APP), Err(TicketRefusal::UnknownKey { app: APP }));
}

#[test]
fn an_audience_must_be_named_where_one_is_set() {
    let one = |name: &str| Some(Audience::One(name.to_owned()));
    let two = Some(Audience::Several(vec!["x".to_owned(), "barrage".to_owned()]));
    let check = |ours: Option<&str>, aud| {
        let keys = TicketKeys::new(&[app()], &BTreeMap::new(), ours.map(str::to_owned)).unwrap();
        let text = sign(&Claims { aud, ..claims() });
        verify(&text, &keys, &Revocations::new(1), Wall(NOW_S * 1000)).map(|_| ())
    };

    assert_eq!(check(None, None), Ok(()));
    assert_eq!(check(None, one("barrage")), Err(TicketRefusal::WrongAudience));
    assert_eq!(check(Some("barrage"), None), Err(TicketRefusal::WrongAudience));
    assert_eq!(check(Some("barrage"), one("other")), Err(TicketRefusal::WrongAudience));
    assert_eq!(check(Some("barrage"), one("barrage")), Ok(()));
    assert_eq!(check(Some("barrage"), two), Ok(()));
}

#[test]
fn a_kicked_or_banned_viewer_is_refused() {
    let (room, viewer) = (room("room-1"), ViewerId::parse("user-42").unwrap());
    let now = Wall(NOW_S * 1000 + 500);
    let mut kicked = Revocations::new(1);
    let mut banned = Revocations::new(1);

    let not_before = now;
    let kick = Fact::Kick { app: APP, room: room.clone(), viewer: viewer.clone(), not_before };
    kicked.handle(&kick, now);
    let until = Wall(now.0 + 60_000);
    banned.handle(&Fact::Ban { app: APP, room, viewer, until }, now);
    let newer = sign(&Claims { iat: NOW_S + 1, ..claims() });

    assert_eq!(verify(&sign(&claims()), &keys(), &kicked, now), Err(TicketRefusal::Kicked));
    assert!(verify(&newer, &keys(), &kicked, now).is_ok());
    assert_eq!(verify(&newer, &keys(), &banned, now), Err(TicketRefusal::Banned));
    assert!(verify(&newer, &keys(), &banned, until).is_ok());
}

#[test]
fn keys_that_cannot_be_used_are_refused_when_they_are_read() {
    let check = |keys: Vec<TicketKey>| {
        TicketKeys::new(&[App { ticket_keys: keys, ..app() }], &BTreeMap::new(), None).unwrap_err()
    };

    let short = check(vec![key("", TicketAlg::Hs256, "0123456789012345678901234567890")]);
    let unreadable = check(vec![key("", TicketAlg::EdDsa, "no key")]);
    let other_kind = check(vec![key("", TicketAlg::Es256, ED_PUBLIC)]);
    let private = check(vec![key("", TicketAlg::EdDsa, ED_PRIVATE)]);
    let twice = check(vec![key("a", TicketAlg::EdDsa, ED_PUBLIC); 2]);

    assert!(matches!(short, TicketKeyError::Short { .. }));
    assert!(matches!(unreadable, TicketKeyError::Unreadable { .. }));
    assert!(matches!(other_kind, TicketKeyError::Unreadable { .. }));
    assert!(matches!(private, TicketKeyError::Unreadable { .. }));
    assert!(matches!(twice, TicketKeyError::Twice { .. }));
    assert!(TicketKeys::new(&[app(), app()], &BTreeMap::new(), None).is_err());
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

fn verify_at(text: &str, now_s: u64) -> Result<Ticket, TicketRefusal> {
    verify(text, &keys(), &Revocations::new(1), Wall(now_s * 1000))
}

fn claims() -> Claims {
    Claims::viewer(APP, "user-42", "room-1", NOW_S, NOW_S + 3600)
}

fn sign(claims: &Claims) -> String {
    signer("", TicketAlg::Hs256, SHARED).sign(claims).unwrap()
}

fn signer(kid: &str, alg: TicketAlg, private: &str) -> Signer {
    Signer::new(kid, alg, &Secret::new(private.to_owned())).unwrap()
}

/// A ticket with any header, signed as HS256.
fn hs256(header: &str, secret: &str) -> String {
    hs256_of(header, &serde_json::to_string(&claims()).unwrap(), secret)
}

fn hs256_of(header: &str, payload: &str, secret: &str) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    let mac = mac.chain_update(&message).finalize().into_bytes();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac))
}

fn key(kid: &str, alg: TicketAlg, public: &str) -> TicketKey {
    TicketKey { kid: kid.to_owned(), alg, key: Secret::new(public.to_owned()) }
}

fn app() -> App {
    let app: App = serde_json::from_str(r#"{"id": 1}"#).unwrap();
    let ticket_keys = vec![
        key("", TicketAlg::Hs256, SHARED),
        key("ed", TicketAlg::EdDsa, ED_PUBLIC),
        key("ec", TicketAlg::Es256, EC_PUBLIC),
    ];
    App { ticket_keys, ..app }
}

fn keys() -> TicketKeys {
    TicketKeys::new(&[app()], &BTreeMap::new(), None).unwrap()
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
