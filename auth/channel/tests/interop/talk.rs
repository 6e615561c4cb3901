//! A conversation with OpenSSL, which is the client or the server of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use channel::{ClientTls, EXPORTER_LABEL, ServerTls, binder, exporter};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ConnectionCommon};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::peer::{Peer, in_time, openssl3, openssl4, run};
use crate::pki::Pki;

pub(crate) const ALPN: &[&[u8]] = &[b"dm/1"];

/// More than two records.
const DIGITS: usize = 40_000;

pub(crate) const KEY_UPDATE_SENT: &str = ">>> TLS 1.3, Handshake [length 0005], KeyUpdate";
const KEY_UPDATE_RECEIVED: &str = "<<< TLS 1.3, Handshake [length 0005], KeyUpdate";

/// Which OpenSSL, and the one suite that it has.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    pub(crate) program: PathBuf,
    pub(crate) suite: CipherSuite,
    pub(crate) arguments: &'static [&'static str],
}

impl Dialect {
    pub(crate) fn aes() -> Self {
        Self {
            program: openssl3(),
            suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
            arguments: &["-ciphersuites", "TLS_AES_128_GCM_SHA256"],
        }
    }

    pub(crate) fn aes_256() -> Self {
        Self {
            program: openssl3(),
            suite: CipherSuite::TLS13_AES_256_GCM_SHA384,
            arguments: &["-ciphersuites", "TLS_AES_256_GCM_SHA384"],
        }
    }

    pub(crate) fn chacha() -> Self {
        Self {
            program: openssl3(),
            suite: CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
            arguments: &["-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"],
        }
    }

    pub(crate) fn national() -> Self {
        Self {
            program: openssl4(),
            suite: channel::national::SUITE,
            arguments: &[
                "-ciphersuites",
                "TLS_SM4_GCM_SM3",
                "-groups",
                "curveSM2",
                "-sigalgs",
                "sm2sig_sm3",
            ],
        }
    }

    /// `s_client`, which believes the authority of `pki`.
    pub(crate) fn client(&self, pki: &Pki, addr: SocketAddr) -> Command {
        let mut command = self.command("s_client", pki);
        command.arg("-connect").arg(addr.to_string());
        command.args(["-CAfile", "ca.pem", "-verify_return_error"]);
        command.args(["-servername", "localhost", "-verify_hostname", "localhost"]);
        command
    }

    /// `s_server`, which has the certificate of `pki`.
    fn server(&self, pki: &Pki) -> Command {
        let mut command = self.command("s_server", pki);
        command.args(["-accept", "127.0.0.1:0", "-cert", "chain.pem", "-key", "key.pem"]);
        command
    }

    fn command(&self, name: &str, pki: &Pki) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(pki.path()).args([name, "-tls1_3", "-alpn", "dm/1"]);
        let label = std::str::from_utf8(EXPORTER_LABEL).unwrap();
        command.args(["-keymatexport", label, "-keymatexportlen", "32"]);
        command.args(["-msg", "-msgfile", "/dev/stderr"]).args(self.arguments);
        command
    }
}

/// OpenSSL connects to our server, and everything works.
pub(crate) async fn with_their_client(dialect: &Dialect, pki: &Pki, server: &ServerTls) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let mut peer = Peer::start(dialect.client(pki, listener.local_addr().unwrap()));
    let (tcp, _) = in_time(listener.accept()).await.unwrap();

    let mut stream = in_time(server.accept(tcp)).await.unwrap();

    let (_, connection) = stream.get_ref();
    is_agreed(connection, dialect, connection.alpn_protocol());
    peer.says("Verify return code: 0 (ok)").await;
    same_secret(connection, &mut peer).await;
    converse(&mut stream, &mut peer).await;

    peer.tell("K\n").await;
    peer.notes("KEYUPDATE").await;
    new_keys(&mut stream, &mut peer).await;
    stream.get_mut().1.refresh_traffic_keys().unwrap();
    converse(&mut stream, &mut peer).await;
    peer.notes(KEY_UPDATE_RECEIVED).await;
}

