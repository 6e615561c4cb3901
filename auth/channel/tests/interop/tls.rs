//! TLS 1.3 with the machine's OpenSSL 3, in both directions, with each kind of certificate.

use channel::{ClientTls, ServerTls};

use crate::pki::{Kind, Pki};
use crate::talk::{ALPN, Dialect, with_their_client, with_their_server};

const KINDS: [Kind; 3] = [Kind::P256, Kind::Ed25519, Kind::Rsa2048];

#[tokio::test]
async fn openssl_3_as_client_speaks_with_our_server() {
    for kind in KINDS {
        let pki = Pki::made_by_openssl(kind).await;
        let server = server(&pki);

        with_their_client(&Dialect::aes(), &pki, &server).await;
        with_their_client(&Dialect::chacha(), &pki, &server).await;
    }
}

#[tokio::test]
async fn openssl_3_as_server_speaks_with_our_client() {
    for kind in KINDS {
        let pki = Pki::made_by_openssl(kind).await;
        let client = ClientTls::trusting(&pki.read("ca.pem")).unwrap().with_alpn(ALPN);

        with_their_server(&Dialect::aes(), &pki, &client).await;
        with_their_server(&Dialect::chacha(), &pki, &client).await;
    }
}

fn server(pki: &Pki) -> ServerTls {
    ServerTls::from_pem(&pki.read("chain.pem"), &pki.read("key.pem"), ALPN).unwrap()
}
