//! Keys against the vectors of RFC 9001, appendix A, and against rustls' own.

use proptest::prelude::*;
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::quic::{Keys, Version};
use rustls::{Side, Tls13CipherSuite};

use super::*;

/// The suites, as rustls has them, with what takes the place of their keys.
const CIPHERS: [(SupportedCipherSuite, &Cipher); 3] = [
    (cipher_suite::TLS13_AES_128_GCM_SHA256, &AES_128),
    (cipher_suite::TLS13_AES_256_GCM_SHA384, &AES_256),
    (cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, &CHACHA20),
];
/// Bytes from a packet's number to the sample of what follows (RFC 9001, section 5.4.2).
const SAMPLE_AFTER: usize = 4;

/// RFC 9001, appendix A.3: a server's first packet.
mod first_packet {
    pub(super) const CLIENTS_CHOICE: &str = "8394c8f03e515708";
    pub(super) const HEADER: &str = "c1000000010008f067a5502a4262b50040750001";
    pub(super) const NUMBER: u64 = 1;
    pub(super) const PAYLOAD: &str = "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825\
        ddf73988cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c\
        144eca684d1081287c834d5311bcf32bb9da1a002b00020304";
    pub(super) const PACKET: &str = "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac40\
        6a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df354\
        8e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20\
        398c276456cbc42158407dd074ee";
}

/// RFC 9001, appendix A.5: a short packet.
mod short_packet {
    pub(super) const KEY: &str = "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8";
    pub(super) const IV: &str = "e0459b3474bdd0e44a41c144";
    pub(super) const HEADER_KEY: &str =
        "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4";
    pub(super) const HEADER: &str = "4200bff4";
    pub(super) const NUMBER: u64 = 654_360_564;
    pub(super) const PAYLOAD: &str = "01";
    pub(super) const PACKET: &str = "4cfe4189655e5cd55c41f69080575d7999c25a5bfb";
}

#[test]
fn a_servers_first_packet_is_that_of_the_standard() {
    use first_packet::{CLIENTS_CHOICE, HEADER, NUMBER, PACKET, PAYLOAD};
    let keys = initial(tls13(CIPHERS[0].0), &AES_128, &hex(CLIENTS_CHOICE), Side::Server);

    let sealed = sealed(&keys.local, NUMBER, (&hex(HEADER), 18), &hex(PAYLOAD));

    assert_eq!(hex::encode(sealed), PACKET);
}

#[test]
fn a_servers_first_packet_is_opened() {
    use first_packet::{CLIENTS_CHOICE, HEADER, NUMBER, PACKET, PAYLOAD};
    let keys = initial(tls13(CIPHERS[0].0), &AES_128, &hex(CLIENTS_CHOICE), Side::Client);

    let opened = opened(&keys.remote, NUMBER, 18, hex(PACKET));

    assert_eq!(opened, Some((hex(HEADER), hex(PAYLOAD))));
}

#[test]
fn a_short_packet_is_that_of_the_standard_and_is_opened() {
    use short_packet::{HEADER, HEADER_KEY, IV, KEY, NUMBER, PACKET, PAYLOAD};
    let key = |text| AeadKey::from(<[u8; 32]>::try_from(hex(text)).unwrap());
    let keys = rustls::quic::DirectionalKeys {
        header: CHACHA20.header_protection_key(key(HEADER_KEY)),
        packet: CHACHA20.packet_key(key(KEY), Iv::from(<[u8; 12]>::try_from(hex(IV)).unwrap())),
    };

    let sealed = sealed(&keys, NUMBER, (&hex(HEADER), 1), &hex(PAYLOAD));

    assert_eq!(hex::encode(&sealed), PACKET);
    assert_eq!(opened(&keys, NUMBER, 1, sealed), Some((hex(HEADER), hex(PAYLOAD))));
}

#[test]
fn a_key_may_do_as_much_as_rustls_lets_its_own_do() {
    for (suite, cipher) in CIPHERS {
        let [ours, theirs] = both(suite, cipher, b"", Side::Server).map(|it| it.local.packet);

        assert_eq!(ours.confidentiality_limit(), theirs.confidentiality_limit(), "{suite:?}");
        assert_eq!(ours.integrity_limit(), theirs.integrity_limit(), "{suite:?}");
        assert_eq!(ours.tag_len(), theirs.tag_len(), "{suite:?}");
    }
}

#[test]
fn a_sample_or_a_number_of_another_length_is_refused() {
    for (suite, cipher) in CIPHERS {
        let [ours, _] = both(suite, cipher, b"", Side::Server).map(|it| it.local.header);

        assert!(ours.encrypt_in_place(&[0; 15], &mut 0, &mut [0]).is_err(), "{suite:?}");
        assert!(ours.decrypt_in_place(&[0; 17], &mut 0, &mut [0]).is_err(), "{suite:?}");
        assert!(ours.decrypt_in_place(&[0; 16], &mut 0, &mut [0; 5]).is_err(), "{suite:?}");
        assert!(ours.decrypt_in_place(&[0; 16], &mut 0, &mut [0; 4]).is_ok(), "{suite:?}");
    }
}

