//! Handshakes with rustls' own client, whose keys are rustls' own too.

use proptest::prelude::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{ClientConnection, Keys as ClientKeys};
use rustls::{CipherSuite, ClientConfig, RootCertStore};

use super::*;
use crate::dev::DevCerts;
use crate::provider::VERSIONS;
use crate::quic::QUIC_ALPN;

const SUITES: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
];
/// Bytes of every suite's tag.
const TAG_BYTES: usize = 16;
/// Where the codes of alerts begin (RFC 9001, section 4.8).
const ALERTS: u64 = 0x100;

/// A server's certificate, and what its connections begin with.
struct Host {
    certs: DevCerts,
    config: Arc<rustls::ServerConfig>,
    handshakes: Arc<Handshakes>,
}

/// What both ends have after a handshake.
struct Shaken {
    server: Box<dyn Session>,
    client: ClientConnection,
    ours: Keys,
    theirs: ClientKeys,
    /// What the client's next keys are made from.
    next: Secrets,
}

#[test]
fn whoever_changes_the_keys_both_ends_have_the_same_ones() {
    let host = Host::new();
    for suite in SUITES {
        let mut shaken = host.shake(suite);
        assert!(is_heard(&shaken.ours.packet, &shaken.theirs, 0), "{suite:?}");

        let (mut ours, mut theirs) = (shaken.ours.packet, shaken.theirs);
        for number in 1..5 {
            let old = std::mem::replace(&mut ours, shaken.server.next_1rtt_keys().unwrap());
            assert!(!is_heard(&ours, &theirs, number), "{suite:?}: the client has old ones");
            let next = shaken.next.next_packet_keys();
            (theirs.local.packet, theirs.remote.packet) = (next.local, next.remote);

            assert!(!is_heard(&old, &theirs, number), "{suite:?}: the old ones are gone");
            assert!(is_heard(&ours, &theirs, number), "{suite:?}");
        }
    }
}

#[test]
fn nothing_of_rustls_is_left_after_the_handshake() {
    let host = Host::new();
    let before = Arc::strong_count(&host.config);
    let shaking = Arc::clone(&host.handshakes).start_session(QUIC_VERSION, &params());
    assert_eq!(Arc::strong_count(&host.config), before + 1);
    drop(shaking);

    let shaken = host.shake(SUITES[0]);

    assert_eq!(Arc::strong_count(&host.config), before);
    assert!(!shaken.server.is_handshaking());
}

#[test]
fn the_exporter_is_the_clients_and_there_is_no_other() {
    let host = Host::new();
    for suite in SUITES {
        let Shaken { server, client, .. } = host.shake(suite);
        let client = Connection::Client(client);

        let mut ours = [0; 32];
        server.export_keying_material(&mut ours, EXPORTER_LABEL, &[]).unwrap();

        let theirs = client.export_keying_material([0; 32], EXPORTER_LABEL, Some(&[]));
        assert_eq!(theirs, Ok(ours), "{suite:?}");
        for (label, context, bytes) in
            [(&b"other"[..], &[][..], 32), (EXPORTER_LABEL, b"c", 32), (EXPORTER_LABEL, &[], 31)]
        {
            let exported = server.export_keying_material(&mut ours[..bytes], label, context);
            assert!(exported.is_err());
        }
    }
}

#[test]
fn there_is_no_exporter_before_the_handshake_is_over() {
    let server = Host::new().handshakes.start_session(QUIC_VERSION, &params());

    assert!(server.export_keying_material(&mut [0; 32], EXPORTER_LABEL, &[]).is_err());
}

#[test]
fn a_message_after_the_handshake_ends_it() {
    let host = Host::new();
    let mut shaken = host.shake(SUITES[0]);

    // A change of keys as TLS has it over TCP, which QUIC forbids.
    let ended = shaken.server.read_handshake(&[24, 0, 0, 1, 0]);

    assert_eq!(
        ended.map_err(|it| u64::from(it.code)),
        Err(alert(AlertDescription::UnexpectedMessage))
    );
    assert!(shaken.server.write_handshake(&mut Vec::new()).is_none());
}

#[test]
fn what_is_no_hello_is_answered_with_the_alert_that_the_standard_names() {
    let host = Host::new();
    let mut another = host.client(SUITES[0]);
    another.alpn_protocols = vec![b"h3".to_vec()];
    let mut another = connection(another);
    let mut hello = Vec::new();
    another.write_hs(&mut hello);
    for (bytes, expected) in [
        (&[24, 0, 0, 1, 0][..], AlertDescription::UnexpectedMessage),
        (&[1, 0, 0, 2, 3, 3], AlertDescription::DecodeError),
        (&hello, AlertDescription::NoApplicationProtocol),
    ] {
        let mut server = Arc::clone(&host.handshakes).start_session(QUIC_VERSION, &params());

        let ended = server.read_handshake(bytes);

        assert_eq!(ended.map_err(|it| u64::from(it.code)), Err(alert(expected)));
    }
}

