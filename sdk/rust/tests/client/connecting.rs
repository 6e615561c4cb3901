//! Entering, addresses, refusals, transports, heartbeats, the end.

use std::time::Duration;

use bytes::Bytes;
use kit::clock::Clock;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::frame::{Close, Credential, Downlink, Path, Refused, Resumed, Uplink};
use proto::item::Style;
use sdk::{End, Event, SendRefusal, raw};

use crate::link::{Link, SERVER_MS, STEP, dead_address};
use crate::rooms::{batch, room};
use crate::site::Site;
use crate::viewer::{Viewer, certificates, options};

#[tokio::test]
async fn a_dead_address_costs_one_try_and_the_next_one_is_taken() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[dead_address().await, link.address()], &[]);

    let mut viewer = Viewer::start(options(&site, Path::Push));
    let (_conn, login) = link.welcome(Path::Push).await;

    assert_eq!(viewer.connected().await, link.address().port);
    let token = format!("token for {}", link.address().authority());
    assert_eq!(login.credential, Credential::Token(token), "the token of this address");
    assert_eq!(login.joins[0].room, room());
    assert_eq!(site.entered().len(), 1);
}

#[tokio::test]
async fn an_address_that_accepts_and_says_nothing_is_left_for_the_next() {
    let site = Site::start(&Clock::system()).await;
    let mute = Link::bind(Transport::Tcp, None).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[mute.address(), link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.waits.login = Duration::from_millis(100);

    let mut viewer = Viewer::start(options);
    let _silent = mute.accept().await;
    let (_conn, _) = link.welcome(Path::Push).await;

    assert_eq!(viewer.connected().await, link.address().port);
}

#[tokio::test]
async fn a_refusal_that_comes_back_is_waited_out_and_a_terminal_one_ends_it() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));

    refuse(&link, CloseCode::Full, 150).await;
    let first = viewer.next().await;
    refuse(&link, CloseCode::Banned, 0).await;
    let last = viewer.ended().await;

    let Event::Disconnected { code: Some(CloseCode::Full), retry_in } = first else {
        panic!("{first:?}");
    };
    assert!(retry_in >= Duration::from_millis(150), "the given delay is kept: {retry_in:?}");
    assert_eq!(last, Event::Ended(End::Code(CloseCode::Banned)));
    assert_eq!(site.entered().len(), 2, "refused at every address: enter is asked again");
}

#[tokio::test]
async fn enter_is_asked_again_when_it_is_busy_and_not_when_it_refuses_the_ticket() {
    let site = Site::start(&Clock::system()).await;
    site.refuse(503, "no_keys", 10);
    site.refuse(429, "rate_limited", 10);
    site.refuse(401, "ticket_expired", 0);

    let mut viewer = Viewer::start(options(&site, Path::Push));

    for _ in 0..2 {
        let event = viewer.next().await;
        assert!(matches!(event, Event::Disconnected { code: None, .. }), "{event:?}");
    }
    let Event::Ended(End::Enter(problem)) = viewer.ended().await else { panic!("another end") };
    assert_eq!(problem.code, "ticket_expired");
}

#[tokio::test]
async fn a_drained_node_is_left_for_the_addresses_it_names_with_the_resume_ticket() {
    let site = Site::start(&Clock::system()).await;
    let old = Link::bind(Transport::Tcp, None).await;
    let new = Link::bind(Transport::Tcp, None).await;
    site.offer(&[old.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));
    let (mut conn, _) = old.welcome(Path::Push).await;
    viewer.connected().await;

    let close = Close {
        code: CloseCode::Moved,
        reason: String::new(),
        retry_after_ms: 10,
        addresses: vec![new.address().authority()],
    };
    conn.send(&Downlink::Close(close)).await;
    let (_conn, login) = new.welcome(Path::Push).await;

    assert_eq!(login.credential, Credential::ResumeTicket("resume-1".to_owned()));
    assert_eq!(viewer.connected().await, new.address().port);
    assert_eq!(site.entered().len(), 1, "enter was not asked");
}

#[tokio::test]
async fn who_is_told_to_move_when_the_resume_ticket_is_too_old_gets_tokens_for_the_told_addresses()
{
    let site = Site::start(&Clock::system()).await;
    let old = Link::bind(Transport::Tcp, None).await;
    let new = Link::bind(Transport::Tcp, None).await;
    site.offer(&[old.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));
    let (mut conn, _) = old.welcome(Path::Push).await;
    viewer.connected().await;
    site.offer(&[old.address(), new.address()], &[]);

    let told = new.address().authority();
    let (code, reason) = (CloseCode::Moved, String::new());
    let addresses = vec![told.clone()];
    conn.send(&Downlink::Close(Close { code, reason, retry_after_ms: 0, addresses })).await;
    let resumed = refuse(&new, CloseCode::TokenExpired, 0).await;
    let (_conn, login) = new.welcome(Path::Push).await;

    assert!(matches!(resumed, Credential::ResumeTicket(_)));
    assert_eq!(login.credential, Credential::Token(format!("token for {told}")));
    assert_eq!(viewer.connected().await, new.address().port);
    let renewed: Vec<_> = site.entered().into_iter().skip(1).map(|it| it.renew).collect();
    assert_eq!(renewed, [Some(told)], "enter was asked for this address alone");
}

