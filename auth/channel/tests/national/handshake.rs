//! Handshakes of mode G with itself, and its refusal of everything that is mode T.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use channel::EXPORTER_LABEL;
use channel::national::certs::Life;
use channel::national::{GROUP, SCHEME, SUITE, provider};
use rcgen::generate_simple_self_signed;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, Connection, Error, HandshakeKind, PeerIncompatible,
    ProtocolVersion, ServerConfig,
};

use crate::pki::{
    Ends, Failure, Pki, client_config, connect, deliver, now, pass, roots, server_config,
};

#[test]
fn both_ends_speak_the_national_suite_and_export_the_same_secret() {
    let ends = Pki::new().connect("localhost").unwrap();

    for end in [&ends.client, &ends.server] {
        assert_eq!(end.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        assert_eq!(end.negotiated_cipher_suite().unwrap().suite(), SUITE);
        assert_eq!(end.negotiated_key_exchange_group().unwrap().name(), GROUP);
    }
    assert_eq!(secret(&ends.client), secret(&ends.server));
}

#[test]
fn another_connection_exports_another_secret() {
    let pki = Pki::new();

    let (one, other) = (pki.connect("localhost").unwrap(), pki.connect("localhost").unwrap());

    assert_ne!(secret(&one.client), secret(&other.client));
}

#[test]
fn bytes_arrive_before_and_after_both_ends_renewed_their_keys() {
    let mut ends = Pki::new().connect("localhost").unwrap();

    talk(&mut ends);
    ends.client.refresh_traffic_keys().unwrap();
    talk(&mut ends);
    ends.server.refresh_traffic_keys().unwrap();
    talk(&mut ends);
}

#[test]
fn a_client_comes_back_without_a_certificate() {
    let pki = Pki::new();
    let (client, server) = (pki.client(), pki.server());

    let mut first = connect(client.clone(), server.clone(), "localhost").unwrap();
    talk(&mut first);
    let mut second = connect(client, server, "localhost").unwrap();
    talk(&mut second);

    assert_eq!(first.client.handshake_kind(), Some(HandshakeKind::Full));
    assert_eq!(second.client.handshake_kind(), Some(HandshakeKind::Resumed));
    assert_eq!(second.client.negotiated_cipher_suite().unwrap().suite(), SUITE);
}

#[test]
fn a_client_of_another_authority_refuses() {
    let (pki, other) = (Pki::new(), Pki::new());

    let failure = refused(connect(other.client(), pki.server(), "localhost"));

    // Both authorities have the same name, so it is the signature that gives it away.
    let wrong = Error::InvalidCertificate(CertificateError::BadSignature);
    assert_eq!(failure.client, Some(wrong));
    assert!(matches!(failure.server, Some(Error::AlertReceived(_))), "{failure:?}");
}

#[test]
fn every_name_of_the_certificate_is_accepted_and_no_other() {
    let names = ["a.example", "*.b.example", "127.0.0.1", "::1"];
    let pki = Pki::with_names(&names);

    for name in ["a.example", "x.b.example", "127.0.0.1", "::1"] {
        assert!(pki.connect(name).is_ok(), "{name}");
    }
    for name in ["b.example", "x.a.example", "x.y.b.example", "127.0.0.2", "::2"] {
        let failure = refused(pki.connect(name));
        let error = failure.client.unwrap();
        let is_name = matches!(
            error,
            Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
        );
        assert!(is_name, "{name}: {error}");
    }
}

#[test]
fn a_certificate_that_ended_is_refused() {
    let ended = Life { now: now() - Duration::from_hours(72), days: 2 };

    let failure = refused(Pki::with_life(&["localhost"], ended).connect("localhost"));

    let error = failure.client.unwrap();
    let is_expired =
        matches!(error, Error::InvalidCertificate(CertificateError::ExpiredContext { .. }));
    assert!(is_expired, "{error}");
}

#[test]
fn a_key_of_another_certificate_is_not_served() {
    let (pki, other) = (Pki::new(), Pki::new());

    let key_pem = other.server_key.to_pem().unwrap();
    let refused = server_config(provider(), &pki.server_pem, &key_pem);

    assert!(matches!(refused, Err(Error::InconsistentKeys(_))));
}

#[test]
fn an_altered_record_ends_the_connection() {
    let mut ends = Pki::new().connect("localhost").unwrap();
    ends.client.writer().write_all(b"hello").unwrap();
    let mut record = Vec::new();
    ends.client.write_tls(&mut record).unwrap();

    *record.last_mut().unwrap() ^= 1;
    let error = deliver(&record, &mut ends.server).unwrap_err();

    assert_eq!(error, Error::DecryptError);
    let alert = pass(&mut ends.server, &mut ends.client).unwrap_err();
    assert_eq!(alert, Error::AlertReceived(AlertDescription::BadRecordMac));
}

#[test]
fn a_client_of_mode_t_and_a_server_of_mode_g_part_cleanly() {
    let pki = Pki::new();
    let client = client_config(mode_t(), &pki.authority.to_pem().unwrap());

    let failure = refused(connect(Arc::new(client), pki.server(), "localhost"));

    let wrong = PeerIncompatible::NoKxGroupsInCommon;
    assert_eq!(failure.server, Some(Error::PeerIncompatible(wrong)));
    let told = Error::AlertReceived(AlertDescription::HandshakeFailure);
    assert_eq!(failure.client, Some(told));
}

#[test]
fn a_client_of_mode_g_and_a_server_of_mode_t_part_cleanly() {
    let (server, _pem) = server_t(mode_t());

    let failure = refused(connect(Pki::new().client(), server, "localhost"));

    let wrong = PeerIncompatible::NoKxGroupsInCommon;
    assert_eq!(failure.server, Some(Error::PeerIncompatible(wrong)));
    let told = Error::AlertReceived(AlertDescription::HandshakeFailure);
    assert_eq!(failure.client, Some(told));
}

/// A server that could do both, but only has a certificate of mode T.
#[test]
fn a_client_of_mode_g_gets_no_certificate_of_mode_t_in_the_national_suite() {
    let mut both = CryptoProvider::clone(&mode_t());
    both.cipher_suites.extend_from_slice(&provider().cipher_suites);
    both.kx_groups.extend_from_slice(&provider().kx_groups);
    let (server, _pem) = server_t(Arc::new(both));

    let failure = refused(connect(Pki::new().client(), server, "localhost"));

    let wrong = PeerIncompatible::NoSignatureSchemesInCommon;
    assert_eq!(failure.server, Some(Error::PeerIncompatible(wrong)));
}

#[test]
fn a_certificate_of_mode_t_is_refused_though_its_authority_is_trusted() {
    let (_server, pem) = server_t(mode_t());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots(&pem)), provider()).build();
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let at = UnixTime::since_unix_epoch(Duration::from_millis(now().0));

    let verifier = verifier.unwrap();
    let refused = rustls::client::danger::ServerCertVerifier::verify_server_cert(
        &*verifier,
        &certificate,
        &[],
        &name,
        &[],
        at,
    );

    assert!(matches!(refused, Err(Error::InvalidCertificate(_))), "{refused:?}");
}

