//! What a peer can send to each parser: nothing panics, and only the one right form is accepted.

use std::sync::Arc;
use std::time::Duration;

use channel::national::certs::{Authority, Key, Names, Request};
use channel::national::provider;
use proptest::prelude::*;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
    ServerName, SignatureVerificationAlgorithm, UnixTime,
};
use rustls::{Error, PeerMisbehaved};
use x509_cert::der::pem::{LineEnding, decode_vec, encode_string};

use crate::pki::{Pki, now, roots, year};

#[test]
fn both_halves_of_an_exchange_give_the_same_secret() {
    let group = provider().kx_groups[0];
    let (one, other) = (group.start().unwrap(), group.start().unwrap());
    let (one_share, other_share) = (one.pub_key().to_vec(), other.pub_key().to_vec());

    let one_secret = one.complete(&other_share).unwrap();
    let other_secret = other.complete(&one_share).unwrap();

    assert_eq!((one_share.len(), one_share[0]), (65, 4));
    assert_eq!(one_secret.secret_bytes(), other_secret.secret_bytes());
    assert_eq!(one_secret.secret_bytes().len(), 32);
}

#[test]
fn shares_that_are_no_uncompressed_point_of_the_curve_are_refused() {
    let share = provider().kx_groups[0].start().unwrap().pub_key().to_vec();
    let (x, y) = (&share[1..33], &share[33..]);
    let parity = y[31] & 1;
    let mut off_curve = share.clone();
    off_curve[64] ^= 1;
    // p = 2^256 - 2^224 - 2^96 + 2^64 - 1 (GB/T 32918.5): as a coordinate it would mean zero.
    let p =
        hex::decode("FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000FFFFFFFFFFFFFFFF").unwrap();

    refuse_share("compressed", &[&[2 + parity], x].concat());
    refuse_share("compressed, other half", &[&[3 - parity], x].concat());
    refuse_share("hybrid", &[&[6 + parity], x, y].concat());
    refuse_share("hybrid, other half", &[&[7 - parity], x, y].concat());
    refuse_share("compact", &[&[5], x].concat());
    refuse_share("identity", &[0]);
    refuse_share("identity, padded", &[0; 65]);
    refuse_share("zero coordinates", &[&[4][..], &[0; 64]].concat());
    refuse_share("coordinates not reduced", &[&[4][..], &p, y].concat());
    refuse_share("off the curve", &off_curve);
    refuse_share("without tag", &share[1..]);
    refuse_share("cut", &share[..64]);
    refuse_share("one byte more", &[&share[..], &[0]].concat());
    refuse_share("empty", &[]);
}

#[test]
fn a_private_key_out_of_range_is_refused() {
    let good = Key::from_seed(&[1; 32]).unwrap().to_pem().unwrap();
    let (_, der) = decode_vec(good.as_bytes()).unwrap();
    // The scalar stands behind its OCTET STRING header, 04 20, in the inner ECPrivateKey.
    let at = der.windows(3).position(|it| it == [1, 0x04, 0x20]).unwrap() + 3;
    let order = "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFF7203DF6B21C6052B53BBF40939D54123";

    for scalar in [vec![0; 32], hex::decode(order).unwrap(), vec![0xFF; 32], vec![2; 32]] {
        let mut wrong = der.clone();
        wrong[at..at + 32].copy_from_slice(&scalar);
        assert!(!is_key(PrivatePkcs8KeyDer::from(wrong).into()), "{}", hex::encode(scalar));
    }
    assert!(is_key(PrivatePkcs8KeyDer::from(der).into()));
}

#[test]
fn every_flipped_bit_of_a_request_is_refused() {
    let request = Request::create(&Key::from_seed(&[1; 32]).unwrap(), &names()).unwrap();
    let (_, der) = decode_vec(request.as_bytes()).unwrap();

    for bit in 0..der.len() * 8 {
        let mut flipped = der.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let pem = pem("CERTIFICATE REQUEST", &flipped);
        assert!(Request::from_pem(&pem).is_err(), "bit {bit}");
    }
    assert!(Request::from_pem(&pem("CERTIFICATE REQUEST", &der)).is_ok());
}

#[test]
fn every_flipped_byte_of_a_certificate_is_refused() {
    let pki = Pki::new();
    let verifier = Verifier::new(&pki);
    let good = CertificateDer::from_pem_slice(pki.server_pem.as_bytes()).unwrap();

    assert!(verifier.accepts(good.to_vec()));
    for at in 0..good.len() {
        let mut flipped = good.to_vec();
        flipped[at] ^= 1;
        assert!(!verifier.accepts(flipped), "byte {at}");
    }
}

