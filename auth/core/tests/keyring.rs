//! Keyrings: what is kept, for how long it lasts, and what is not taken in.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use auth_core::keyring::{AHEAD_MAX, KeyError, Keyring, LinkKeyring, epoch_of, epochs_back};
use auth_core::link_id;
use auth_core::room_key::RoomKey;
use auth_core::token::NoKey;
use proto::control::EpochFact;
use proto::id::{AppId, Gen, RoomId, UnitId};
use proto::keys::{LinkKeys, Master, Masters, TokenKey};
use proto::time::Wall;

const T: u32 = 600;
const EPOCH: u32 = 2_975_000;
const APP: AppId = AppId(1);

#[test]
fn the_horizon_ends_at_the_first_hole() {
    let mut keyring = keyring(&[0]);
    let now = at(EPOCH, 100);
    assert_eq!(keyring.horizon(now), Duration::ZERO);

    for epoch in [EPOCH, EPOCH + 1, EPOCH + 3] {
        keyring.handle(&fact(epoch), now).unwrap();
    }

    assert_eq!(keyring.horizon(now), Duration::from_secs(1100));
    assert_eq!(link(&keyring).horizon(now), Duration::from_secs(1100));
    assert_eq!(keyring.horizon(at(EPOCH + 1, 599)), Duration::from_secs(1));
    assert_eq!(keyring.horizon(at(EPOCH + 2, 0)), Duration::ZERO);
}

#[test]
fn an_epoch_of_masters_that_are_not_held_mints_nothing() {
    let mut keyring = keyring(&[0]);
    let foreign = EpochFact { kids: vec![9], ..fact(EPOCH) };

    keyring.handle(&foreign, at(EPOCH, 0)).unwrap();

    assert_eq!(keyring.horizon(at(EPOCH, 0)), Duration::ZERO);
    let key = keyring.minting_key(APP, &link_id("a:1"), EPOCH);
    assert_eq!(key.unwrap_err(), NoKey::Epoch { epoch: EPOCH });
}

#[test]
fn the_newest_master_of_the_epoch_mints_and_the_older_still_verifies() {
    let mut keyring = keyring(&[1, 0]);
    let rotated = EpochFact { kids: vec![1, 0], ..fact(EPOCH + 1) };

    keyring.handle(&fact(EPOCH), at(EPOCH, 0)).unwrap();
    keyring.handle(&rotated, at(EPOCH, 0)).unwrap();

    let kid = |epoch| keyring.minting_key(APP, &link_id("a:1"), epoch).unwrap().kid;
    assert_eq!((kid(EPOCH), kid(EPOCH + 1)), (0, 1));
    let keys = keyring.link_keys(UnitId(1), &["a:1".to_owned()], &[APP]);
    let named: Vec<_> = keys.tokens.iter().map(|it| (it.epoch, it.kid)).collect();
    assert_eq!(named, [(EPOCH, 0), (EPOCH + 1, 1), (EPOCH + 1, 0)]);
}

#[test]
fn an_epoch_may_gain_masters_and_changes_in_nothing_else() {
    let mut keyring = keyring(&[1, 0]);
    let now = at(EPOCH, 0);
    keyring.handle(&fact(EPOCH), now).unwrap();

    let more = EpochFact { kids: vec![1, 0], ..fact(EPOCH) };
    assert_eq!(keyring.handle(&more, now), Ok(()));
    let changed = Err(KeyError::Changed { epoch: EPOCH });
    assert_eq!(keyring.handle(&fact(EPOCH), now), changed);
    let random = EpochFact { random: "a6".repeat(32), ..more.clone() };
    assert_eq!(keyring.handle(&random, now), changed);
    assert_eq!(keyring.handle(&EpochFact { alg: 2, ..more.clone() }, now), changed);

    assert_eq!(keyring.facts(), [more]);
}

