//! A server of both modes, and handshakes with it.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use channel::{ClientTls, DevCerts, ServerStream, ServerTls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream as ClientStream;

/// Longer than any handshake here; a test that meets it has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// Certificates of both modes.
pub(crate) struct Site {
    pub(crate) tls: DevCerts,
    pub(crate) national: DevCerts,
    _dir: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let tls = DevCerts::load_or_create(&dir.path().join("tls"), &[]).unwrap();
        let national =
            DevCerts::load_or_create_national(&dir.path().join("national"), &[]).unwrap();
        Self { tls, national, _dir: dir }
    }

    /// A server that serves both.
    pub(crate) fn server(&self) -> ServerTls {
        self.tls.server(&[]).unwrap().beside(&self.national.server(&[]).unwrap())
    }
}

/// What both ends have of one handshake.
pub(crate) async fn shake(
    client: &ClientTls,
    server: &ServerTls,
) -> (io::Result<ClientStream<TcpStream>>, io::Result<ServerStream>) {
    let (near, far) = pair().await;
    let name = ServerName::try_from("localhost").unwrap();
    let shaking =
        async { tokio::join!(client.connector().connect(name, near), server.accept(far)) };
    in_time(shaking).await
}

/// Both ends of a TCP connection.
pub(crate) async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (far, _) = listener.accept().await.unwrap();
    (near, far)
}

/// The certificate that a client was shown.
pub(crate) fn shown(client: &ClientStream<TcpStream>) -> CertificateDer<'static> {
    client.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

/// The certificate that a client is shown by a server with these.
pub(crate) fn certificate_of(certs: &DevCerts) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(certs.chain_pem.as_bytes()).unwrap()
}

pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}
