//! Links over QUIC: logins, networks that let no UDP pass, and clients that move.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use kit::clock::Clock;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::frame::{Path, Uplink};
use proto::suite::Suite;
use sdk::wire::WireError;
use sdk::{Options, Udp, raw};

use crate::link::{Link, STEP, address_of};
use crate::rooms::batch;
use crate::site::Site;
use crate::viewer::{Viewer, certificates, options};

/// A link, and what its viewers need.
async fn link(site: &Site) -> (Link, Options) {
    let certificates = certificates();
    let link =
        Link::bind(Transport::Quic, Some(certificates.server(&[]).expect("a certificate"))).await;
    let mut options = options(site, Path::Push);
    options.tls = Some(certificates.client().expect("an authority"));
    options.transports = vec![Transport::Quic, Transport::Tcp];
    (link, options)
}

#[tokio::test]
async fn a_login_is_bound_to_its_connection() {
    let site = Site::start(&Clock::system()).await;
    let (link, options) = link(&site).await;
    site.offer(&[link.address()], &[]);

    let mut viewer = Viewer::start(options);
    let (mut conn, login) = link.welcome(Path::Push).await;
    conn.batch(batch(0, 0, &[1, 2, 3])).await;

    assert_eq!(viewer.connected().await, link.address().port);
    assert_eq!(conn.suite, Suite::Tls);
    assert!(login.binder.is_some());
    assert_eq!(viewer.shown(3).await, [1, 2, 3]);
}

#[tokio::test]
async fn where_udp_does_not_pass_the_next_address_is_taken() {
    let site = Site::start(&Clock::system()).await;
    let (_, mut options) = link(&site).await;
    options.waits.connect = Duration::from_millis(300);
    let hole = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let tcp = Link::bind(Transport::Tcp, None).await;
    let nowhere = address_of(hole.local_addr().unwrap(), Transport::Quic);
    site.offer(&[nowhere, tcp.address()], &[]);

    let mut viewer = Viewer::start(options);
    let (_conn, _) = tcp.welcome(Path::Push).await;

    assert_eq!(viewer.connected().await, tcp.address().port);
}

#[tokio::test]
async fn clients_that_share_a_socket_go_on_together_from_another_address() {
    let site = Site::start(&Clock::system()).await;
    let (link, mut options) = link(&site).await;
    site.offer(&[link.address()], &[]);
    let udp = Udp::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    options.udp = Some(udp.clone());
    let mut viewers = [Viewer::start(options.clone()), Viewer::start(options)];
    let (mut first, _) = link.welcome(Path::Push).await;
    let (mut second, _) = link.welcome(Path::Push).await;
    for viewer in &mut viewers {
        viewer.connected().await;
    }
    assert_eq!(first.peer(), second.peer(), "one socket");

    udp.rebind((Ipv4Addr::new(127, 0, 0, 2), 0).into()).unwrap();
    for conn in [&mut first, &mut second] {
        conn.batch(batch(0, 0, &[1, 2, 3])).await;
    }

    for viewer in &mut viewers {
        assert_eq!(viewer.shown(3).await, [1, 2, 3]);
    }
}

#[tokio::test]
async fn the_code_of_a_connection_that_is_closed_without_a_frame_is_heard() {
    let site = Site::start(&Clock::system()).await;
    let (link, options) = link(&site).await;
    let tls = options.tls.unwrap();

    let address = link.address();
    let connecting = async {
        let mut raw = raw::connect(&address, Some(&tls), STEP).await.unwrap();
        raw.send(&Uplink::Ping { nonce: 1 }).await.unwrap();
        raw
    };
    let (mut raw, conn) = tokio::join!(connecting, link.accept());
    conn.hang_up(CloseCode::Full);

    let heard = raw.recv_bytes().await;

    assert!(matches!(heard, Err(WireError::Closed(Some(CloseCode::Full)))), "{heard:?}");
}

#[tokio::test]
async fn a_key_that_is_not_pinned_is_refused() {
    let site = Site::start(&Clock::system()).await;
    let (link, options) = link(&site).await;
    let pins = sdk::Pins { current: sdk::Pin([7; 32]), next: None };
    let tls = options.tls.unwrap().pinned(pins);

    let address = link.address();

    let refused = tokio::select! {
        connected = raw::connect(&address, Some(&tls), STEP) => connected,
        _ = link.accept() => panic!("the client connected"),
    };

    let text = format!("{:?}", refused.unwrap_err());
    assert!(text.contains("Unpinned"), "{text}");
}