#[test]
fn mode_g_offers_one_suite_one_group_and_one_scheme() {
    let provider = provider();

    let suites: Vec<_> = provider.cipher_suites.iter().map(|it| it.suite()).collect();
    let groups: Vec<_> = provider.kx_groups.iter().map(|it| it.name()).collect();
    let schemes = provider.signature_verification_algorithms.mapping.iter().map(|it| it.0);

    assert_eq!(suites, [SUITE]);
    assert_eq!(groups, [GROUP]);
    assert_eq!(schemes.collect::<Vec<_>>(), [SCHEME]);
    assert_eq!(provider.signature_verification_algorithms.all.len(), 1);
}

fn mode_t() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// A server with a certificate of mode T, which is its own authority.
fn server_t(provider: Arc<CryptoProvider>) -> (Arc<ServerConfig>, String) {
    let issued = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (pem, key_pem) = (issued.cert.pem(), issued.signing_key.serialize_pem());
    (Arc::new(server_config(provider, &pem, &key_pem).unwrap()), pem)
}

fn refused(connected: Result<Ends, Box<Failure>>) -> Failure {
    match connected {
        Ok(_) => panic!("the handshake should fail"),
        Err(failure) => *failure,
    }
}

fn secret(end: &Connection) -> [u8; 32] {
    end.export_keying_material([0; 32], EXPORTER_LABEL, Some(&[])).unwrap()
}

/// Says something in both directions.
fn talk(ends: &mut Ends) {
    say(&mut ends.client, &mut ends.server);
    say(&mut ends.server, &mut ends.client);
}

fn say(from: &mut Connection, to: &mut Connection) {
    let said = b"three small words".repeat(900);
    from.writer().write_all(&said).unwrap();
    pass(from, to).unwrap();
    let mut heard = vec![0; said.len()];
    to.reader().read_exact(&mut heard).unwrap();
    assert_eq!(heard, said);
}
