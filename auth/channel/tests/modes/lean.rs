//! Connections that leave rustls after their handshake, and clients that do not notice.

mod hostile;

use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

use channel::{ClientTls, Lean, ServerTls, Shaken, exporter};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream as ClientStream;

use crate::flights::finish;
use crate::site::{Site, in_time, pair};

/// More than sockets of loopback hold.
const LONG_BYTES: usize = 16 * 1024 * 1024;

#[tokio::test]
async fn both_ends_have_the_same_secret() {
    let site = Site::new();
    let (near, far) = pair().await;

    let (client, server) = (site.client(), site.server());
    let shaking = async { tokio::join!(connect(&client, near), server.accept_lean(far)) };
    let (client, shaken) = in_time(shaking).await;

    let Shaken::Lean(mut server) = shaken.unwrap() else { panic!("it is lean") };
    let secret = exporter(client.unwrap().get_ref().1).unwrap();
    assert_eq!(server.take_exporter(), Some(secret));
    assert_eq!(server.take_exporter(), None);
}

#[tokio::test]
async fn a_client_of_national_suites_stays_with_rustls() {
    let site = Site::new();
    for server in [site.server(), site.national.server(&[]).unwrap()] {
        let (near, far) = pair().await;
        let client = site.national.client().unwrap();

        let shaking = async { tokio::join!(connect(&client, near), server.accept_lean(far)) };
        let (client, shaken) = in_time(shaking).await;

        let (mut client, Shaken::Buffered(mut stream)) = (client.unwrap(), shaken.unwrap()) else {
            panic!("it is not lean")
        };
        in_time(stream.write_all(b"x")).await.unwrap();
        in_time(stream.flush()).await.unwrap();
        assert_eq!(in_time(client.read_u8()).await.unwrap(), b'x');
    }
}

#[tokio::test]
async fn a_client_comes_back_with_the_ticket_that_came_with_the_first_words() {
    let site = Site::new();
    let (tls, client) = (site.server(), site.client());

    let (mut first, mut server) = lean(&tls, &client).await;
    server.write_all(b"x").await.unwrap();
    in_time(first.read_u8()).await.unwrap();
    let (again, _server) = lean(&tls, &client).await;

    assert_eq!(first.get_ref().1.tls13_tickets_received(), 1);
    assert_eq!(again.get_ref().1.handshake_kind(), Some(HandshakeKind::Resumed));
}

#[tokio::test]
async fn what_is_said_at_length_arrives_in_both_directions_at_once() {
    let site = Site::new();
    let (client, server) = lean(&site.server(), &site.client()).await;
    let ((mut hears, mut says), (mut heard_by, mut said_by)) =
        (tokio::io::split(client), tokio::io::split(server));

    let all = async {
        tokio::join!(say(&mut says), say(&mut said_by), hear(&mut heard_by), hear(&mut hears))
    };
    let (_, _, by_server, by_client) = in_time(all).await;

    assert!(by_server == long() && by_client == long(), "other bytes than were said");
}

#[tokio::test]
async fn slices_are_sent_together_and_a_record_of_them_at_once() {
    let site = Site::new();
    let (mut client, mut server) = lean(&site.server(), &site.client()).await;
    let slices = [&b"one "[..], b"", b"two ", &[b'3'; 20_000]].map(IoSlice::new);

    let taken = server.write_vectored(&slices).await.unwrap();
    server.flush().await.unwrap();
    let mut heard = vec![0; taken];
    in_time(client.read_exact(&mut heard)).await.unwrap();

    assert_eq!(taken, 1 << 14);
    assert!(heard.starts_with(b"one two 333"));
}

#[tokio::test]
async fn a_reader_with_little_room_misses_nothing() {
    let site = Site::new();
    let (mut client, mut server) = lean(&site.server(), &site.client()).await;
    let text: Vec<u8> = (0..=u8::MAX).cycle().take(40_000).collect();

    client.write_all(&text).await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard: Vec<u8> = Vec::new();
    let mut room = [0; 7];
    loop {
        match in_time(server.read(&mut room)).await.unwrap() {
            0 => break,
            bytes => heard.extend(&room[..bytes]),
        }
    }

    assert!(heard == text, "other bytes than were said");
}