#[test]
fn a_void_master_mints_nothing_and_links_get_no_keys_of_it() {
    let mut keyring = keyring(&[1, 0]);
    let now = at(EPOCH, 0);
    for epoch in EPOCH..=EPOCH + 2 {
        keyring.handle(&EpochFact { kids: vec![0, 1], ..fact(epoch) }, now).unwrap();
    }
    keyring.handle(&fact(EPOCH + 3), now).unwrap();

    keyring.revoke(0, EPOCH + 1, EPOCH + 3);

    let kid = |epoch| keyring.minting_key(APP, &link_id("a:1"), epoch).map(|it| it.kid);
    assert_eq!([EPOCH, EPOCH + 1, EPOCH + 2].map(kid), [Ok(0), Ok(1), Ok(1)]);
    assert_eq!(kid(EPOCH + 3), Err(NoKey::Epoch { epoch: EPOCH + 3 }));
    assert_eq!(keyring.horizon(now), Duration::from_secs(1800));
    let needed = keyring.needed_at(now);
    let keys = needed.link_keys(UnitId(1), &["a:1".to_owned()], &[APP]);
    let named: Vec<_> = keys.tokens.iter().map(|it| (it.epoch, it.kid)).collect();
    assert_eq!(named, [(EPOCH, 0), (EPOCH, 1), (EPOCH + 1, 1), (EPOCH + 2, 1)]);
    assert_eq!(needed.link_keys_max(1, 1), 8);
}

#[test]
fn masters_that_an_epoch_names_and_nobody_has_brought_are_missed() {
    let mut keyring = keyring(&[0]);
    let now = at(EPOCH, 0);
    keyring.handle(&EpochFact { kids: vec![7], ..fact(EPOCH - 2) }, now).unwrap();
    keyring.handle(&EpochFact { kids: vec![1, 0], ..fact(EPOCH) }, now).unwrap();

    assert_eq!(keyring.missing_masters(now).into_iter().collect::<Vec<_>>(), [1]);
    keyring.replace_masters(&masters(&[1, 0])).unwrap();
    assert!(keyring.missing_masters(now).is_empty());
}

#[test]
fn a_room_s_key_is_that_of_the_minting_master_and_void_ones_are_gone() {
    let mut keyring = keyring(&[2, 1, 0]);
    let now = at(EPOCH, 0);
    let kids = |keyring: &Keyring| {
        let keys = keyring.room_keys(APP, &RoomId::parse("paid").unwrap(), Gen(3), now);
        keys.iter().map(RoomKey::kid).collect::<Vec<_>>()
    };
    let before = kids(&keyring);

    keyring.handle(&EpochFact { kids: vec![1, 0], ..fact(EPOCH) }, now).unwrap();
    let minting = kids(&keyring);
    keyring.revoke(1, EPOCH, EPOCH + 9);

    assert_eq!((before, minting), (vec![2, 1, 0], vec![1, 2, 0]));
    assert_eq!(kids(&keyring), [0, 2]);
}

/// A link that has not fetched the new master yet must open what others seal.
#[test]
fn resume_tickets_are_sealed_with_the_master_that_mints() {
    let mut keyring = keyring(&[2, 1, 0]);
    let reserve = EpochFact { kids: vec![1, 2], ..fact(EPOCH) };
    keyring.handle(&reserve, at(EPOCH, 0)).unwrap();

    let sealing = format!("{:?}", link(&keyring).sealing_key(at(EPOCH, 0)));

    assert!(sealing.contains("kid 1"), "{sealing}");
}

#[test]
fn new_masters_serve_the_epochs_that_are_known() {
    let mut keyring = keyring(&[0]);
    keyring.handle(&EpochFact { kids: vec![1], ..fact(EPOCH) }, at(EPOCH, 0)).unwrap();

    keyring.replace_masters(&masters(&[1, 0])).unwrap();

    assert_eq!(keyring.minting_key(APP, &link_id("a:1"), EPOCH).unwrap().kid, 1);
}

#[test]
fn a_link_gets_the_epochs_it_can_need_and_no_others() {
    let mut keyring = keyring(&[0]);
    for epoch in EPOCH - 5..=EPOCH + 20 {
        keyring.handle(&fact(epoch), at(EPOCH, 0)).unwrap();
    }

    let needed = keyring.needed_at(at(EPOCH, 599));

    let keys = needed.link_keys(UnitId(1), &["a:1".to_owned()], &[APP]);
    let epochs: Vec<u32> = keys.tokens.iter().map(|it| it.epoch).collect();
    assert_eq!(epochs, (EPOCH - 1..=EPOCH + AHEAD_MAX).collect::<Vec<_>>());
    assert_eq!(needed.link_keys_max(3, 2), epochs.len() * 12);
}

