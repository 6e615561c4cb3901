//! Resume tickets: sealed by one link, opened by any of the unit, for ten minutes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use auth_core::keyring::LinkKeyring;
use auth_core::resume::{Claims, ResumeRefusal, open, seal};
use auth_core::revocation::Revocations;
use auth_core::token::{Rooms, cap, flag};
use proptest::prelude::*;
use proto::close::CloseCode;
use proto::control::Fact;
use proto::id::{AppId, DeviceId, RoomId, ViewerId};
use proto::item::Role;
use proto::keys::{LinkKeys, ResumeKey};
use proto::time::Wall;

const T: u32 = 600;
const EPOCH: u32 = 2_975_000;
const IAT_S: u32 = EPOCH * T + 590;

#[test]
fn any_link_of_the_unit_opens_what_another_sealed() {
    let text = sealed(&claims());

    let opened = open(&text, &keys("01"), &Revocations::new(1), at(IAT_S)).unwrap();

    assert_eq!(opened, claims());
    assert_eq!(opened.role(), Role::Moderator);
    assert!(text.starts_with("dmr1."));
}

#[test]
fn a_link_of_another_unit_does_not() {
    let opened = open(&sealed(&claims()), &keys("02"), &Revocations::new(1), at(IAT_S));

    assert_eq!(opened, Err(ResumeRefusal::Seal));
}

#[test]
fn it_lives_ten_minutes_across_the_end_of_its_epoch() {
    let open_at = |now_s| open(&sealed(&claims()), &keys("01"), &Revocations::new(1), at(now_s));

    assert_eq!(open_at(IAT_S - 31), Err(ResumeRefusal::Early { ahead_s: 31 }));
    assert!(open_at(IAT_S - 30).is_ok());
    assert!(open_at(IAT_S + 600).is_ok());
    assert_eq!(open_at(IAT_S + 601), Err(ResumeRefusal::Expired { ago_s: 1 }));
}

#[test]
fn what_came_of_a_void_master_is_void_whatever_sealed_it() {
    let mut revocations = Revocations::new(1);
    let text = sealed(&Claims { kid: 2, epoch: EPOCH - 1, ..claims() });
    assert!(open(&text, &keys("01"), &revocations, at(IAT_S)).is_ok());

    let void = Fact::Revoked { kid: 2, from_epoch: EPOCH - 1, to_epoch: EPOCH - 1 };
    revocations.handle(&void, at(IAT_S));

    let refusal = open(&text, &keys("01"), &revocations, at(IAT_S)).unwrap_err();
    assert_eq!(refusal, ResumeRefusal::Void { epoch: EPOCH - 1, kid: 2 });
}

#[test]
fn a_kick_and_a_void_epoch_refuse() {
    let mut revocations = Revocations::new(1);
    let kick = Fact::Kick {
        app: AppId(1),
        room: RoomId::parse("room-1").unwrap(),
        viewer: ViewerId::parse("user-42").unwrap(),
        not_before: at(IAT_S + 1),
    };
    let void = Fact::Revoked { kid: 3, from_epoch: EPOCH, to_epoch: EPOCH };
    let text = sealed(&claims());

    revocations.handle(&kick, at(IAT_S + 1));
    let kicked = open(&text, &keys("01"), &revocations, at(IAT_S + 1)).unwrap_err();
    revocations.handle(&void, at(IAT_S + 1));
    let in_void = open(&text, &keys("01"), &revocations, at(IAT_S + 1)).unwrap_err();

    assert_eq!(kicked, ResumeRefusal::Revoked);
    assert_eq!(kicked.close_code(), CloseCode::Kicked);
    assert_eq!(in_void, ResumeRefusal::Void { epoch: EPOCH, kid: 3 });
}

#[test]
fn a_key_that_is_gone_asks_for_a_token() {
    let none = LinkKeyring::new(&LinkKeys { interval_s: T, tokens: vec![], resumes: vec![] });

    let refused = open(&sealed(&claims()), &none.unwrap(), &Revocations::new(1), at(IAT_S));

    let expected = ResumeRefusal::NoKey { epoch: EPOCH, kid: 3 };
    assert_eq!(refused, Err(expected));
    assert!(expected.close_code().comes_back());
}

