//! What is signed, and what is not.

use channel::national::certs::{
    Authority, CertsError, Key, LIFE_DAYS_MAX, Life, NAMES_MAX, Names, Request,
};
use proto::time::Wall;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::pki::{Pki, fresh_key, now, year};

#[test]
fn the_same_arguments_give_the_same_certificate_and_others_another_number() {
    let life = Life { now: Wall(1_790_000_000_000), days: 30 };
    let make = |names: &[&str], life| {
        let authority = Authority::create(key(1), "An authority", life).unwrap();
        authority.issue(&key(2), &names_of(names), life).unwrap()
    };
    let one = make(&["a.example"], life);

    assert_eq!(one, make(&["a.example"], life));
    let later = Life { now: Wall(life.now.0 + 1000), ..life };
    let numbers =
        [one, make(&["b.example"], life), make(&["a.example"], later)].map(|it| serial(&it));
    assert_ne!(numbers[0], numbers[1]);
    assert_ne!(numbers[0], numbers[2]);
    assert!(numbers.iter().all(|it| it.len() == 16 && it[0] < 0x80));
}

#[test]
fn a_key_comes_back_from_its_pem() {
    let key = key(3);

    let again = Key::from_pem(&key.to_pem().unwrap()).unwrap();

    assert_eq!(*again.to_pem().unwrap(), *key.to_pem().unwrap());
    assert_eq!(format!("{key:?}"), "Key(…)");
}

#[test]
fn an_authority_comes_back_from_its_files_and_signs_as_before() {
    let pki = Pki::new();
    let (pem, key_pem) = (pki.authority.to_pem().unwrap(), pki.authority.key().to_pem().unwrap());

    let again = Authority::from_pem(&pem, &key_pem).unwrap();

    let names = names_of(&["localhost"]);
    let life = Life { days: 30, ..year() };
    let expected = pki.authority.issue(&pki.server_key, &names, life).unwrap();
    assert_eq!(again.issue(&pki.server_key, &names, life).unwrap(), expected);
}

#[test]
fn a_signed_request_serves_as_a_certificate_made_at_once() {
    let mut pki = Pki::new();
    let names = names_of(&["requested.example", "127.0.0.9"]);
    let request_pem = Request::create(&pki.server_key, &names).unwrap();

    let request = Request::from_pem(&request_pem).unwrap();
    pki.server_pem = pki.authority.sign(&request, Life { days: 7, ..year() }).unwrap();

    assert_eq!(request.names(), &names);
    assert!(pki.connect("requested.example").is_ok());
    assert!(pki.connect("127.0.0.9").is_ok());
    assert!(pki.connect("localhost").is_err());
}

#[test]
fn a_name_too_long_for_a_subject_still_stands_in_the_certificate() {
    let long = format!("{}.example", ["abcdefgh"; 9].join("."));
    assert!(long.len() > 64);

    assert!(Pki::with_names(&[&long]).connect(&long).is_ok());
}

#[test]
fn names_that_no_server_can_have_are_refused() {
    for name in
        ["", " ", "a b", "a,b", "CN=x", "a..b", "a.", "*.*.x", "*", "a.*.b", "1.2.3.4/8", "[::1]"]
    {
        let refused = Names::new([name]);
        assert!(matches!(refused, Err(CertsError::Name { .. })), "{name:?}");
    }
    let many = |count: usize| Names::new((0..count).map(|it| format!("n{it}.example")));
    assert!(matches!(many(0), Err(CertsError::Names { names: 0 })));
    assert!(many(NAMES_MAX).is_ok());
    assert!(matches!(many(NAMES_MAX + 1), Err(CertsError::Names { .. })));
}

#[test]
fn an_authority_has_a_plain_name() {
    let make = |name: &str| Authority::create(key(1), name, year());

    assert!(make("Our authority 1").is_ok());
    assert!(make("直播 证书").is_ok());
    assert!(make(&"x".repeat(64)).is_ok());
    for name in ["", " x", "x ", "a,O=b", "a+b", "a\\b", "#00", "a\n", &"x".repeat(65)] {
        let refused = make(name);
        assert!(matches!(refused, Err(CertsError::AuthorityName { .. })), "{name:?}");
    }
}

#[test]
fn a_life_has_an_end_and_none_outlives_the_authority() {
    let make = |days| Authority::create(key(1), "A", Life { now: now(), days });

    assert!(matches!(make(0), Err(CertsError::Days { days: 0 })));
    assert!(make(LIFE_DAYS_MAX).is_ok());
    assert!(matches!(make(LIFE_DAYS_MAX + 1), Err(CertsError::Days { .. })));

    let pki = Pki::new();
    let longer = Life { days: 366, ..year() };
    let refused = pki.authority.issue(&key(2), &names_of(&["a.example"]), longer);
    assert!(matches!(refused, Err(CertsError::OutlivesAuthority { .. })));
}

#[test]
fn a_server_is_no_authority_and_a_foreign_key_is_noticed() {
    let pki = Pki::new();
    let server_key_pem = pki.server_key.to_pem().unwrap();

    let server = Authority::from_pem(&pki.server_pem, &server_key_pem);
    let foreign = Authority::from_pem(&pki.authority.to_pem().unwrap(), &server_key_pem);

    assert!(matches!(server, Err(CertsError::NotAuthority)));
    assert!(matches!(foreign, Err(CertsError::OtherKey)));
}

#[test]
fn certificates_and_keys_of_another_kind_are_refused() {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (pem, key_pem) = (issued.cert.pem(), issued.signing_key.serialize_pem());
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let request = params.serialize_request(&issued.signing_key).unwrap().pem().unwrap();

    assert!(matches!(Key::from_pem(&key_pem), Err(CertsError::Key)));
    assert!(matches!(Authority::from_pem(&pem, &key_pem), Err(CertsError::NotAuthority)));
    assert!(matches!(Request::from_pem(&request), Err(CertsError::RequestSignature)));
}

#[test]
fn text_without_bound_is_not_read() {
    let long = "x".repeat(64 * 1024 + 1);

    assert!(matches!(Key::from_pem(&long), Err(CertsError::TooLong { .. })));
    assert!(matches!(Request::from_pem(&long), Err(CertsError::TooLong { .. })));
    assert!(matches!(Authority::from_pem(&long, ""), Err(CertsError::TooLong { .. })));
}

#[test]
fn the_largest_request_can_be_read() {
    let names: Vec<String> = (0..NAMES_MAX)
        .map(|it| format!("{it:02}{}.example", ".abcdefghijklmnopqrstuvwxyz".repeat(8)))
        .collect();
    let names = Names::new(names).unwrap();

    let request = Request::create(&fresh_key(), &names).unwrap();

    assert_eq!(Request::from_pem(&request).unwrap().names(), &names);
}

fn key(number: u8) -> Key {
    Key::from_seed(&[number; 32]).unwrap()
}

fn names_of(names: &[&str]) -> Names {
    Names::new(names.iter().copied()).unwrap()
}

fn serial(pem: &str) -> Vec<u8> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let certificate = Certificate::from_der(&der).unwrap();
    certificate.tbs_certificate().serial_number().as_bytes().to_vec()
}