#[test]
fn epochs_far_from_now_give_way() {
    let mut keyring = keyring(&[0]);
    let now = at(EPOCH, 0);
    let last = EPOCH + 6;
    for epoch in EPOCH - 200..=last {
        keyring.handle(&fact(epoch), now).unwrap();
    }
    let far = fact(u32::MAX);

    let outside = keyring.handle(&far, now);

    assert_eq!(outside, Err(KeyError::Outside { epoch: far.epoch, current: EPOCH }));
    let kept = |epoch| keyring.minting_key(APP, &link_id("a:1"), epoch).is_ok();
    assert!((last - 63..=last).all(kept));
    assert!(!kept(last - 64));
}

#[test]
fn short_epochs_are_kept_for_as_long_as_a_resume_ticket_lives() {
    assert_eq!(epochs_back(600), 1);
    assert_eq!(epochs_back(3600), 1);
    assert_eq!(epochs_back(240), 3);
}

#[test]
fn facts_that_cannot_be_used_are_refused() {
    let mut keyring = keyring(&[0]);
    let mut check = |fact: EpochFact, expected| {
        assert_eq!(keyring.handle(&fact, at(EPOCH, 0)), Err(expected));
    };

    let found = 300;
    check(
        EpochFact { interval_s: found, ..fact(EPOCH) },
        KeyError::Interval { expected: T, found },
    );
    check(EpochFact { alg: 4, ..fact(EPOCH) }, KeyError::Alg { alg: 4 });
    check(EpochFact { random: "00".to_owned(), ..fact(EPOCH) }, KeyError::Hex);
    check(EpochFact { kids: vec![0; 9], ..fact(EPOCH) }, KeyError::TooManyMasters { masters: 9 });
}

#[test]
fn masters_and_link_keys_that_cannot_be_used_are_refused() {
    let key = |alg, key: &str| TokenKey {
        app: APP,
        epoch: EPOCH,
        kid: 0,
        alg,
        address: "a:1".to_owned(),
        key: key.to_owned(),
    };
    let link_keys = |interval_s, tokens| {
        LinkKeyring::new(&LinkKeys { interval_s, tokens, resumes: vec![] }).map(|_| ())
    };
    let good = "0a".repeat(32);

    let nine = Keyring::new(&masters(&[0, 1, 2, 3, 4, 5, 6, 7, 8])).map(|_| ());
    let too_many = link_keys(T, vec![key(1, &good); 65_537]);

    assert_eq!(nine, Err(KeyError::TooManyMasters { masters: 9 }));
    assert_eq!(link_keys(0, vec![]), Err(KeyError::NoInterval));
    assert_eq!(link_keys(T, vec![key(9, &good)]), Err(KeyError::Alg { alg: 9 }));
    assert_eq!(link_keys(T, vec![key(1, "0a")]), Err(KeyError::Hex));
    assert_eq!(too_many, Err(KeyError::TooManyKeys { keys: 65_537, max: 65_536 }));
    assert_eq!(link_keys(T, vec![key(1, &good)]), Ok(()));
}

#[test]
fn nothing_secret_is_printed() {
    let mut keyring = keyring(&[0]);
    keyring.handle(&fact(EPOCH), at(EPOCH, 0)).unwrap();
    let minting = keyring.minting_key(APP, &link_id("a:1"), EPOCH).unwrap();

    let link = link(&keyring);
    let printed = format!("{keyring:?} {link:?} {minting:?} {:?}", link.sealing_key(at(EPOCH, 0)));

    let digits = printed.chars().filter(char::is_ascii_hexdigit).count();
    assert!(digits < 120, "{printed}");
    assert!(!printed.contains("c0c0") && !printed.contains("a5a5"), "{printed}");
}

fn keyring(kids: &[u8]) -> Keyring {
    Keyring::new(&masters(kids)).unwrap()
}

fn link(keyring: &Keyring) -> LinkKeyring {
    let keys = keyring.link_keys(UnitId(1), &["a:1".to_owned()], &[APP]);
    LinkKeyring::new(&keys).unwrap()
}

fn masters(kids: &[u8]) -> Masters {
    let masters = kids.iter().map(|&kid| Master { kid, key: "c0".repeat(32) }).collect();
    Masters { interval_s: T, masters }
}

fn fact(epoch: u32) -> EpochFact {
    EpochFact { epoch, interval_s: T, alg: 1, random: "a5".repeat(32), kids: vec![0] }
}

fn at(epoch: u32, second: u32) -> Wall {
    let now = Wall(u64::from(epoch * T + second) * 1000);
    assert_eq!(epoch_of(now, T), epoch);
    now
}
