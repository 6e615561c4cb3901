//! OpenSSL 3 as the client of a connection that left rustls: it must not notice.

use std::net::Ipv4Addr;

use channel::{Lean, ServerTls, Shaken};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::peer::{Peer, in_time};
use crate::pki::{Kind, Pki};
use crate::talk::{ALPN, Dialect, KEY_UPDATE_SENT, converse, new_keys};

#[tokio::test]
async fn openssl_3_speaks_with_a_lean_server_and_changes_its_keys_at_will() {
    let pki = Pki::made_by_openssl(Kind::P256).await;
    for dialect in [Dialect::aes(), Dialect::aes_256(), Dialect::chacha()] {
        let (mut peer, mut stream) = connect(&dialect, &pki).await;
        peer.says("Verify return code: 0 (ok)").await;
        let theirs = hex::decode(peer.line_after("Keying material: ").await).unwrap();
        assert_eq!(stream.take_exporter().unwrap().to_vec(), theirs);
        converse(&mut stream, &mut peer).await;

        // `K` asks for a change of our keys too, `k` does not.
        for _ in 0..3 {
            peer.tell("K\n").await;
            peer.notes(KEY_UPDATE_SENT).await;
            new_keys(&mut stream, &mut peer).await;
            peer.tell("k\n").await;
            peer.notes(KEY_UPDATE_SENT).await;
            converse(&mut stream, &mut peer).await;
        }

        peer.tell("Q\n").await;
        assert_eq!(in_time(stream.read(&mut [0; 9])).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn openssl_3_hears_the_goodbye_of_a_lean_server() {
    let pki = Pki::made_by_openssl(Kind::P256).await;
    let (mut peer, mut stream) = connect(&Dialect::aes(), &pki).await;

    stream.write_all(b"the last words\n").await.unwrap();
    stream.shutdown().await.unwrap();

    peer.says("the last words").await;
    peer.notes("<<< TLS 1.3, Alert [length 0002], warning close_notify").await;
}

async fn connect(dialect: &Dialect, pki: &Pki) -> (Peer, Lean<TcpStream>) {
    let server = ServerTls::from_pem(&pki.read("chain.pem"), &pki.read("key.pem"), ALPN).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let peer = Peer::start(dialect.client(pki, listener.local_addr().unwrap()));
    let (tcp, _) = in_time(listener.accept()).await.unwrap();
    let Shaken::Lean(stream) = in_time(server.accept_lean(tcp)).await.unwrap() else {
        panic!("it is lean")
    };
    (peer, stream)
}
