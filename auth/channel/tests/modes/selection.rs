//! Which mode a client gets follows from what it offers, and the two never mix.

use channel::{exporter, suite};
use proto::suite::Suite;
use rustls::{CipherSuite, NamedGroup, ProtocolVersion, SupportedCipherSuite};

use crate::site::{Site, certificate_of, shake, shown};

#[tokio::test]
async fn a_client_of_each_mode_gets_its_own_on_one_port() {
    let site = Site::new();
    let server = site.server();
    for (certs, expected) in [(&site.tls, Suite::Tls), (&site.national, Suite::National)] {
        let (client, accepted) = shake(&certs.client().unwrap(), &server).await;

        let (client, accepted) = (client.unwrap(), accepted.unwrap());
        let ((_, near), (_, far)) = (client.get_ref(), accepted.get_ref());
        assert_eq!((suite(near), suite(far)), (expected, expected));
        assert_eq!(near.protocol_version(), Some(ProtocolVersion::TLSv1_3));
        assert_eq!(exporter(near).unwrap(), exporter(far).unwrap());
        assert_eq!(shown(&client), certificate_of(certs));
    }
}

#[tokio::test]
async fn everything_about_a_national_connection_is_national() {
    let site = Site::new();

    let (client, _) = shake(&site.national.client().unwrap(), &site.server()).await;

    let client = client.unwrap();
    let (_, connection) = client.get_ref();
    let suite = connection.negotiated_cipher_suite().map(|it| it.suite());
    let group = connection.negotiated_key_exchange_group().map(|it| it.name());
    assert_eq!(suite, Some(CipherSuite::Unknown(0x00C6)));
    assert_eq!(group, Some(NamedGroup::Unknown(41)));
    assert_eq!(connection.tls13_tickets_received(), 0);
}

#[tokio::test]
async fn a_server_of_one_mode_refuses_a_client_of_the_other() {
    let site = Site::new();
    for (client, server) in [(&site.national, &site.tls), (&site.tls, &site.national)] {
        let (client, accepted) =
            shake(&client.client().unwrap(), &server.server(&[]).unwrap()).await;

        let error = client.unwrap_err().downcast::<rustls::Error>().unwrap();
        assert!(matches!(error, rustls::Error::AlertReceived(_)), "a clean alert: {error}");
        assert!(accepted.is_err());
    }
}

#[test]
fn the_suites_of_the_two_modes_have_nothing_in_common() {
    let site = Site::new();
    let offered = |certs: &channel::DevCerts| -> Vec<CipherSuite> {
        let config = certs.client().unwrap().config();
        config.crypto_provider().cipher_suites.iter().map(SupportedCipherSuite::suite).collect()
    };

    let (tls, national) = (offered(&site.tls), offered(&site.national));

    assert!(tls.iter().all(|it| !national.contains(it)), "{tls:?} {national:?}");
}
