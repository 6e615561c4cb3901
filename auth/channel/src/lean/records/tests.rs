//! Records against rustls' own client.

mod hostile;

use std::io::{Read, Write};
use std::sync::Arc;

use proptest::prelude::*;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    SupportedCipherSuite,
};

use super::*;
use crate::lean::secrets::Secrets;
use crate::provider::{VERSIONS, provider};

const SUITES: [SupportedCipherSuite; 3] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
];

/// One thing that happens on a connection.
#[derive(Clone, Debug)]
enum Step {
    Say(usize),
    Hear(usize),
    /// The client changes its keys, and asks for a change of ours.
    Renew,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![4 => 0..200_usize, 1 => 16_000..17_000_usize, 1 => 0..50_000_usize];
    prop_oneof![
        3 => bytes.clone().prop_map(Step::Say),
        3 => bytes.prop_map(Step::Hear),
        1 => Just(Step::Renew),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_said_is_heard_in_both_directions_with_any_keys(
        suite in prop::sample::select(&SUITES[..]),
        steps in prop::collection::vec(step(), 1..20),
    ) {
        let (mut server, mut client) = connection(suite);

        for step in steps {
            match step {
                Step::Say(bytes) => prop_assert_eq!(said(&mut server, &mut client, bytes), text(bytes)),
                Step::Hear(bytes) => {
                    client.writer().write_all(&text(bytes)).unwrap();
                    prop_assert_eq!(heard(&mut server, &records_of(&mut client)), Ok(text(bytes)));
                }
                Step::Renew => client.refresh_traffic_keys().unwrap(),
            }
        }
    }

    #[test]
    fn no_bytes_but_the_clients_own_are_heard(
        suite in prop::sample::select(&SUITES[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let (mut server, _) = connection(suite);

        prop_assert_eq!(heard(&mut server, &bytes).unwrap_or_default(), b"");
    }

    #[test]
    fn a_changed_lost_repeated_or_moved_record_ends_it_before_it_is_heard(
        suite in prop::sample::select(&SUITES[..]),
        texts in prop::collection::vec(1..300_usize, 2..6),
        place: prop::sample::Index,
        byte: prop::sample::Index,
        change in 1_u8..,
        deed in 0..4,
    ) {
        let (mut server, mut client) = connection(suite);
        let mut records: Vec<_> = texts
            .iter()
            .map(|bytes| {
                client.writer().write_all(&text(*bytes)).unwrap();
                records_of(&mut client)
            })
            .collect();
        let place = place.index(records.len() - 1);

        match deed {
            0 => {
                let byte = byte.index(records[place].len());
                records[place][byte] ^= change;
            }
            1 => drop(records.remove(place)),
            2 => records.insert(place, records[place].clone()),
            _ => records.swap(place, place + 1),
        }

        let mut whole = Vec::new();
        let mut fault = None;
        for record in &records {
            match heard(&mut server, record) {
                Ok(data) => whole.extend(data),
                Err(it) => { fault = Some(it); break; }
            }
        }
        // A length that grew waits for more bytes, which then do not open.
        prop_assert!(fault.is_some() || deed == 0);
        let honest: Vec<_> = texts.iter().flat_map(|it| text(*it)).collect();
        let before: usize = texts[..=place].iter().sum();
        prop_assert!(whole.len() <= before && honest.starts_with(&whole));
    }
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_record_is_refused() {
    for suite in SUITES {
        let (server, mut client) = mirrored(suite);
        let record = sealed(&mut client, b"a record of some forty bytes, all flipped");
        let theirs = |server: &Records| Keys::new(server.cipher, &[7; 48][..secret(suite)], 0);

        let mut server = server;
        for bit in 0..record.len() * 8 {
            let mut flipped = record.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            server.theirs = theirs(&server).unwrap();
            assert!(server.open(&mut flipped).is_err(), "bit {bit}");
        }
        for bytes in 0..record.len() {
            server.theirs = theirs(&server).unwrap();
            assert!(server.open(&mut record[..bytes].to_vec()).is_err(), "{bytes} bytes");
        }
    }
}

#[test]
fn keys_are_renewed_before_they_are_worn() {
    let (mut server, mut client) = mirrored(cipher_suite::TLS13_AES_128_GCM_SHA256);
    let last = server.cipher.records_max() - 2;
    server.ours = Keys::new(server.cipher, &[9; 32], last).unwrap();
    client.theirs = Keys::new(client.cipher, &[9; 32], last).unwrap();

    let opened: Vec<_> = (0..3).map(|_| opened(&mut client, &sealed(&mut server, b"x"))).collect();

    let one = Ok(Opened::Data(1));
    assert_eq!(opened, [vec![one], vec![Ok(Opened::Nothing), one], vec![one]]);
    assert_eq!(server.ours.seq(), 2);
}

#[test]
fn a_client_that_asks_for_new_keys_many_times_gets_them_once() {
    let (mut server, mut client) = mirrored(cipher_suite::TLS13_AES_256_GCM_SHA384);

    for _ in 0..QUIET_RECORDS_MAX {
        let update = sealed_one(&mut client, HANDSHAKE, &[24, 0, 0, 1, UPDATE_REQUESTED]);
        client.ours.renew(client.cipher);
        assert_eq!(opened(&mut server, &update), [Ok(Opened::Nothing)]);
    }

    let answer = opened(&mut client, &sealed(&mut server, b"x"));
    assert_eq!(answer, [Ok(Opened::Nothing), Ok(Opened::Data(1))]);
    let later = opened(&mut client, &sealed(&mut server, b"x"));
    assert_eq!(later, [Ok(Opened::Data(1))]);
}

#[test]
fn padding_is_taken_off() {
    let (mut server, mut client) = mirrored(cipher_suite::TLS13_AES_128_GCM_SHA256);

    for padding in [0, 1, 300, TEXT_BYTES_MAX - 4] {
        let text = [&b"four"[..], &[DATA], &vec![0; padding]].concat();
        let mut record = sealed_text(&mut client, &text);

        assert_eq!(server.open(&mut record), Ok(Opened::Data(4)), "{padding}");
        assert_eq!(&record[HEADER_BYTES..HEADER_BYTES + 4], b"four");
    }
}

/// A connection after its handshake: our side of it, and rustls' client.
fn connection(suite: SupportedCipherSuite) -> (Records, ClientConnection) {
    let mut provider = provider();
    Arc::make_mut(&mut provider).cipher_suites = vec![suite];
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(certificate.pem().as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();

    let mut roots = RootCertStore::empty();
    roots.add(chain[0].clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(VERSIONS)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    client.set_buffer_limit(None);

    let secrets = Arc::new(Secrets::default());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(VERSIONS)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.key_log = Arc::clone(&secrets) as Arc<dyn rustls::KeyLog>;
    config.enable_secret_extraction = true;
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        read_all(&records_of(&mut client), |it| server.read_tls(it));
        server.process_new_packets().unwrap();
        let mut flight = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut flight).unwrap();
        }
        read_all(&flight, |it| client.read_tls(it));
        client.process_new_packets().unwrap();
    }
    (crate::lean::shake::records(server, &secrets).unwrap(), client)
}

/// A server's records, and those of a client that says what it likes.
fn mirrored(suite: SupportedCipherSuite) -> (Records, Records) {
    let cipher = Cipher::of(suite).unwrap();
    let keys = |byte| Keys::new(cipher, &[byte; 48][..secret(suite)], 0).unwrap();
    (Records::new(cipher, keys(8), keys(7)), Records::new(cipher, keys(7), keys(8)))
}

fn secret(suite: SupportedCipherSuite) -> usize {
    suite.tls13().unwrap().common.hash_provider.output_len()
}

fn read_all(mut bytes: &[u8], mut read: impl FnMut(&mut dyn Read) -> std::io::Result<usize>) {
    while !bytes.is_empty() {
        read(&mut bytes).unwrap();
    }
}

fn text(bytes: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(bytes).collect()
}

/// What a client has to send.
fn records_of(client: &mut ClientConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut records).unwrap();
    }
    records
}

/// What a client hears of so many bytes.
fn said(server: &mut Records, client: &mut ClientConnection, bytes: usize) -> Vec<u8> {
    let text = text(bytes);
    let mut heard = Vec::new();
    let mut rest = &text[..];
    while !rest.is_empty() {
        let mut out = Outbound::default();
        let halves = rest.split_at(rest.len() / 2);
        let taken =
            server.seal(&[IoSlice::new(halves.0), IoSlice::new(halves.1)], &mut out).unwrap();
        read_all(out.filled(), |it| client.read_tls(it));
        let arrived = client.process_new_packets().unwrap().plaintext_bytes_to_read();
        let mut part = vec![0; arrived];
        client.reader().read_exact(&mut part).unwrap();
        heard.extend(part);
        rest = &rest[taken..];
    }
    heard
}

/// What the server hears of these bytes.
fn heard(server: &mut Records, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut bytes = bytes.to_vec();
    let mut rest = &mut bytes[..];
    let mut heard = Vec::new();
    while let Some(length) = record_bytes(rest)?
        && let Some((record, behind)) = rest.split_at_mut_checked(length)
    {
        match server.open(record)? {
            Opened::Data(length) => heard.extend(&record[HEADER_BYTES..HEADER_BYTES + length]),
            Opened::Nothing | Opened::End => {}
        }
        rest = behind;
    }
    Ok(heard)
}

/// What is in each of these records.
fn opened(end: &mut Records, bytes: &[u8]) -> Vec<Result<Opened, Fault>> {
    let mut bytes = bytes.to_vec();
    let mut rest = &mut bytes[..];
    let mut all = Vec::new();
    while let Some(length) = record_bytes(rest).unwrap() {
        let (record, behind) = rest.split_at_mut(length);
        all.push(end.open(record));
        rest = behind;
    }
    all
}

/// Records with data.
fn sealed(end: &mut Records, content: &[u8]) -> Vec<u8> {
    let mut out = Outbound::default();
    end.seal(&[IoSlice::new(content)], &mut out).unwrap();
    out.filled().to_vec()
}

fn sealed_one(end: &mut Records, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Outbound::default();
    end.seal_one(kind, &[IoSlice::new(content)], &mut out).unwrap();
    out.filled().to_vec()
}

/// A record with just this text, its type and padding in it.
fn sealed_text(end: &mut Records, text: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(text.len() + TAG_BYTES).unwrap().to_be_bytes();
    let header = [DATA, 3, 3, high, low];
    let (kind, before) = text.split_last().unwrap();
    let mut sealed = vec![0; text.len() + TAG_BYTES];
    let places = sealed.split_at_mut(before.len());
    end.ours.seal(end.cipher, header, (before, *kind), places).unwrap();
    [&header[..], &sealed].concat()
}