#[tokio::test]
async fn told_addresses_that_enter_does_not_know_are_given_up_for_those_that_it_names() {
    let site = Site::start(&Clock::system()).await;
    let old = Link::bind(Transport::Tcp, None).await;
    let gone = Link::bind(Transport::Tcp, None).await;
    site.offer(&[old.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));
    let (mut conn, _) = old.welcome(Path::Push).await;
    viewer.connected().await;

    let told = gone.address().authority();
    let (code, reason) = (CloseCode::Moved, String::new());
    let addresses = vec![told.clone()];
    conn.send(&Downlink::Close(Close { code, reason, retry_after_ms: 0, addresses })).await;
    site.refuse(404, "unknown_address", 0);
    refuse(&gone, CloseCode::TokenExpired, 0).await;
    let (_conn, _) = old.welcome(Path::Push).await;

    assert_eq!(viewer.connected().await, old.address().port);
    let renewed: Vec<_> = site.entered().into_iter().skip(1).map(|it| it.renew).collect();
    assert_eq!(renewed, [Some(told), None]);
}

#[tokio::test]
async fn a_resume_ticket_that_is_refused_is_replaced_by_a_token() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));
    let (conn, _) = link.welcome(Path::Push).await;
    viewer.connected().await;

    drop(conn);
    let login = refuse(&link, CloseCode::TokenInvalid, 0).await;
    let (_conn, again) = link.welcome(Path::Push).await;

    assert!(matches!(login, Credential::ResumeTicket(_)));
    assert!(matches!(again.credential, Credential::Token(_)));
    viewer.connected().await;
}

#[tokio::test]
async fn tokens_that_are_too_old_are_replaced_at_once() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));

    refuse(&link, CloseCode::TokenExpired, 0).await;
    let (_conn, again) = link.welcome(Path::Push).await;

    let event = viewer.next().await;
    assert!(matches!(event, Event::Connected { .. }), "no pause in between: {event:?}");
    assert!(matches!(again.credential, Credential::Token(_)));
    assert_eq!(site.entered().len(), 2);
}

#[tokio::test]
async fn a_link_that_finds_every_token_too_old_is_asked_no_more_than_twice_at_once() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));

    refuse(&link, CloseCode::TokenExpired, 0).await;
    refuse(&link, CloseCode::TokenExpired, 0).await;

    let event = viewer.next().await;
    let code = Some(CloseCode::TokenExpired);
    assert!(matches!(event, Event::Disconnected { code: found, .. } if found == code), "{event:?}");
    let (_conn, _) = link.welcome(Path::Push).await;
    viewer.connected().await;
    assert_eq!(site.entered().len(), 3);
}

