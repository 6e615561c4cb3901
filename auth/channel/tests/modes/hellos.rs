//! Hellos that no client of ours sends: mixed offers, old versions, endless ones.

use std::io;

use channel::ServerTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::site::{Site, in_time, pair};

/// What a server answers first.
#[derive(Debug, Eq, PartialEq)]
enum Answer {
    /// A ServerHello with this suite; a request for another share is one.
    Suite(u16),
    /// An alert with this number.
    Alert(u8),
}

// Suites, RFC 8446, appendix B.4; RFC 8998, section 2; RFC 5289, section 3.2.
const AES_128_GCM: u16 = 0x1301;
const SM4_GCM: u16 = 0x00C6;
const SM4_CCM: u16 = 0x00C7;
const ECDHE_RSA_AES_128_GCM: u16 = 0xC02F;
// Versions and alerts, RFC 8446, sections 4.2.1 and 6.
const TLS_1_3: u16 = 0x0304;
const TLS_1_2: u16 = 0x0303;
const HANDSHAKE_FAILURE: u8 = 40;
const PROTOCOL_VERSION: u8 = 70;

#[tokio::test]
async fn national_suites_alone_are_answered_in_kind() {
    let server = Site::new().server();

    let offers: [&[u16]; 3] = [&[SM4_GCM], &[SM4_CCM, SM4_GCM], &[0x2A2A, SM4_GCM, 0x00FF, 0x5600]];
    for suites in offers {
        let answer = answer(&server, &hello(suites, &[TLS_1_3])).await;
        assert_eq!(answer, Answer::Suite(SM4_GCM), "{suites:04x?}");
    }
}

#[tokio::test]
async fn an_offer_of_both_kinds_never_gets_a_national_suite() {
    let server = Site::new().server();

    for suites in [[SM4_GCM, AES_128_GCM], [AES_128_GCM, SM4_GCM]] {
        let answer = answer(&server, &hello(&suites, &[TLS_1_3])).await;
        assert_eq!(answer, Answer::Suite(AES_128_GCM), "{suites:04x?}");
    }
    let with_old = hello(&[SM4_GCM, ECDHE_RSA_AES_128_GCM], &[TLS_1_3, TLS_1_2]);
    assert_eq!(answer(&server, &with_old).await, Answer::Alert(HANDSHAKE_FAILURE));
}

#[tokio::test]
async fn what_a_server_does_not_speak_ends_with_an_alert() {
    let site = Site::new();
    let (tls, national) = (site.tls.server(&[]).unwrap(), site.national.server(&[]).unwrap());

    let sm_only = answer(&tls, &hello(&[SM4_GCM], &[TLS_1_3])).await;
    let no_sm = answer(&national, &hello(&[AES_128_GCM], &[TLS_1_3])).await;
    let ccm_only = answer(&national, &hello(&[SM4_CCM], &[TLS_1_3])).await;

    assert_eq!(sm_only, Answer::Alert(HANDSHAKE_FAILURE));
    assert_eq!(no_sm, Answer::Alert(HANDSHAKE_FAILURE));
    assert_eq!(ccm_only, Answer::Alert(HANDSHAKE_FAILURE));
}

#[tokio::test]
async fn tls_1_2_alone_is_refused_by_every_server() {
    let site = Site::new();
    let servers =
        [site.tls.server(&[]).unwrap(), site.national.server(&[]).unwrap(), site.server()];

    for server in servers {
        let answer = answer(&server, &hello(&[ECDHE_RSA_AES_128_GCM], &[TLS_1_2])).await;
        assert_eq!(answer, Answer::Alert(PROTOCOL_VERSION));
    }
}

#[tokio::test]
async fn a_hello_without_end_is_given_up_after_16_kib() {
    let site = Site::new();
    for server in [site.tls.server(&[]).unwrap(), site.server()] {
        let (mut near, far) = pair().await;
        let record = [&[22, 3, 1, 0x0F, 0xFF][..], &[0; 0x0FFF]].concat();
        // A hello that says it has 60,000 bytes, in records of 4 KiB.
        let first = [&[22, 3, 1, 0, 4][..], &[1, 0, 0xEA, 0x60]].concat();

        let sending = async {
            near.write_all(&first).await.ok();
            while near.write_all(&record).await.is_ok() {}
        };
        let (error, ()) = in_time(async { tokio::join!(refused(&server, far), sending) }).await;

        assert_eq!(error.to_string(), "a handshake of more than 16384 bytes");
    }
}

async fn refused(server: &ServerTls, far: TcpStream) -> io::Error {
    server.accept(far).await.expect_err("a handshake that cannot end")
}

/// What a server answers to these bytes.
async fn answer(server: &ServerTls, hello: &[u8]) -> Answer {
    let (mut near, far) = pair().await;
    let reading = async {
        near.write_all(hello).await.unwrap();
        let mut header = [0; 5];
        near.read_exact(&mut header).await.unwrap();
        let mut body = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
        near.read_exact(&mut body).await.unwrap();
        drop(near);
        match header[0] {
            21 => Answer::Alert(body[1]),
            22 => {
                assert_eq!(body[0], 2, "ServerHello");
                let session = usize::from(body[38]);
                Answer::Suite(u16::from_be_bytes([body[39 + session], body[40 + session]]))
            }
            other => panic!("a record of type {other}"),
        }
    };
    let (answer, accepted) = in_time(async { tokio::join!(reading, server.accept(far)) }).await;
    accepted.expect_err("the client left");
    answer
}

/// A ClientHello in one record. It has no share, so that a server that takes it asks for one.
fn hello(suites: &[u16], versions: &[u16]) -> Vec<u8> {
    let groups = listed(2, &[41, 0x001D, 0x0017]);
    let schemes = listed(2, &[0x0708, 0x0403, 0x0804]);
    let extensions = [
        extension(43, &listed(1, versions)),
        extension(10, &groups),
        extension(13, &schemes),
        extension(51, &listed(2, &[])),
    ]
    .concat();
    let body = [
        &TLS_1_2.to_be_bytes()[..],
        &[9; 32],
        &[0],
        &listed(2, suites),
        &[1, 0],
        &length(2, &extensions),
        &extensions,
    ]
    .concat();
    let message = [&[1][..], &length(3, &body), &body].concat();
    [&[22, 3, 1][..], &length(2, &message), &message].concat()
}

fn extension(number: u16, content: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &length(2, content), content].concat()
}

/// Numbers behind their length, which has `width` bytes.
fn listed(width: usize, numbers: &[u16]) -> Vec<u8> {
    let content: Vec<u8> = numbers.iter().flat_map(|it| it.to_be_bytes()).collect();
    [length(width, &content), content].concat()
}

fn length(width: usize, content: &[u8]) -> Vec<u8> {
    content.len().to_be_bytes()[size_of::<usize>() - width..].to_vec()
}
