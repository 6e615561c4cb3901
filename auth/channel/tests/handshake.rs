//! Real handshakes over loopback: our client, our server, and OpenSSL in both places.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use channel::{ClientTls, DevCerts, ServerStream, ServerTls, exporter};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio_rustls::client::TlsStream as ClientStream;

const ALPN: &[&[u8]] = &[b"dm/1"];
/// Longer than any handshake here; a test that meets it has failed.
const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn both_ends_speak_tls_1_3_with_our_first_choices() {
    let certs = Certs::new();

    let (client, server) = certs.connect(&certs.client()).await.unwrap();

    let (_, client) = client.get_ref();
    let (_, server) = server.get_ref();
    assert_eq!(client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let suite = client.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, CipherSuite::TLS13_AES_128_GCM_SHA256);
    let group = client.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group, NamedGroup::X25519MLKEM768);
    assert_eq!(server.alpn_protocol(), Some(ALPN[0]));
}

#[tokio::test]
async fn the_two_ends_export_the_same_secret_and_another_connection_another() {
    let certs = Certs::new();
    let client_tls = certs.client();

    let (client, server) = certs.connect(&client_tls).await.unwrap();
    let (other, _server) = certs.connect(&client_tls).await.unwrap();

    let secret = exporter(client.get_ref().1).unwrap();
    assert_eq!(secret, exporter(server.get_ref().1).unwrap());
    assert_ne!(secret, exporter(other.get_ref().1).unwrap());
}

#[tokio::test]
async fn a_client_comes_back_with_its_one_ticket() {
    let certs = Certs::new();
    let client_tls = certs.client();

    let (mut client, mut server) = certs.connect(&client_tls).await.unwrap();
    server.write_all(b"x").await.unwrap();
    client.read_u8().await.unwrap();
    let (again, _server) = certs.connect(&client_tls).await.unwrap();

    assert_eq!(client.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
    assert_eq!(client.get_ref().1.tls13_tickets_received(), 1);
    assert_eq!(again.get_ref().1.handshake_kind(), Some(HandshakeKind::Resumed));
}

#[tokio::test]
async fn a_client_of_another_authority_refuses() {
    let certs = Certs::new();
    let other = Certs::new();

    let refused = certs.connect(&other.client()).await;

    let error = refused.unwrap_err().downcast::<rustls::Error>().unwrap();
    assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error}");
}

#[tokio::test]
async fn a_client_that_offers_other_protocols_is_refused() {
    let certs = Certs::new();

    let refused = certs.connect(&certs.client().with_alpn(&[b"h2"])).await;

    assert!(refused.is_err());
}

#[tokio::test]
async fn openssl_completes_a_handshake_with_our_server() {
    let certs = Certs::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let ca_file = certs.dir.path().join("ca.pem");
    let ca_file = ca_file.to_str().unwrap();
    let client = openssl(&[
        "s_client",
        "-tls1_3",
        "-quiet",
        "-verify_return_error",
        "-connect",
        &addr.to_string(),
        "-servername",
        "localhost",
        "-verify_hostname",
        "localhost",
        "-CAfile",
        ca_file,
        "-alpn",
        "dm/1",
        "-groups",
        "P-256",
        "-keymatexport",
        "EXPORTER-dmk-auth",
    ]);

    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = in_time(certs.server.accept(stream)).await.unwrap();
    stream.write_all(b"hello from rustls\n").await.unwrap();
    let line = in_time(read_line(client)).await;

    assert_eq!(line, "hello from rustls");
    let (_, connection) = stream.get_ref();
    let group = connection.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group, NamedGroup::secp256r1);
}

#[tokio::test]
async fn openssl_with_tls_1_2_is_refused() {
    let certs = Certs::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let _client = openssl(&["s_client", "-tls1_2", "-quiet", "-connect", &addr]);

    let (stream, _) = listener.accept().await.unwrap();
    let refused = in_time(certs.server.accept(stream)).await;

    assert!(refused.is_err());
}

#[tokio::test]
async fn our_client_completes_a_handshake_with_openssl() {
    let certs = Certs::new();
    let file = |name: &str| certs.dir.path().join(name).to_str().unwrap().to_owned();
    let mut server = openssl(&[
        "s_server",
        "-tls1_3",
        "-accept",
        "127.0.0.1:0",
        "-cert",
        &file("chain.pem"),
        "-key",
        &file("key.pem"),
        "-alpn",
        "dm/1",
        "-rev",
    ]);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let addr: SocketAddr = loop {
        let line = in_time(lines.next_line()).await.unwrap().unwrap();
        if let Some(addr) = line.strip_prefix("ACCEPT ") {
            break addr.parse().unwrap();
        }
    };

    let tcp = TcpStream::connect(addr).await.unwrap();
    let mut stream = in_time(certs.client().connector().connect(localhost(), tcp)).await.unwrap();
    stream.write_all(b"abc\n").await.unwrap();
    let mut reversed = [0; 4];
    in_time(stream.read_exact(&mut reversed)).await.unwrap();

    assert_eq!(&reversed, b"cba\n");
    assert!(exporter(stream.get_ref().1).is_ok());
}

struct Certs {
    dir: TempDir,
    certs: DevCerts,
    server: ServerTls,
}

impl Certs {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let certs = DevCerts::load_or_create(dir.path(), &[]).unwrap();
        let server = certs.server(ALPN).unwrap();
        Self { dir, certs, server }
    }

    fn client(&self) -> ClientTls {
        self.certs.client().unwrap().with_alpn(ALPN)
    }

    async fn connect(
        &self,
        client: &ClientTls,
    ) -> std::io::Result<(ClientStream<TcpStream>, ServerStream)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let tcp = TcpStream::connect(listener.local_addr()?).await?;
        let (accepted, _) = listener.accept().await?;
        let (client, server) = in_time(async {
            tokio::join!(client.connector().connect(localhost(), tcp), self.server.accept(accepted))
        })
        .await;
        Ok((client?, server?))
    }
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

/// OpenSSL 3 is part of every system this is built on; without it the test fails.
fn openssl(arguments: &[&str]) -> Child {
    Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the openssl command is installed")
}

async fn read_line(mut child: Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap().unwrap()
}

async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}