proptest! {
    #[test]
    fn any_share_is_refused_without_panic(share in bytes(80)) {
        let exchange = provider().kx_groups[0].start().unwrap();
        prop_assert!(exchange.complete(&share).is_err());
    }

    #[test]
    fn any_point_with_the_right_form_is_refused_unless_on_the_curve(x: [u8; 32], y: [u8; 32]) {
        refuse_share("chance", &[&[4][..], &x, &y].concat());
    }

    #[test]
    fn any_signature_is_refused_without_panic(point in bytes(70), signature in bytes(80)) {
        let share = provider().kx_groups[0].start().unwrap().pub_key().to_vec();
        for algorithm in algorithms() {
            prop_assert!(algorithm.verify_signature(&point, b"text", &signature).is_err());
            prop_assert!(algorithm.verify_signature(&share, b"text", &signature).is_err());
        }
    }

    #[test]
    fn any_two_numbers_are_no_signature(r in bytes(33), s in bytes(33)) {
        let share = provider().kx_groups[0].start().unwrap().pub_key().to_vec();
        let integer = |it: &[u8]| [&[2, u8::try_from(it.len()).unwrap()][..], it].concat();
        let numbers = [integer(&r), integer(&s)].concat();
        let der = [&[0x30, u8::try_from(numbers.len()).unwrap()][..], &numbers].concat();
        for algorithm in algorithms() {
            prop_assert!(algorithm.verify_signature(&share, b"text", &der).is_err());
        }
    }

    #[test]
    fn any_private_key_is_refused_without_panic(der in bytes(200)) {
        prop_assert!(!is_key(PrivatePkcs8KeyDer::from(der.clone()).into()));
        prop_assert!(!is_key(PrivateSec1KeyDer::from(der.clone()).into()));
        prop_assert!(!is_key(PrivatePkcs1KeyDer::from(der.clone()).into()));
        prop_assert!(Key::from_pem(&pem("PRIVATE KEY", &der)).is_err());
        prop_assert!(Key::from_pem(&pem("EC PRIVATE KEY", &der)).is_err());
    }

    #[test]
    fn an_altered_private_key_does_not_panic(at in 0_usize..138, by in 1_u8..) {
        let good = Key::from_seed(&[1; 32]).unwrap().to_pem().unwrap();
        let (_, mut der) = decode_vec(good.as_bytes()).unwrap();
        der[at] ^= by;
        let _is_key = is_key(PrivatePkcs8KeyDer::from(der).into());
    }

    #[test]
    fn any_request_is_refused_without_panic(der in bytes(300), text in ".{0,200}") {
        prop_assert!(Request::from_pem(&pem("CERTIFICATE REQUEST", &der)).is_err());
        prop_assert!(Request::from_pem(&text).is_err());
    }

    #[test]
    fn any_authority_is_refused_without_panic(der in bytes(300), text in ".{0,200}") {
        let key_pem = Key::from_seed(&[1; 32]).unwrap().to_pem().unwrap();
        prop_assert!(Authority::from_pem(&pem("CERTIFICATE", &der), &key_pem).is_err());
        prop_assert!(Authority::from_pem(&text, &key_pem).is_err());
        prop_assert!(Key::from_pem(&text).is_err());
    }

    #[test]
    fn an_altered_authority_does_not_panic(at in 0_usize..400, by in 1_u8..) {
        let authority = Authority::create(Key::from_seed(&[1; 32]).unwrap(), "A", year()).unwrap();
        let (_, mut der) = decode_vec(authority.to_pem().unwrap().as_bytes()).unwrap();
        let at = at % der.len();
        der[at] ^= by;
        let key_pem = authority.key().to_pem().unwrap();
        let _read = Authority::from_pem(&pem("CERTIFICATE", &der), &key_pem);
    }

    #[test]
    fn any_name_is_taken_or_refused_without_panic(name in ".{0,80}") {
        if let Ok(names) = Names::new([name]) {
            let request = Request::create(&Key::from_seed(&[1; 32]).unwrap(), &names).unwrap();
            let request = Request::from_pem(&request).unwrap();
            prop_assert_eq!(request.names(), &names);
        }
    }
}

fn refuse_share(what: &str, share: &[u8]) {
    let exchange = provider().kx_groups[0].start().unwrap();
    let refused = exchange.complete(share).err();
    let misbehaved = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);
    assert_eq!(refused, Some(misbehaved), "{what}");
}

/// The one that checks certificates and the one that checks handshakes.
fn algorithms() -> [&'static dyn SignatureVerificationAlgorithm; 2] {
    let algorithms = provider().signature_verification_algorithms;
    [algorithms.all[0], algorithms.mapping[0].1[0]]
}

fn is_key(der: PrivateKeyDer<'static>) -> bool {
    provider().key_provider.load_private_key(der).is_ok()
}

/// What a client does with a server's certificate.
struct Verifier(Arc<WebPkiServerVerifier>);

impl Verifier {
    fn new(pki: &Pki) -> Self {
        let roots = roots(&pki.authority.to_pem().unwrap());
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
        Self(builder.build().unwrap())
    }

    fn accepts(&self, der: Vec<u8>) -> bool {
        let name = ServerName::try_from("localhost").unwrap();
        let at = UnixTime::since_unix_epoch(Duration::from_millis(now().0));
        self.0.verify_server_cert(&CertificateDer::from(der), &[], &name, &[], at).is_ok()
    }
}

fn names() -> Names {
    Names::new(["a.example"]).unwrap()
}

fn bytes(bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=bytes_max)
}

fn pem(label: &str, der: &[u8]) -> String {
    encode_string(label, LineEnding::LF, der).unwrap()
}