#[tokio::test]
async fn what_a_client_says_behind_its_handshake_arrives_however_it_is_cut() {
    let site = Site::new();
    let server = site.server();
    let flight: Vec<u8> = (0..=u8::MAX).cycle().take(64 * 1024).collect();
    for cut in [0, 1, 3, 5, 6, 7, 10, 60, 79, 80, 81, 100, 17_000] {
        let (mut near, far) = pair().await;
        let mut client = client(&site);

        let saying = async {
            let last = finish(&mut client, &mut near, &flight).await;
            near.set_nodelay(true).unwrap();
            let (one, other) = last.split_at(cut);
            near.write_all(one).await.unwrap();
            near.writable().await.unwrap();
            near.write_all(other).await.unwrap();
        };
        let hearing = async {
            let mut stream = accept(&server, far).await;
            let mut heard = vec![0; flight.len()];
            stream.read_exact(&mut heard).await.unwrap();
            heard
        };
        let both = Box::pin(async { tokio::join!(saying, hearing) });
        let ((), heard) = in_time(both).await;

        assert!(heard == flight, "other bytes than were said, cut at {cut}");
    }
}

#[tokio::test]
async fn a_goodbye_is_told_from_a_cut() {
    let site = Site::new();

    let (mut client, mut server) = lean(&site.server(), &site.client()).await;
    client.shutdown().await.unwrap();
    assert_eq!(in_time(server.read(&mut [0; 9])).await.unwrap(), 0);
    assert_eq!(in_time(server.read(&mut [0; 9])).await.unwrap(), 0);
    // Nothing more comes, but what is said still arrives.
    server.write_all(b"bye").await.unwrap();
    server.shutdown().await.unwrap();
    let mut heard = Vec::new();
    in_time(client.read_to_end(&mut heard)).await.unwrap();
    assert_eq!(heard, b"bye");

    let (client, mut server) = lean(&site.server(), &site.client()).await;
    drop(client.into_inner().0);
    let cut = in_time(server.read(&mut [0; 9])).await.unwrap_err();
    assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn after_its_goodbye_a_server_says_nothing() {
    let site = Site::new();
    let (_client, mut server) = lean(&site.server(), &site.client()).await;

    server.shutdown().await.unwrap();

    assert_eq!(server.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_kept_one_record_for() {
    let site = Site::new();
    let (mut client, mut server) = lean(&site.server(), &site.client()).await;
    let text = long();

    // Fills what the system holds, then one record is taken, and no other.
    let mut said = 0;
    while let Some(taken) = write_now(&mut server, &text[said..]).await {
        said += taken;
    }
    assert!(write_now(&mut server, &text[said..]).await.is_none());
    let flushing = async {
        server.flush().await.unwrap();
        server
    };
    let hearing = async {
        let mut heard = vec![0; said];
        client.read_exact(&mut heard).await.unwrap();
        heard
    };
    let (_server, heard) = in_time(async { tokio::join!(flushing, hearing) }).await;

    assert!(heard == text[..said], "other bytes than were said");
}

/// Writes what can be written at once; none when nothing can.
async fn write_now(server: &mut Lean<TcpStream>, bytes: &[u8]) -> Option<usize> {
    use std::task::Poll;
    std::future::poll_fn(|cx| match std::pin::Pin::new(&mut *server).poll_write(cx, bytes) {
        Poll::Ready(taken) => Poll::Ready(Some(taken.unwrap())),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

impl Site {
    fn client(&self) -> ClientTls {
        self.tls.client().unwrap()
    }
}

/// A client without a socket.
fn client(site: &Site) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::new(site.client().config()), name).unwrap()
}

async fn connect(client: &ClientTls, near: TcpStream) -> io::Result<ClientStream<TcpStream>> {
    client.connector().connect(ServerName::try_from("localhost").unwrap(), near).await
}

async fn accept(server: &ServerTls, far: TcpStream) -> Lean<TcpStream> {
    match server.accept_lean(far).await.unwrap() {
        Shaken::Lean(stream) => stream,
        Shaken::Buffered(_) => panic!("it is lean"),
    }
}

/// Both ends of a connection.
async fn lean(
    server: &ServerTls,
    client: &ClientTls,
) -> (ClientStream<TcpStream>, Lean<TcpStream>) {
    let (near, far) = pair().await;
    let shaking = async { tokio::join!(connect(client, near), accept(server, far)) };
    let (client, server) = in_time(shaking).await;
    (client.unwrap(), server)
}

fn long() -> Vec<u8> {
    (0..=250).cycle().take(LONG_BYTES).collect()
}

async fn say(stream: &mut (impl AsyncWrite + Unpin)) {
    stream.write_all(&long()).await.unwrap();
    stream.flush().await.unwrap();
}

async fn hear(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut heard = vec![0; LONG_BYTES];
    stream.read_exact(&mut heard).await.unwrap();
    heard
}
