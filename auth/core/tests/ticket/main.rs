//! Tickets: what a business server can sign, and what nobody can.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod forged;
mod scene;

use std::collections::BTreeMap;

use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::revocation::Revocations;
use auth_core::ticket::{
    Audience, Claims, Ticket, TicketKeyError, TicketKeys, TicketRefusal, verify,
};
use auth_core::token::{cap, flag};
use proto::control::Fact;
use proto::id::{AppId, ViewerId};
use proto::item::Role;
use proto::time::Wall;
use scene::{
    APP, EC_PRIVATE, ED_PRIVATE, ED_PUBLIC, NOW_S, SHARED, app, claims, key, keys, room, sign,
    signer, verify_at,
};

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
