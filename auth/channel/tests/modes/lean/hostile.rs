//! Clients that mean harm, or do not know better.

use std::io::{ErrorKind, Write};

use channel::Lean;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustls::{AlertDescription, ClientConnection, Error};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{accept, client};
use crate::flights::{finish, records};
use crate::site::{Site, in_time, pair};

/// How a connection's bytes are bent.
#[derive(Clone, Debug)]
enum Deed {
    None,
    Flip { place: prop::sample::Index, change: u8 },
    Cut { place: prop::sample::Index },
    Insert { place: prop::sample::Index, bytes: Vec<u8> },
    Repeat { place: prop::sample::Index, bytes: usize },
}

fn deed() -> impl Strategy<Value = Deed> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        1 => Just(Deed::None),
        2 => (place(), 1_u8..).prop_map(|(place, change)| Deed::Flip { place, change }),
        1 => place().prop_map(|place| Deed::Cut { place }),
        2 => (place(), prop::collection::vec(any::<u8>(), 1..60))
            .prop_map(|(place, bytes)| Deed::Insert { place, bytes }),
        1 => (place(), 1..200_usize).prop_map(|(place, bytes)| Deed::Repeat { place, bytes }),
    ]
}

impl Deed {
    fn done_to(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::None => {}
            Self::Flip { place, change } => {
                let at = place.index(bytes.len());
                bytes[at] ^= change;
            }
            Self::Cut { place } => bytes.truncate(place.index(bytes.len())),
            Self::Insert { place, bytes: more } => {
                let at = place.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Repeat { place, bytes: count } => {
                let at = place.index(bytes.len());
                let again = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
        }
        bytes
    }
}

/// However the bytes are bent and in whatever pieces they come, what is heard is the beginning of
/// what was said, and all of it with the goodbye only if nothing was bent before that.
#[test]
fn no_bent_stream_is_heard_beyond_its_bend() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let site = Site::new();
    let sizes = prop::collection::vec(prop_oneof![4 => 0..100_usize, 1 => 0..40_000_usize], 1..6);
    let pieces = prop::collection::vec(1..3_000_usize, 1..8);
    let mut runner =
        TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(96) });

    runner
        .run(&(sizes, pieces, deed()), |(sizes, pieces, deed)| {
            let said: Vec<_> = sizes.iter().flat_map(|it| (0..=250).cycle().take(*it)).collect();
            let Heard { text, error, is_whole } =
                runtime.block_on(in_time(heard(&site, &sizes, &pieces, &deed)));

            prop_assert!(said.starts_with(&text));
            prop_assert_eq!(error.is_none(), is_whole);
            prop_assert!(!is_whole || text == said);
            Ok(())
        })
        .unwrap();
}

/// What came of a bent stream.
struct Heard {
    text: Vec<u8>,
    /// What it ended with; a goodbye is none.
    error: Option<ErrorKind>,
    /// Whether the stream began with all that the client had sent.
    is_whole: bool,
}

async fn heard(site: &Site, sizes: &[usize], pieces: &[usize], deed: &Deed) -> Heard {
    let server = site.server();
    let (mut near, far) = pair().await;
    let mut client = client(site);
    let saying = async {
        let last = finish(&mut client, &mut near, &[]).await;
        near.write_all(&last).await.unwrap();
        for bytes in sizes {
            let text: Vec<_> = (0..=250).cycle().take(*bytes).collect();
            client.writer().write_all(&text).unwrap();
        }
        client.refresh_traffic_keys().unwrap();
        client.send_close_notify();
        let honest = records(&mut client);
        let bent = deed.done_to(honest.clone());
        let mut bytes = &bent[..];
        for piece in pieces.iter().cycle() {
            let (now, later) = bytes.split_at((*piece).min(bytes.len()));
            // Whoever has heard enough hangs up.
            if bytes.is_empty() || near.write_all(now).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
            bytes = later;
        }
        drop(near.shutdown().await);
        (near, bent.starts_with(&honest))
    };
    let hearing = async {
        let mut stream = accept(&server, far).await;
        let mut text = Vec::new();
        let end = stream.read_to_end(&mut text).await;
        (text, end.err().map(|it| it.kind()))
    };
    let ((_near, is_whole), (text, error)) = tokio::join!(saying, hearing);
    Heard { text, error, is_whole }
}

