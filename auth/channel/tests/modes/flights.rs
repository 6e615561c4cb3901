//! What goes over the wire together: what a client says right behind its handshake, in one write
//! with the end of it, and what a server says first, with its ticket.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::site::{Site, in_time, pair};

/// Four times what a server reads of a handshake.
const FLIGHT_BYTES: usize = 64 * 1024;

#[tokio::test]
async fn all_of_a_long_flight_behind_the_handshake_arrives_in_both_modes() {
    let site = Site::new();
    let flight: Vec<u8> = (0..=u8::MAX).cycle().take(FLIGHT_BYTES).collect();
    for certs in [&site.tls, &site.national] {
        for server in [certs.server(&[]).unwrap(), site.server()] {
            let (mut near, far) = pair().await;
            let config = Arc::new(certs.client().unwrap().config());
            let name = ServerName::try_from("localhost").unwrap();
            let mut client = ClientConnection::new(config, name).unwrap();

            let saying = async {
                let last = finish(&mut client, &mut near, &flight).await;
                near.write_all(&last).await.unwrap();
            };
            let hearing = async {
                let mut stream = server.accept(far).await.unwrap();
                let mut heard = vec![0; FLIGHT_BYTES];
                stream.read_exact(&mut heard).await.unwrap();
                heard
            };
            let ((), heard) = in_time(async { tokio::join!(saying, hearing) }).await;

            assert!(heard == flight, "other bytes than were said");
        }
    }
}

#[tokio::test]
async fn a_ticket_goes_out_with_the_first_words_of_the_server() {
    let site = Site::new();
    let server = site.server();
    let (mut near, far) = pair().await;
    let config = Arc::new(site.tls.client().unwrap().config());
    let mut client =
        ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    let shaking = async {
        let last = finish(&mut client, &mut near, &[]).await;
        near.write_all(&last).await.unwrap();
    };
    let ((), stream) = in_time(async { tokio::join!(shaking, server.accept(far)) }).await;
    let mut stream = stream.unwrap();
    let mut near = near.into_std().unwrap();

    let silent = near.read(&mut [0; 1]).unwrap_err();
    stream.write_all(b"welcome").await.unwrap();
    stream.flush().await.unwrap();
    client.read_tls(&mut near).unwrap();
    client.process_new_packets().unwrap();

    assert_eq!(silent.kind(), ErrorKind::WouldBlock);
    assert_eq!(client.tls13_tickets_received(), 1);
    let mut heard = [0; 7];
    client.reader().read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"welcome");
}

/// Shakes hands up to the client's last message, and leaves it unsent with `flight` behind it.
pub(crate) async fn finish(
    client: &mut ClientConnection,
    near: &mut TcpStream,
    flight: &[u8],
) -> Vec<u8> {
    client.set_buffer_limit(None);
    near.write_all(&records(client)).await.unwrap();
    while client.is_handshaking() {
        let mut bytes = Vec::new();
        assert_ne!(near.read_buf(&mut bytes).await.unwrap(), 0, "the server left");
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            client.read_tls(&mut bytes).unwrap();
        }
        client.process_new_packets().unwrap();
    }
    client.writer().write_all(flight).unwrap();
    records(client)
}

/// Everything that a client has to send.
pub(crate) fn records(client: &mut ClientConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut records).unwrap();
    }
    records
}
