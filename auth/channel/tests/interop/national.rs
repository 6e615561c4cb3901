//! TLS_SM4_GCM_SM3 with OpenSSL 4, in both directions, with SM2 certificates of either maker.

use channel::national::certs::{Authority, Key, Life, Names};
use channel::{ClientTls, DevCerts, ServerTls};
use kit::clock::Clock;
use rustls::{CertificateError, Error};
use tempfile::TempDir;

use crate::pki::{Kind, Pki};
use crate::talk::{
    ALPN, Dialect, refused_by_our_client, refused_by_their_client, with_their_client,
    with_their_server,
};

#[tokio::test]
async fn openssl_4_as_client_speaks_with_our_server() {
    for pki in [Pki::made_by_openssl(Kind::Sm2).await, made_by_us()] {
        with_their_client(&Dialect::national(), &pki, &server(&pki)).await;
    }
}

#[tokio::test]
async fn openssl_4_as_server_speaks_with_our_client() {
    for pki in [Pki::made_by_openssl(Kind::Sm2).await, made_by_us()] {
        with_their_server(&Dialect::national(), &pki, &client(&pki)).await;
    }
}

#[tokio::test]
async fn one_port_serves_both_kinds_of_clients_and_never_mixes() {
    let sm2 = made_by_us();
    let p256 = Pki::made_by_openssl(Kind::P256).await;
    let both = ServerTls::from_pem(&p256.read("chain.pem"), &p256.read("key.pem"), ALPN)
        .unwrap()
        .beside(&server(&sm2));

    with_their_client(&Dialect::national(), &sm2, &both).await;
    with_their_client(&Dialect::aes(), &p256, &both).await;
    let either = Dialect {
        suite: Dialect::aes().suite,
        arguments: &["-ciphersuites", "TLS_SM4_GCM_SM3:TLS_AES_128_GCM_SHA256"],
        ..Dialect::national()
    };
    with_their_client(&either, &p256, &both).await;
}

#[tokio::test]
async fn a_server_of_another_authority_of_the_same_name_is_refused_by_either_client() {
    let (one, other) = (made_by_us(), Pki::made_by_openssl(Kind::Sm2).await);
    let dialect = Dialect::national();

    let theirs = refused_by_their_client(&dialect, &one, &server(&other)).await;
    let ours = refused_by_our_client(&dialect, &other, &client(&one)).await;

    assert!(theirs.contains("certificate verify failed"), "{theirs}");
    assert!(matches!(ours, Error::InvalidCertificate(CertificateError::BadSignature)), "{ours}");
}

#[tokio::test]
async fn a_national_server_refuses_other_suites_and_others_refuse_national_ones() {
    let sm2 = made_by_us();
    let folder = TempDir::new().unwrap();
    let p256 = DevCerts::load_or_create(folder.path(), &[]).unwrap().server(ALPN).unwrap();

    let aes = refused_by_their_client(&Dialect::aes(), &sm2, &server(&sm2)).await;
    let sm4 = refused_by_their_client(&Dialect::national(), &sm2, &p256).await;

    assert!(aes.contains("handshake failure"), "{aes}");
    assert!(sm4.contains("handshake failure"), "{sm4}");
}

fn made_by_us() -> Pki {
    let key = || Key::from_seed(&kit::seed::random_bytes().unwrap()).unwrap();
    let life = Life { now: Clock::system().wall(), days: 2 };
    let authority = Authority::create(key(), "Interop authority", life).unwrap();
    let leaf = key();
    let chain = authority.issue(&leaf, &Names::new(["localhost"]).unwrap(), life).unwrap();
    Pki::of(&authority.to_pem().unwrap(), &chain, &leaf.to_pem().unwrap())
}

fn server(pki: &Pki) -> ServerTls {
    ServerTls::national_from_pem(&pki.read("chain.pem"), &pki.read("key.pem"), ALPN).unwrap()
}

fn client(pki: &Pki) -> ClientTls {
    ClientTls::national(&pki.read("ca.pem")).unwrap().with_alpn(ALPN)
}
