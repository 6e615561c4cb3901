//! New keys of business servers: both ends fit, and other programs write them the same.

use std::collections::BTreeMap;

use auth_core::app::{App, TicketAlg};
use auth_core::revocation::Revocations;
use auth_core::secret::Secret;
use auth_core::ticket::{Claims, Jwks, Pair, Signer, TicketKeys, verify};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proto::id::AppId;
use proto::time::Wall;

const APP: AppId = AppId(1);
const NOW_S: u64 = 1_785_000_000;
const ALGS: [TicketAlg; 3] = [TicketAlg::EdDsa, TicketAlg::Es256, TicketAlg::Hs256];

#[test]
fn what_one_end_signs_the_other_verifies_from_the_configuration_and_from_a_set() {
    for alg in ALGS {
        let pair = Pair::from_seed(alg, "2026-12", &[7; 32]).unwrap();
        let claims = Claims::viewer(APP, "user-42", "room-1", NOW_S, NOW_S + 3600);

        let text = Signer::new("2026-12", alg, &pair.private).unwrap().sign(&claims).unwrap();

        let jwks = Jwks::parse(pair.jwks.expose().as_bytes()).unwrap();
        assert!(jwks.kids().eq(["2026-12"]) && jwks.skipped().is_empty(), "{alg:?}");
        let by_set = TicketKeys::new(&[app(None)], &BTreeMap::from([(APP, jwks)]), None);
        let configured = TicketKeys::new(&[app(Some(&pair))], &BTreeMap::new(), None);
        for keys in [by_set, configured] {
            let now = Wall(NOW_S * 1000);
            assert!(verify(&text, &keys.unwrap(), &Revocations::new(1), now).is_ok(), "{alg:?}");
        }
    }
}

#[test]
fn pem_is_what_openssl_writes() {
    for (alg, seed_at, private, public) in [
        (
            TicketAlg::EdDsa,
            16,
            include_str!("keys/ed.private.pem"),
            include_str!("keys/ed.public.pem"),
        ),
        (
            TicketAlg::Es256,
            36,
            include_str!("keys/ec.private.pem"),
            include_str!("keys/ec.public.pem"),
        ),
    ] {
        let lines: String = private.lines().filter(|it| !it.starts_with('-')).collect();
        let der = STANDARD.decode(lines).unwrap();
        let seed = der[seed_at..].first_chunk().unwrap();

        let pair = Pair::from_seed(alg, "k", seed).unwrap();

        assert_eq!(pair.private.expose(), private);
        assert_eq!(pair.ticket_key.key.expose(), public);
    }
}

#[test]
fn other_seeds_are_other_keys() {
    for alg in ALGS {
        let pair = |seed| Pair::from_seed(alg, "k", &[seed; 32]).unwrap();

        assert_ne!(pair(1).private, pair(2).private);
        assert_ne!(pair(1).jwks, pair(2).jwks);
    }
}

#[test]
fn what_is_no_number_on_the_curve_is_no_key() {
    for seed in [[0; 32], [0xff; 32]] {
        assert!(Pair::from_seed(TicketAlg::Es256, "k", &seed).is_err());
    }
}

#[test]
fn nothing_of_a_key_is_printed() {
    let pair = Pair::from_seed(TicketAlg::Hs256, "k", &[0xab; 32]).unwrap();

    assert_eq!(format!("{pair:?} {:?}", pair.private), "Pair(…) Secret(…)");
}

fn app(pair: Option<&Pair>) -> App {
    App {
        id: APP,
        name: String::new(),
        ticket_keys: pair.iter().map(|it| it.ticket_key.clone()).collect(),
        jwks: std::path::PathBuf::new(),
        api_keys: vec![Secret::default()],
        policy: proto::policy::Policy::default(),
    }
}
