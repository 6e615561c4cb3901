//! Tokens through the public verbs: what passes, and the one reason each other thing is refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod forged;
mod world;

use auth_core::link_id;
use auth_core::mac::{self, Alg, BLOCK_BYTES, Padded};
use auth_core::policy::Policies;
use auth_core::replay::Replays;
use auth_core::token::{
    self, Claims, KeyName, KeySource, NoKey, Rooms, Scope, TokenRefusal, explain, flag, verify,
};
use proptest::prelude::*;
use proto::close::CloseCode;
use proto::control::Fact;
use proto::id::{AppId, DeviceId, RoomId, ViewerId};
use proto::policy::{Policy, PolicyFact, SKEW_S_MAX};

use world::{ADDRESS, EPOCH, IAT_S, OTHER_ADDRESS, T, World, any_claims, at, claims};

#[test]
fn the_printed_vector_is_minted_and_verified() {
    let world = World::new(Alg::HmacSha256);

    let text = world.keyring.mint(&claims()).unwrap();

    assert_eq!(text.len(), "dm1.".len() + ((74 + 32) * 4_usize).div_ceil(3));
    assert_eq!(world.verify_at(&text, IAT_S), Ok(claims()));
}

#[test]
fn every_algorithm_works_and_none_passes_for_another() {
    for &alg in Alg::ALL {
        let text = World::new(alg).keyring.mint(&claims()).unwrap();

        assert_eq!(World::new(alg).verify_at(&text, IAT_S), Ok(claims()));
        for &other in Alg::ALL.iter().filter(|&&it| it != alg) {
            let refused = World::new(other).verify_at(&text, IAT_S);
            assert_eq!(refused, Err(TokenRefusal::Alg { alg: alg.code() }));
        }
    }
}

#[test]
fn the_longest_claims_make_a_token_that_passes() {
    let world = World::new(Alg::HmacSha512_256);
    let room = |it: u8| RoomId::parse(&char::from(b'a' + it).to_string().repeat(64)).unwrap();
    let longest = Claims {
        account: ViewerId::parse(&"a".repeat(64)).unwrap(),
        device: Some(DeviceId::parse(&"d".repeat(32)).unwrap()),
        rooms: Rooms::try_from((0..8).map(room).collect::<Vec<_>>()).unwrap(),
        ..claims()
    };

    let text = world.keyring.mint(&longest).unwrap();

    assert_eq!(world.verify_at(&text, IAT_S), Ok(longest));
}

#[test]
fn what_is_no_token_says_why() {
    let world = World::new(Alg::HmacSha256);
    let check = |text: &str, expected| assert_eq!(world.verify_at(text, IAT_S), Err(expected));
    let valid = world.keyring.mint(&claims()).unwrap();

    check(&format!("dm1.{}", "A".repeat(1021)), TokenRefusal::TooLong { bytes: 1025 });
    check("", TokenRefusal::Prefix);
    check(&valid.replacen("dm1.", "dm2.", 1), TokenRefusal::Prefix);
    check("dm1.+/+/", TokenRefusal::Encoding);
    check("dm1.AB", TokenRefusal::Encoding);
    check(&format!("dm1.{}", "A".repeat(1020)), TokenRefusal::Encoding);
    check("dm1.", TokenRefusal::Malformed);
    check("dm1.AQ", TokenRefusal::Malformed);
    check(&format!("dm1.Ag{}", "A".repeat(142)), TokenRefusal::Version { version: 2 });
}

#[test]
fn a_missing_key_says_which() {
    let world = World::new(Alg::HmacSha256);
    let refusal = |claims: &Claims, epoch, kid| {
        let key = token::Key { epoch, kid, mac: mac::Key::new(Alg::HmacSha256, &[1; 32]) };
        let text = token::mint(claims, &key);
        verify(&text, &world.scope(), &mut Replays::new(1), at(IAT_S)).unwrap_err()
    };
    let elsewhere = Claims { link: link_id(OTHER_ADDRESS), ..claims() };
    let foreign = Claims { app: AppId(9), ..claims() };

    let no_epoch = refusal(&claims(), EPOCH + 7, 0);
    let no_master = refusal(&claims(), EPOCH, 5);
    let no_link = refusal(&elsewhere, EPOCH, 0);
    let no_app = refusal(&foreign, EPOCH, 0);

    assert_eq!(no_epoch, NoKey::Epoch { epoch: EPOCH + 7 }.into());
    assert_eq!(no_master, NoKey::Master { epoch: EPOCH, kid: 5 }.into());
    assert_eq!(no_link, NoKey::Link.into());
    assert_eq!(no_app, NoKey::App { app: AppId(9) }.into());
    for refusal in [no_epoch, no_master, no_link, no_app] {
        assert_eq!(refusal.close_code(), CloseCode::TokenInvalid);
    }
    assert!(CloseCode::TokenInvalid.comes_back());
    assert_eq!(refusal(&claims(), EPOCH, 0), TokenRefusal::Mac);
}

