//! What a client says right behind its handshake, in one write with the end of it.

use std::io::Write;
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

/// Shakes hands up to the client's last message, and leaves it unsent with `flight` behind it.
async fn finish(client: &mut ClientConnection, near: &mut TcpStream, flight: &[u8]) -> Vec<u8> {
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
fn records(client: &mut ClientConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut records).unwrap();
    }
    records
}