#[tokio::test]
async fn tls_logins_are_bound_to_their_channel_in_both_directions() {
    let site = Site::start(&Clock::system()).await;
    let certificates = certificates();
    let tls = certificates.server(&[]).unwrap();
    let liar = Link::bind(Transport::Tls, Some(tls.clone())).await;
    let link = Link::bind(Transport::Tls, Some(tls)).await;
    site.offer(&[liar.address(), link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.tls = Some(certificates.client().unwrap());
    options.transports = vec![Transport::Tls];

    let mut viewer = Viewer::start(options);
    let mut conn = liar.accept().await;
    let login = conn.login().await;
    conn.let_in_with(&login, Path::Push, Resumed::Fresh, Some([0; 32])).await;
    let (_conn, login) = link.welcome(Path::Push).await;

    assert!(login.binder.is_some());
    assert_eq!(viewer.connected().await, link.address().port, "a false proof is no link");
}

#[tokio::test]
async fn web_sockets_carry_the_same_frames_plain_and_encrypted() {
    for transport in [Transport::Ws, Transport::Wss] {
        let site = Site::start(&Clock::system()).await;
        let certificates = certificates();
        let tls = (transport == Transport::Wss).then(|| certificates.server(&[]).unwrap());
        let link = Link::bind(transport, tls).await;
        site.offer(&[link.address()], &[]);
        let mut options = options(&site, Path::Push);
        options.tls = Some(certificates.client().unwrap());
        options.transports = vec![transport];

        let mut viewer = Viewer::start(options);
        let (mut conn, _) = link.welcome(Path::Push).await;
        conn.batch(batch(1, 0, &[1, 2])).await;

        assert_eq!(viewer.shown(2).await, [1, 2]);
        viewer.client.close();
        assert!(conn.recv().await.is_none(), "it says goodbye");
    }
}

#[tokio::test]
async fn an_encrypted_link_with_another_authority_gets_no_login() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    let stranger = certificates().server(&[]).unwrap();
    let false_link = Link::bind(Transport::Tls, Some(stranger.clone())).await;
    site.offer(&[false_link.address(), link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.tls = Some(certificates().client().unwrap());
    options.transports = vec![Transport::Tls, Transport::Tcp];

    let mut viewer = Viewer::start(options);
    let (_conn, _) = link.welcome(Path::Push).await;

    assert_eq!(viewer.connected().await, link.address().port);
}

#[tokio::test]
async fn the_heartbeat_keeps_to_the_link_s_rhythm_and_finds_a_dead_link() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.waits.pong = Duration::from_millis(150);
    let mut viewer = Viewer::start(options);
    let mut conn = link.accept().await;
    conn.heartbeat_ms = 100;
    let login = conn.login().await;
    conn.let_in(&login, Path::Push, Resumed::Fresh).await;
    viewer.connected().await;

    for expected in 1..=3 {
        let Some(Uplink::Ping { nonce }) = conn.recv().await else { panic!("no Ping") };
        assert_eq!(nonce, expected);
        conn.send(&Downlink::Pong { nonce, server_ms: SERVER_MS }).await;
    }
    assert!(matches!(conn.recv().await, Some(Uplink::Ping { .. })));

    let event = viewer.next().await;
    assert!(matches!(event, Event::Disconnected { code: None, .. }), "{event:?}");
}

#[tokio::test]
async fn frames_that_are_too_long_or_no_frames_end_the_connection_not_the_client() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));

    for bytes in [&[0xff, 0xff, 0xff, 0xff][..], &[0, 0, 0, 0], &[0, 0, 0, 3, 1, 0, 9]] {
        let (mut conn, _) = link.welcome(Path::Push).await;
        viewer.connected().await;
        conn.send_bytes(bytes).await;
        let event = viewer.next().await;
        assert!(matches!(event, Event::Disconnected { code: None, .. }), "{event:?}");
    }
    let (_conn, _) = link.welcome(Path::Push).await;
    viewer.connected().await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_at_once() {
    let site = Site::start(&Clock::system()).await;
    site.refuse(503, "no_keys", 60_000);
    let mut options = options(&site, Path::Push);
    options.bounds.sends_max = 2;
    let Viewer { client, .. } = &Viewer::start(options);
    let send = |text: &str| client.send(&room(), text, Style::default(), None);

    let long = "x".repeat(proto::limits::TEXT_BYTES_MAX + 1);
    let elsewhere = proto::id::RoomId::parse("room-2").unwrap();

    assert_eq!(send(&long), Err(SendRefusal::TooLong));
    assert_eq!(client.like(&elsewhere, 1), Err(SendRefusal::NoRoom));
    let (first, second) = (send("one").unwrap(), send("two").unwrap());
    assert_eq!(second.0, first.0 + 1);
    assert_eq!(send("three"), Err(SendRefusal::Full));
    assert_eq!(client.like(&room(), 1), Err(SendRefusal::Full));
}

#[tokio::test]
async fn a_client_that_is_closed_says_so_and_ends() {
    let site = Site::start(&Clock::system()).await;
    let link = Link::bind(Transport::Tcp, None).await;
    site.offer(&[link.address()], &[]);
    let mut viewer = Viewer::start(options(&site, Path::Push));
    let (mut conn, _) = link.welcome(Path::Push).await;
    viewer.connected().await;
    let client = viewer.client.clone();

    client.close();

    assert_eq!(viewer.ended().await, Event::Ended(End::Closed));
    assert!(conn.recv().await.is_none());
    assert_eq!(client.like(&room(), 1), Err(SendRefusal::Ended));
}

#[tokio::test]
async fn a_connection_by_hand_sends_anything() {
    let link = Link::bind(Transport::Tcp, None).await;
    let mut by_hand = raw::connect(&link.address(), None, STEP).await.unwrap();
    let mut conn = link.accept().await;

    by_hand.send_bytes(Bytes::from_static(&[0, 0, 0])).await.unwrap();
    by_hand.send_bytes(Bytes::from_static(&[9])).await.unwrap();
    let ping = Uplink::Ping { nonce: 3 };
    by_hand.send_bytes(ping.encode().slice(..9)).await.unwrap();
    let credential = Credential::Token("token".to_owned());
    by_hand.login(credential.clone(), None, Vec::new()).await.unwrap();

    let nine_bytes = conn.recv_anything().await.unwrap();
    assert_eq!(nine_bytes, ping.encode().slice(..9));
    assert_eq!(conn.login().await.credential, credential);
    assert!(matches!(by_hand.recv().await, Ok(Downlink::Welcome(_))));
}

async fn refuse(link: &Link, code: CloseCode, retry_after_ms: u32) -> Credential {
    let mut conn = link.accept().await;
    let login = conn.login().await;
    let reason = String::new();
    let refused = Refused { code, reason, retry_after_ms, server_ms: SERVER_MS };
    conn.send(&Downlink::Refused(refused)).await;
    login.credential
}