#[test]
fn a_hello_is_heard_once_whatever_its_pieces() {
    let host = Host::new();
    let mut client = connection(host.client(SUITES[0]));
    let mut hello = Vec::new();
    client.write_hs(&mut hello);
    let mut server = Arc::clone(&host.handshakes).start_session(QUIC_VERSION, &params());

    let heard: Vec<_> =
        hello.chunks(100).map(|it| server.read_handshake(it).unwrap()).filter(|it| *it).collect();

    assert_eq!(heard, [true]);
    let data = server.handshake_data().unwrap().downcast::<HandshakeData>().unwrap();
    assert_eq!(data.protocol.as_deref(), Some(QUIC_ALPN));
    assert!(server.transport_parameters().unwrap().is_some());
}

#[test]
fn no_other_version_is_spoken() {
    let host = Host::new();

    for version in [0, 2, 0xff00_001d, 0x6b33_43cf] {
        assert!(host.handshakes.initial_keys(version, &ConnectionId::new(b"id")).is_err());
    }
    assert!(host.handshakes.initial_keys(QUIC_VERSION, &ConnectionId::new(b"id")).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_handshake_that_is_bent_anywhere_never_ends_well(
        place: prop::sample::Index,
        change in 1_u8..,
        flight in 0..2_usize,
    ) {
        let host = Host::new();
        let mut client = connection(host.client(SUITES[0]));
        let mut server = Arc::clone(&host.handshakes).start_session(QUIC_VERSION, &params());

        for number in 0..2 {
            let mut said = Vec::new();
            while client.write_hs(&mut said).is_some() {}
            if number == flight {
                let byte = place.index(said.len());
                said[byte] ^= change;
            }
            if server.read_handshake(&said).is_err() {
                return Ok(());
            }
            let (parts, _) = answer(&mut *server);
            if parts.iter().any(|it| client.read_hs(it).is_err()) {
                return Ok(());
            }
        }
        prop_assert!(server.is_handshaking());
    }
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let certs = DevCerts::load_or_create(folder.path(), &[]).unwrap();
        let config = certs.server(&[]).unwrap().quic();
        let handshakes = Arc::new(Handshakes::new(Arc::clone(&config)).unwrap());
        Self { certs, config, handshakes }
    }

    /// A client that has one suite.
    fn client(&self, suite: CipherSuite) -> ClientConfig {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.cipher_suites.retain(|it| it.suite() == suite);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certs.ca_pem.as_bytes()).unwrap()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(VERSIONS)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![QUIC_ALPN.to_vec()];
        config
    }

    /// A whole handshake, in which each end hears at once what the other says.
    fn shake(&self, suite: CipherSuite) -> Shaken {
        let mut client = connection(self.client(suite));
        let mut server = Arc::clone(&self.handshakes).start_session(QUIC_VERSION, &params());
        let (mut ours, mut theirs) = (None, None);
        loop {
            let mut said = Vec::new();
            while let Some(change) = client.write_hs(&mut said) {
                if let KeyChange::OneRtt { keys, next } = change {
                    theirs = Some((keys, next));
                }
            }
            if !said.is_empty() {
                server.read_handshake(&said).unwrap();
            }
            let (parts, keys) = answer(&mut *server);
            ours = keys.or(ours);
            if said.is_empty() && parts.is_empty() {
                break;
            }
            for part in parts {
                client.read_hs(&part).unwrap();
            }
        }
        let (theirs, next) = theirs.expect("the client has its keys");
        Shaken { server, client, ours: ours.expect("the server has its keys"), theirs, next }
    }
}

/// All that a server has to say, each part under keys of its own, and the newest keys.
fn answer(server: &mut dyn Session) -> (Vec<Vec<u8>>, Option<Keys>) {
    let (mut parts, mut newest) = (Vec::new(), None);
    loop {
        let mut part = Vec::new();
        let keys = server.write_handshake(&mut part);
        if part.is_empty() && keys.is_none() {
            return (parts, newest);
        }
        newest = keys.or(newest);
        parts.extend(Some(part).filter(|it| !it.is_empty()));
    }
}

fn connection(config: ClientConfig) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    let mut bytes = Vec::new();
    params().write(&mut bytes);
    ClientConnection::new(Arc::new(config), Version::V1, name, bytes).unwrap()
}

/// Those of an end that says nothing about itself.
fn params() -> TransportParameters {
    TransportParameters::read(Side::Client, &mut &b""[..]).unwrap()
}

/// Whether each end opens what the other seals.
fn is_heard(ours: &KeyPair<Box<dyn PacketKey>>, theirs: &ClientKeys, number: u64) -> bool {
    const HEADER: &[u8] = b"header";
    const TEXT: &[u8] = b"said within a packet";
    let mut down = [HEADER, TEXT, &[0; TAG_BYTES]].concat();
    ours.local.encrypt(number, &mut down, HEADER.len());
    let down = &mut down[HEADER.len()..];
    let is_down_heard =
        theirs.remote.packet.decrypt_in_place(number, HEADER, down).is_ok_and(|it| it == TEXT);

    let mut up = TEXT.to_vec();
    let tag = theirs.local.packet.encrypt_in_place(number, HEADER, &mut up).unwrap();
    up.extend_from_slice(tag.as_ref());
    let mut up = up.as_slice().into();
    let is_up_heard = ours.remote.decrypt(number, HEADER, &mut up).is_ok() && up == TEXT;
    assert_eq!(is_down_heard, is_up_heard, "keys change in both directions at once");
    is_down_heard
}

fn alert(alert: AlertDescription) -> u64 {
    ALERTS + u64::from(u8::from(alert))
}
