//! What goes wrong for one viewer gets its code, and the others notice nothing.

use bytes::Bytes;
use proto::close::CloseCode;
use proto::frame::{Ack, Downlink, Outcome, Path, Uplink};
use proto::id::{Cid, Seq};
use proto::item::Lane;
use proto::verdict::{Reason, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::client::{Pipe, comment};
use crate::world::{World, flush, flush_of, placed};

#[tokio::test]
async fn each_bad_token_gets_its_code() {
    let world = World::new().await;
    let mut other = world.enter("tcp", "bob", "r").await;

    let wrong = world.token("tcp", "alice", "r").replace("dm1.AQ", "dm1.Ag");
    assert_eq!(refused(&world, &wrong).await, CloseCode::TokenInvalid);
    let mut forged = world.token("tcp", "alice", "r");
    let last = if forged.pop() == Some('A') { 'E' } else { 'A' };
    forged.push(last);
    assert_eq!(refused(&world, &forged).await, CloseCode::TokenInvalid);
    assert_eq!(refused(&world, "").await, CloseCode::TokenInvalid);
    let expired = world.token_with("tcp", "alice", "r", |claims| claims.iat_s -= 100);
    assert_eq!(refused(&world, &expired).await, CloseCode::TokenExpired);
    let elsewhere = world.token("ws", "alice", "r");
    assert_eq!(refused(&world, &elsewhere).await, CloseCode::TokenElsewhere);
    let elsewhere = world.connect("quic").await.login(&elsewhere, "r").await;
    assert_eq!(elsewhere.code(), CloseCode::TokenElsewhere);
    let once = world.token("tcp", "alice", "r");
    let mut first = world.connect("tcp").await;
    first.login(&once, "r").await.ok();
    assert_eq!(refused(&world, &once).await, CloseCode::TokenReplayed);

    first.lives().await;
    other.lives().await;
    assert_eq!(world.metric("link_logins_total{outcome=\"replayed\"}"), 1);
}

async fn refused(world: &World, token: &str) -> CloseCode {
    world.connect("tcp").await.login(token, "r").await.code()
}

#[tokio::test]
async fn a_stolen_token_does_not_pass_on_another_connection() {
    let world = World::new().await;

    for (transport, forged) in
        [("tls", None), ("tls", Some([7; 32])), ("quic", None), ("quic", Some([7; 32]))]
    {
        let mut client = world.connect(transport).await;
        client.forged_binder = Some(forged);
        let answer = client.login(&world.token(transport, "alice", "r"), "r").await;
        assert_eq!(answer.code(), CloseCode::BadBinder, "{transport} {forged:?}");
    }

    let mut browser = world.connect("wss").await;
    browser.forged_binder = Some(None);
    browser.login(&world.token("wss", "alice", "r"), "r").await.ok();
}

#[tokio::test]
async fn an_oversized_or_garbled_frame_ends_its_session_alone() {
    let world = World::new().await;
    let mut other = world.enter("tls", "bob", "r").await;

    for transport in ["tcp", "tls", "ws", "wss", "quic"] {
        let mut large = world.enter(transport, "alice", "r").await;
        large.send_bytes(&[Bytes::from(vec![3; 64 * 1024 + 1])]).await;
        assert_eq!(large.closed().await, CloseCode::FrameTooLarge, "{transport}");

        let mut garbled = world.enter(transport, "alice", "r").await;
        garbled.send_bytes(&[Bytes::from_static(b"\x03\0garbage garbage")]).await;
        assert_eq!(garbled.closed().await, CloseCode::BadFrame, "{transport}");

        let mut noise = world.connect(transport).await;
        noise.send_raw(&[0xff; 64]).await;
        let code = noise.closed().await;
        assert!(
            [CloseCode::FrameTooLarge, CloseCode::BadFrame].contains(&code),
            "{transport}: {}",
            code.name()
        );
    }

    other.lives().await;
    world.happen("r", vec![flush(0, 1..=1)]).await;
    assert_eq!(other.batch().await.items[0].seq, Seq(1));
}

#[tokio::test]
async fn a_comment_in_fragments_is_one_comment() {
    let mut world = World::new().await;
    let mut client = world.enter("ws", "alice", "r").await;
    let frame = comment(1, "弹幕 split inside a letter").encode();
    let cut = frame.windows(3).position(|it| it == "弹".as_bytes()).unwrap() + 1;
    let Pipe::WebSocket(socket) = &mut client.pipe else { unreachable!() };

    use futures_util::SinkExt;
    let pieces = [
        (OpCode::Data(Data::Binary), &frame[..cut], false),
        (OpCode::Data(Data::Continue), &frame[cut..], true),
    ];
    for (opcode, piece, last) in pieces {
        let piece = Frame::message(Bytes::copy_from_slice(piece), opcode, last);
        socket.send(Message::Frame(piece)).await.unwrap();
        socket.send(Message::Ping(Bytes::from_static(b"between"))).await.unwrap();
    }

    let said = world.act(|it| matches!(it.act, proto::envelope::Act::Comment { .. })).await;
    assert!(matches!(
        said.act,
        proto::envelope::Act::Comment { text, .. } if text == "弹幕 split inside a letter"
    ));
    client.lives().await;
}

#[tokio::test]
async fn a_page_from_elsewhere_may_not_connect() {
    let world = World::new().await;

    for (origin, status) in [
        ("http://localhost:8080", "HTTP/1.1 101"),
        ("https://example.com", "HTTP/1.1 403"),
        ("null", "HTTP/1.1 403"),
    ] {
        let authority = world.address("ws").authority();
        let mut tcp = tokio::net::TcpStream::connect(&authority).await.unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {authority}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        tcp.write_all(request.as_bytes()).await.unwrap();

        let mut answer = [0; 12];
        tcp.read_exact(&mut answer).await.unwrap();

        assert_eq!(String::from_utf8_lossy(&answer), status, "{origin}");
    }
}

#[tokio::test]
async fn a_slow_session_skips_and_slows_nobody() {
    let limits = bus::memory::Limits::default();
    let world = World::with(limits, |config| {
        config.outbox_bytes_max = 64 * 1024;
        config.ring_bytes_max = 4 * 1024 * 1024;
    })
    .await;
    let mut slow = world.enter("tcp", "slow", "r").await;
    let mut quick = world.enter("tcp", "quick", "r").await;
    let text = "x".repeat(500);

    for slot in 0..60 {
        let lane = if slot == 20 { Lane::HighGift } else { Lane::Comment };
        let first = slot * 50 + 1;
        let items = (first..first + 50).map(|seq| placed(seq, Lane::Comment, &text));
        let mut items: Vec<_> = items.collect();
        items[7].item.lane = lane;
        world.happen("r", vec![flush_of(slot, items)]).await;
        assert_eq!(quick.batch().await.items.len(), 50, "slot {slot}");
    }

    let (mut seen, mut skipped, mut gift) = (0, 0, false);
    while seen + skipped < 3000 {
        match slow.receive().await {
            Downlink::Batch(batch) => {
                seen += batch.items.len();
                gift |= batch.items.iter().any(|it| it.item.lane == Lane::HighGift);
            }
            Downlink::Skipped { items, .. } => skipped += items as usize,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(seen + skipped, 3000, "every item was shown or counted");
    assert!(skipped > 0 && gift, "{skipped} skipped");
    assert_eq!(world.metric("link_skipped_items_total"), skipped as u64);
    slow.lives().await;
}

#[tokio::test]
async fn a_session_that_takes_nothing_is_closed_as_slow() {
    let limits = bus::memory::Limits::default();
    let world = World::with(limits, |config| {
        config.outbox_bytes_max = 64 * 1024;
        config.write_ms_max = 100;
    })
    .await;
    let stuck = world.enter("tcp", "stuck", "r").await;
    let mut quick = world.enter("tcp", "quick", "r").await;
    let text = "x".repeat(1000);

    let is_closed = || world.metric("link_closes_total{code=\"slow\"}") == 1;
    for slot in 0..1000 {
        let first = slot * 50 + 1;
        let items = (first..first + 50).map(|seq| placed(seq, Lane::Comment, &text)).collect();
        world.happen("r", vec![flush_of(slot, items)]).await;
        quick.batch().await;
        if is_closed() {
            break;
        }
    }
    world.until("the stuck session is closed", is_closed).await;
    world.until("its place is free", || world.metric("link_sessions") == 1).await;
    drop(stuck);
}

#[tokio::test]
async fn a_full_bus_is_told_to_the_sender() {
    let limits = bus::memory::Limits { records_max: 4, ..Default::default() };
    let world = World::with(limits, |config| config.frames_burst = 1000).await;
    let mut client = world.enter("tcp", "alice", "r").await;

    let mut cid = 0;
    let (told, outcome) = loop {
        cid += 1;
        client.comment(cid, "is anybody there").await;
        client.send(Uplink::Ping { nonce: 1 }).await;
        if let Downlink::Ack(Ack { cid, outcome }) = client.receive().await {
            break (cid, outcome);
        }
        assert!(cid < 400, "the bus never filled");
    };

    let busy = Verdict::Drop { reason: Reason::Busy, retry_after_ms: 1000 };
    assert_eq!(outcome, Outcome::Verdict(busy));
    assert!((Cid(1)..=Cid(cid)).contains(&told));
}

#[tokio::test]
async fn a_guest_reads_and_does_not_send() {
    let world = World::new().await;
    let token = world.token_with("tcp", "guest", "r", |claims| {
        claims.flags = auth_core::token::flag::GUEST;
    });
    let mut guest = world.connect("tcp").await;
    guest.path = Path::Push;
    guest.login(&token, "r").await.ok();

    guest.comment(1, "may I").await;

    let outcome = Outcome::Verdict(Verdict::Drop { reason: Reason::ReadOnly, retry_after_ms: 0 });
    assert_eq!(guest.receive().await, Downlink::Ack(Ack { cid: Cid(1), outcome }));
}

#[tokio::test]
async fn a_full_node_says_when_to_come_back() {
    let limits = bus::memory::Limits::default();
    let world = World::with(limits, |config| config.sessions_max = 2).await;
    let _first = world.enter("tcp", "a", "r").await;
    world.until("the probe is gone", || world.metric("link_sessions") == 1).await;
    let mut second = world.enter("tcp", "b", "r").await;

    assert_eq!(refused(&world, &world.token("tcp", "c", "r")).await, CloseCode::Full);

    second.lives().await;
}