/// Our client connects to OpenSSL, and everything works.
pub(crate) async fn with_their_server(dialect: &Dialect, pki: &Pki, client: &ClientTls) {
    let mut peer = Peer::start(dialect.server(pki));

    let mut stream = connect(&mut peer, client).await.unwrap();

    let (_, connection) = stream.get_ref();
    is_agreed(connection, dialect, connection.alpn_protocol());
    same_secret(connection, &mut peer).await;
    converse(&mut stream, &mut peer).await;

    peer.tell("K\n").await;
    peer.notes(KEY_UPDATE_SENT).await;
    new_keys(&mut stream, &mut peer).await;
    stream.get_mut().1.refresh_traffic_keys().unwrap();
    converse(&mut stream, &mut peer).await;
    peer.notes(KEY_UPDATE_RECEIVED).await;
}

/// OpenSSL, believing the authority of `pki`, connects to our server: what both say in the end.
pub(crate) async fn refused_by_their_client(
    dialect: &Dialect,
    pki: &Pki,
    server: &ServerTls,
) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let command = dialect.client(pki, listener.local_addr().unwrap());
    let accepting = async {
        let (tcp, _) = listener.accept().await?;
        server.accept(tcp).await
    };

    let (accepted, output) = in_time(async { tokio::join!(accepting, run(command, b"")) }).await;

    assert!(!output.status.success());
    let error = accepted.err().map(|it| it.to_string()).unwrap_or_default();
    error + &String::from_utf8_lossy(&output.stderr)
}

/// Our client connects to OpenSSL, which has the certificate of `pki`: why that failed.
pub(crate) async fn refused_by_our_client(
    dialect: &Dialect,
    pki: &Pki,
    client: &ClientTls,
) -> rustls::Error {
    let mut peer = Peer::start(dialect.server(pki));

    let refused = connect(&mut peer, client).await;

    refused.unwrap_err().downcast().unwrap()
}

async fn connect(
    peer: &mut Peer,
    client: &ClientTls,
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let addr = peer.line_after("ACCEPT ").await;
    let tcp = TcpStream::connect(&addr).await?;
    let name = ServerName::try_from("localhost").unwrap();
    in_time(client.connector().connect(name, tcp)).await
}

fn is_agreed<Side>(connection: &ConnectionCommon<Side>, dialect: &Dialect, alpn: Option<&[u8]>) {
    assert_eq!(connection.negotiated_cipher_suite().unwrap().suite(), dialect.suite);
    assert_eq!(alpn, Some(ALPN[0]));
}

/// Both ends have the same exporter, and so a login is bound to the connection in the same way.
async fn same_secret<Side>(connection: &ConnectionCommon<Side>, peer: &mut Peer) {
    let ours = exporter(connection).unwrap();
    let theirs = hex::decode(peer.line_after("Keying material: ").await).unwrap();
    let theirs: [u8; 32] = theirs.try_into().unwrap();

    assert_eq!(ours, theirs);
    assert_eq!(binder(&ours, b"hello", b"dm1.token"), binder(&theirs, b"hello", b"dm1.token"));
}

/// OpenSSL was told to change its keys and to ask for a change of ours, which comes with the next
/// thing that we say after hearing of it.
pub(crate) async fn new_keys<S: AsyncRead + AsyncWrite + Unpin>(ours: &mut S, peer: &mut Peer) {
    converse(ours, peer).await;
    converse(ours, peer).await;
    peer.notes(KEY_UPDATE_RECEIVED).await;
}

/// Several records in each direction.
pub(crate) async fn converse<S: AsyncRead + AsyncWrite + Unpin>(ours: &mut S, peer: &mut Peer) {
    // Digits alone: letters at the beginning of a line are commands to OpenSSL.
    let text: String = "0123456789".chars().cycle().take(DIGITS).collect();
    let text = text + "\n";

    in_time(ours.write_all(text.as_bytes())).await.unwrap();
    in_time(ours.flush()).await.unwrap();
    peer.says(&text).await;
    peer.tell(&text).await;
    let mut heard = vec![0; text.len()];
    in_time(ours.read_exact(&mut heard)).await.unwrap();

    assert_eq!(heard, text.as_bytes());
}