proptest! {
    #[test]
    fn packets_are_those_that_rustls_would_send_and_are_opened_by_it(
        cipher in prop::sample::select(&CIPHERS[..]),
        id in prop::collection::vec(any::<u8>(), 0..20),
        number in any::<u64>(),
        first in any::<u8>(),
        middle in prop::collection::vec(any::<u8>(), 0..30),
        payload in prop::collection::vec(any::<u8>(), 20..1_500),
    ) {
        let (suite, cipher) = cipher;
        let [ours, theirs] = both(suite, cipher, &id, Side::Server).map(|it| it.local);
        let number_at = 1 + middle.len();
        let bytes = usize::from(first & 3) + 1;
        let header = [&[first][..], &middle, &number.to_be_bytes()[8 - bytes..]].concat();

        let packet = sealed(&ours, number, (&header, number_at), &payload);

        prop_assert_eq!(&packet, &sealed(&theirs, number, (&header, number_at), &payload));
        let [ours, theirs] = both(suite, cipher, &id, Side::Client).map(|it| it.remote);
        let said = Some((header, payload));
        prop_assert_eq!(&opened(&ours, number, number_at, packet.clone()), &said);
        prop_assert_eq!(&opened(&theirs, number, number_at, packet), &said);
    }

    #[test]
    fn a_packet_with_another_bit_number_or_end_is_not_opened(
        cipher in prop::sample::select(&CIPHERS[..]),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        bit: prop::sample::Index,
        cut: prop::sample::Index,
    ) {
        let (suite, cipher) = cipher;
        let [key, _] = both(suite, cipher, b"id", Side::Server).map(|it| it.local.packet);
        let mut whole = payload;
        let tag = key.encrypt_in_place(7, b"header", &mut whole).unwrap();
        whole.extend_from_slice(tag.as_ref());
        let mut flipped = whole.clone();
        let bit = bit.index(whole.len() * 8);
        flipped[bit / 8] ^= 1 << (bit % 8);
        let cut = cut.index(whole.len());

        prop_assert!(key.decrypt_in_place(7, b"header", &mut flipped).is_err());
        prop_assert!(key.decrypt_in_place(7, b"header", &mut whole[..cut].to_vec()).is_err());
        prop_assert!(key.decrypt_in_place(8, b"header", &mut whole.clone()).is_err());
        prop_assert!(key.decrypt_in_place(7, b"Header", &mut whole.clone()).is_err());
        prop_assert!(key.decrypt_in_place(7, b"header", &mut whole).is_ok());
    }
}

/// Our keys and rustls', made from the same secret.
fn both(suite: SupportedCipherSuite, cipher: &'static Cipher, id: &[u8], side: Side) -> [Keys; 2] {
    let suite = tls13(suite);
    let own = suite.quic.expect("rustls has keys for each of the three");
    [initial(suite, cipher, id, side), initial(suite, own, id, side)]
}

fn initial(
    suite: &'static Tls13CipherSuite,
    cipher: &'static dyn Algorithm,
    id: &[u8],
    side: Side,
) -> Keys {
    Keys::initial(Version::V1, suite, cipher, id, side)
}

/// A packet, with its header hidden; the number is at `number_at`.
fn sealed(
    keys: &rustls::quic::DirectionalKeys,
    number: u64,
    (header, number_at): (&[u8], usize),
    payload: &[u8],
) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let tag = keys.packet.encrypt_in_place(number, header, &mut payload).unwrap();
    let mut packet = [header, &payload, tag.as_ref()].concat();
    let sample = sample(&packet, number_at);
    let bytes = header.len() - number_at;
    let (first, rest) = packet.split_first_mut().unwrap();
    let number = &mut rest[number_at - 1..][..bytes];
    keys.header.encrypt_in_place(&sample, first, number).unwrap();
    packet
}

/// A packet's header and payload.
fn opened(
    keys: &rustls::quic::DirectionalKeys,
    number: u64,
    number_at: usize,
    mut packet: Vec<u8>,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let sample = sample(&packet, number_at);
    let (first, rest) = packet.split_first_mut().unwrap();
    let hidden = &mut rest[number_at - 1..][..NUMBER_BYTES_MAX];
    keys.header.decrypt_in_place(&sample, first, hidden).ok()?;
    let bytes = usize::from(packet[0] & 0x03) + 1;
    let (header, payload) = packet.split_at_mut(number_at + bytes);
    let payload = keys.packet.decrypt_in_place(number, header, payload).ok()?.to_vec();
    Some((header.to_vec(), payload))
}

fn sample(packet: &[u8], number_at: usize) -> Vec<u8> {
    packet[number_at + SAMPLE_AFTER..][..16].to_vec()
}

fn tls13(suite: SupportedCipherSuite) -> &'static Tls13CipherSuite {
    suite.tls13().expect("its name says so")
}

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}