#[test]
fn a_token_for_another_listener_of_the_node_is_refused() {
    let world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();
    let listener = [link_id(OTHER_ADDRESS)];

    let scope = Scope { links: &listener, ..world.scope() };
    let refused = verify(&text, &scope, &mut Replays::new(1), at(IAT_S));

    assert_eq!(refused, Err(TokenRefusal::Elsewhere));
    assert_eq!(TokenRefusal::Elsewhere.close_code(), CloseCode::TokenElsewhere);
}

#[test]
fn a_key_of_another_epoch_does_not_stretch_a_token() {
    let world = World::new(Alg::HmacSha256);
    let late = Claims { iat_s: IAT_S + T, ..claims() };
    let key = world.keyring.minting_key(AppId(1), &late.link, EPOCH).unwrap();

    let refused = world.verify_at(&token::mint(&late, &key), IAT_S + T);

    assert_eq!(refused, Err(TokenRefusal::EpochMismatch { minted: EPOCH + 1, named: EPOCH }));
}

#[test]
fn without_a_policy_a_token_counts_from_30_s_before_its_time_to_30_s_after() {
    let world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();

    let too_early = world.verify_at(&text, IAT_S - 31);
    let too_late = world.verify_at(&text, IAT_S + 91);

    assert_eq!(too_early, Err(TokenRefusal::Early { ahead_s: 31 }));
    assert!(world.verify_at(&text, IAT_S - 30).is_ok());
    assert!(world.verify_at(&text, IAT_S + 90).is_ok());
    assert_eq!(too_late, Err(TokenRefusal::Expired { ago_s: 31 }));
}

#[test]
fn the_policy_of_the_room_says_how_far_clocks_may_be_apart() {
    let mut world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();

    for (version, room, skew_s) in [(1, None, 60), (2, Some("room-1"), 5), (3, Some("room-1"), 0)] {
        let room = room.map(|it| RoomId::parse(it).unwrap());
        let policy = Some(Policy { skew_s, ..Policy::default() });
        let fact = PolicyFact { app: AppId(1), room, version, policy };
        world.policies.handle(&Fact::Policy(fact));

        let skew_s = u32::from(skew_s);
        let ahead_s = u64::from(skew_s) + 1;
        let too_early = world.verify_at(&text, IAT_S - skew_s - 1);
        let too_late = world.verify_at(&text, IAT_S + 60 + skew_s + 1);
        assert_eq!(too_early, Err(TokenRefusal::Early { ahead_s }));
        assert!(world.verify_at(&text, IAT_S - skew_s).is_ok());
        assert!(world.verify_at(&text, IAT_S + 60 + skew_s).is_ok());
        assert_eq!(too_late, Err(TokenRefusal::Expired { ago_s: ahead_s }));
    }
}

#[test]
fn a_skew_that_grows_does_not_let_a_used_token_in_again() {
    let world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();
    let with_skew = |skew_s| {
        let policy = Some(Policy { skew_s, ..Policy::default() });
        let mut policies = Policies::default();
        let fact = PolicyFact { app: AppId(1), room: None, version: 1, policy };
        policies.handle(&Fact::Policy(fact));
        policies
    };
    let (narrow, wide) = (with_skew(0), with_skew(SKEW_S_MAX));
    let mut replays = Replays::new(10);

    let scope = Scope { policies: &narrow, ..world.scope() };
    let first = verify(&text, &scope, &mut replays, at(IAT_S));
    let scope = Scope { policies: &wide, ..world.scope() };
    let last_s = IAT_S + 60 + u32::from(SKEW_S_MAX);
    let again = verify(&text, &scope, &mut replays, at(last_s));

    assert!(first.is_ok());
    assert_eq!(again, Err(TokenRefusal::Replayed));
}

#[test]
fn no_token_lives_longer_than_two_minutes() {
    let world = World::new(Alg::HmacSha256);
    let mint = |ttl_s| world.keyring.mint(&Claims { ttl_s, ..claims() }).unwrap();

    let refused = world.verify_at(&mint(121), IAT_S);

    assert!(world.verify_at(&mint(120), IAT_S).is_ok());
    assert_eq!(refused, Err(TokenRefusal::TtlTooLong { ttl_s: 121 }));
}