#[tokio::test]
async fn a_forger_is_told_so_and_heard_no_more() {
    let site = Site::new();
    let (mut client, mut near, mut stream) = shaken(&site).await;
    client.writer().write_all(b"first").unwrap();
    let first = records(&mut client);
    client.writer().write_all(b"second").unwrap();
    let mut second = records(&mut client);
    *second.last_mut().unwrap() ^= 1;

    near.write_all(&[first, second].concat()).await.unwrap();
    let mut heard = [0; 99];
    let bytes = in_time(stream.read(&mut heard)).await.unwrap();
    let error = in_time(stream.read(&mut heard)).await.unwrap_err();
    let again = in_time(stream.read(&mut heard)).await.unwrap_err();

    assert_eq!(&heard[..bytes], b"first");
    assert_eq!((error.kind(), again.kind()), (ErrorKind::InvalidData, ErrorKind::InvalidData));
    assert_eq!(stream.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(told(&mut client, &mut near).await, AlertDescription::BadRecordMac);
}

#[tokio::test]
async fn a_record_that_is_not_sealed_is_refused() {
    let site = Site::new();
    // A change of ciphers, which has its place in a handshake; an alert; too long a record.
    for (record, alert) in [
        (&[20, 3, 3, 0, 1, 1][..], AlertDescription::UnexpectedMessage),
        (&[21, 3, 3, 0, 2, 1, 0], AlertDescription::UnexpectedMessage),
        (&[23, 3, 3, 0x41, 1], AlertDescription::RecordOverflow),
    ] {
        let (mut client, mut near, mut stream) = shaken(&site).await;

        near.write_all(record).await.unwrap();
        let error = in_time(stream.read(&mut [0; 9])).await.unwrap_err();

        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(told(&mut client, &mut near).await, alert);
    }
}

#[tokio::test]
async fn who_speaks_another_protocol_is_sent_away_at_once() {
    let site = Site::new();
    for server in [site.server(), site.tls.server(&[]).unwrap()] {
        let (mut near, far) = pair().await;
        near.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();

        let refused = in_time(server.accept_lean(far)).await;

        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidData);
        let mut alert = Vec::new();
        drop(in_time(near.read_to_end(&mut alert)).await);
        assert_eq!(alert.first(), Some(&21));
    }
}

#[tokio::test]
async fn a_hello_without_an_end_is_not_heard_out() {
    let site = Site::new();
    let (mut near, far) = pair().await;
    let server = site.server();
    // Full records of a message of 2^24 bytes.
    let header = [22, 3, 1, 0x40, 0];
    let begin = [&header[..], &[1, 0xff, 0xff, 0xff], &[0; (1 << 14) - 4]].concat();
    let more = [&header[..], &[0; 1 << 14]].concat();

    let saying = async {
        near.write_all(&begin).await.unwrap();
        while near.write_all(&more).await.is_ok() {}
    };
    let ((), refused) = in_time(async { tokio::join!(saying, server.accept_lean(far)) }).await;

    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidData);
}

#[tokio::test]
async fn a_client_that_leaves_in_its_handshake_is_let_go() {
    let site = Site::new();
    for bytes in [0, 3, 60] {
        let (mut near, far) = pair().await;
        let hello = records(&mut client(&site));
        near.write_all(&hello[..bytes]).await.unwrap();
        drop(near);

        let left = in_time(site.server().accept_lean(far)).await;

        assert_eq!(left.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}

/// A client and its socket after the handshake, and the server's end.
async fn shaken(site: &Site) -> (ClientConnection, TcpStream, Lean<TcpStream>) {
    let (mut near, far) = pair().await;
    let (mut client, server) = (client(site), site.server());
    let saying = async {
        let last = finish(&mut client, &mut near, &[]).await;
        near.write_all(&last).await.unwrap();
    };
    let ((), stream) = in_time(async { tokio::join!(saying, accept(&server, far)) }).await;
    (client, near, stream)
}

/// The alert that a client is told.
async fn told(client: &mut ClientConnection, near: &mut TcpStream) -> AlertDescription {
    let mut bytes = Vec::new();
    loop {
        let end = in_time(near.read_buf(&mut bytes)).await.unwrap();
        assert_ne!(end, 0, "the server said nothing");
        client.read_tls(&mut std::mem::take(&mut bytes).as_slice()).unwrap();
        match client.process_new_packets() {
            Ok(_) => {}
            Err(Error::AlertReceived(alert)) => return alert,
            Err(error) => panic!("{error}"),
        }
    }
}