#[test]
fn nothing_of_it_can_be_read_on_the_way() {
    let text = sealed(&claims());

    let raw = String::from_utf8_lossy(text.as_bytes()).into_owned();

    assert!(!raw.contains("user-42") && !raw.contains("room-1"));
    assert_ne!(text, seal(&claims(), keys("01").sealing_key(at(IAT_S)).unwrap(), [8; 12]));
}

#[test]
fn every_flipped_bit_every_prefix_and_every_longer_text_is_refused() {
    let text = sealed(&claims());
    let keys = keys("01");
    let is_refused = |text: &str| open(text, &keys, &Revocations::new(1), at(IAT_S)).is_err();

    for at in 0..text.len() {
        for bit in 0..7 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            assert!(is_refused(&String::from_utf8(bytes).unwrap()), "byte {at}, bit {bit}");
        }
        assert!(is_refused(&text[..at]), "{at}");
    }
    assert!(is_refused(&format!("{text}A")));
    assert!(is_refused(&format!("{text}AAAA")));
    assert!(is_refused(&"dmr1.A".repeat(1000)));
}

#[test]
fn the_longest_claims_make_a_ticket_that_opens() {
    let room = |it: u8| RoomId::parse(&char::from(b'a' + it).to_string().repeat(64)).unwrap();
    let longest = Claims {
        account: ViewerId::parse(&"a".repeat(64)).unwrap(),
        device: Some(DeviceId::parse(&"d".repeat(32)).unwrap()),
        rooms: Rooms::try_from((0..8).map(room).collect::<Vec<_>>()).unwrap(),
        ..claims()
    };

    let text = sealed(&longest);

    assert_eq!(open(&text, &keys("01"), &Revocations::new(1), at(IAT_S)), Ok(longest));
}

proptest! {
    #[test]
    fn any_claims_come_back_as_they_were(
        account in "[ -~]{1,64}",
        device in proptest::option::of("[!-~]{1,32}"),
        rooms in proptest::collection::vec("[A-Za-z0-9_-]{1,64}", 0..=8),
        flags in any::<u8>(),
        caps in any::<u16>(),
        nonce in any::<[u8; 12]>(),
    ) {
        let rooms: Vec<RoomId> = rooms.iter().map(|it| RoomId::parse(it).unwrap()).collect();
        let claims = Claims {
            flags,
            caps,
            account: ViewerId::parse(&account).unwrap(),
            device: device.map(|it| DeviceId::parse(&it).unwrap()),
            rooms: Rooms::try_from(rooms).unwrap(),
            ..claims()
        };
        let keys = keys("01");

        let text = seal(&claims, keys.sealing_key(at(IAT_S)).unwrap(), nonce);

        prop_assert!(text.len() <= 1024);
        prop_assert_eq!(open(&text, &keys, &Revocations::new(1), at(IAT_S)), Ok(claims));
    }

    #[test]
    fn no_text_panics(text in "(dmr1\\.)?[A-Za-z0-9_-]{0,300}") {
        prop_assert!(open(&text, &keys("01"), &Revocations::new(1), at(IAT_S)).is_err());
    }
}

fn sealed(claims: &Claims) -> String {
    seal(claims, keys("01").sealing_key(at(IAT_S)).unwrap(), [7; 12])
}

/// The resume keys of a unit, three epochs of them.
fn keys(byte: &str) -> LinkKeyring {
    let key = |epoch| ResumeKey { epoch, kid: 3, key: byte.repeat(32) };
    let resumes = (EPOCH..EPOCH + 3).map(key).collect();
    LinkKeyring::new(&LinkKeys { interval_s: T, tokens: vec![], resumes }).unwrap()
}

fn claims() -> Claims {
    Claims {
        kid: 0,
        epoch: EPOCH,
        app: AppId(1),
        iat_s: IAT_S,
        flags: flag::MAY_SEND | flag::MODERATOR,
        caps: cap::VIP,
        account: ViewerId::parse("user-42").unwrap(),
        device: Some(DeviceId::parse("ios-1").unwrap()),
        rooms: RoomId::parse("room-1").unwrap().into(),
    }
}

fn at(unix_s: u32) -> Wall {
    Wall(u64::from(unix_s) * 1000)
}