#[test]
fn a_kick_and_a_void_epoch_refuse() {
    let mut world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();
    let again = Claims { iat_s: IAT_S + 2, ..claims() };
    let kick = Fact::Kick {
        app: AppId(1),
        room: RoomId::parse("room-1").unwrap(),
        viewer: ViewerId::parse("user-42").unwrap(),
        not_before: at(IAT_S + 1),
    };
    let void = Fact::Revoked { kid: 0, from_epoch: EPOCH, to_epoch: EPOCH };

    world.revocations.handle(&kick, at(IAT_S + 1));
    let kicked = world.verify_at(&text, IAT_S + 2).unwrap_err();
    let after = world.verify_at(&world.keyring.mint(&again).unwrap(), IAT_S + 2);
    world.revocations.handle(&void, at(IAT_S + 2));
    let in_void = world.verify_at(&text, IAT_S + 2);

    assert_eq!(kicked, TokenRefusal::Revoked);
    assert_eq!(kicked.close_code(), CloseCode::Kicked);
    assert_eq!(after, Ok(again));
    assert_eq!(in_void, Err(TokenRefusal::Void { epoch: EPOCH, kid: 0 }));
}

#[test]
fn a_single_use_token_opens_once_and_another_often() {
    let world = World::new(Alg::HmacSha256);
    let once = world.keyring.mint(&claims()).unwrap();
    let often = Claims { flags: flag::MAY_SEND, jti: [9; 16], ..claims() };
    let often = world.keyring.mint(&often).unwrap();
    let mut replays = Replays::new(1);
    let mut verify_at =
        |text: &str, now_s| verify(text, &world.scope(), &mut replays, at(now_s)).map(|it| it.jti);

    assert!(verify_at(&once, IAT_S).is_ok());
    assert_eq!(verify_at(&once, IAT_S), Err(TokenRefusal::Replayed));
    assert_eq!(verify_at(&once, IAT_S + 90), Err(TokenRefusal::Replayed));
    assert!(verify_at(&often, IAT_S).is_ok());
    assert!(verify_at(&often, IAT_S).is_ok());
}

#[test]
fn a_full_memory_refuses_new_single_use_tokens() {
    let world = World::new(Alg::HmacSha256);
    let mint = |jti| world.keyring.mint(&Claims { jti: [jti; 16], ..claims() }).unwrap();
    let mut replays = Replays::new(1);
    let mut verify_now = |text: &str| verify(text, &world.scope(), &mut replays, at(IAT_S));

    let first = verify_now(&mint(1));
    let second = verify_now(&mint(2)).unwrap_err();

    assert!(first.is_ok());
    assert_eq!(second, TokenRefusal::ReplaysFull);
    assert_eq!(second.close_code(), CloseCode::Full);
}

#[test]
fn a_refused_token_is_not_marked_as_used() {
    let world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();
    let mut replays = Replays::new(1);

    let early = verify(&text, &world.scope(), &mut replays, at(IAT_S - 31));
    let then = verify(&text, &world.scope(), &mut replays, at(IAT_S));

    assert!(early.is_err());
    assert!(then.is_ok());
}

#[test]
fn an_explanation_shows_the_fields_and_the_reason() {
    let world = World::new(Alg::HmacSha256);
    let text = world.keyring.mint(&claims()).unwrap();

    let valid = explain(&text, &world.scope(), at(IAT_S)).to_string();
    let expired = explain(&text, &world.scope(), at(IAT_S + 100)).to_string();
    let damaged = explain("dm1.AQ", &world.scope(), at(IAT_S)).to_string();

    assert!(valid.contains("account  user-42\n") && valid.ends_with("\nvalid"), "{valid}");
    let reason = "\nrefused: the token expired 40 s ago (code 3008 token_expired)";
    assert!(expired.contains("rooms    room-1\n") && expired.ends_with(reason), "{expired}");
    assert_eq!(damaged, "refused: the token's fields are damaged (code 3013 token_invalid)");
}

#[test]
fn a_link_and_the_masters_hold_the_same_key() {
    let world = World::new(Alg::HmacSm3);
    let name = KeyName { epoch: EPOCH, kid: 0, app: AppId(1), link: link_id(ADDRESS) };
    let mut room = [[0; BLOCK_BYTES]; 1];
    let message = Padded::new(&mut room, 1);
    let mac = |key: &mac::Key| key.sign(&message);

    let by_link = world.link.with_key(&name, mac).unwrap();
    let by_masters = world.keyring.with_key(&name, mac).unwrap();

    assert_eq!(by_link, by_masters);
}

proptest! {
    #[test]
    fn any_claims_come_back_as_they_were(claims in any_claims(), alg in 0..3_usize) {
        let world = World::new(Alg::ALL[alg]);

        let text = world.keyring.mint(&claims).unwrap();

        prop_assert!(text.len() <= 1024);
        prop_assert_eq!(world.verify_at(&text, claims.iat_s), Ok(claims));
    }
}
