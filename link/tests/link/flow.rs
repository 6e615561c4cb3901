//! The way of a comment up and of a flush down, over every transport.

use bus::memory::Limits;
use bytes::Bytes;
use proto::close::CloseCode;
use proto::control::Fact;
use proto::envelope::{Act, Reply};
use proto::frame::{
    Ack, Codec, Credential, Downlink, Join, JoinOutcome, Outcome, Path, Place, Resumed, Uplink,
    expand,
};
use proto::id::{Cid, Gen, ItemId, Seq, ViewerId};
use proto::load::LoadReport;
use proto::time::Wall;
use proto::verdict::Verdict;

use crate::world::{APP, NODE, SECRET, UNIT, World, flush, room};

#[tokio::test]
async fn comments_go_up_and_flushes_come_down_over_tcp() {
    check_transport("tcp").await;
}

#[tokio::test]
async fn comments_go_up_and_flushes_come_down_over_tls() {
    check_transport("tls").await;
}

#[tokio::test]
async fn comments_go_up_and_flushes_come_down_over_web_sockets() {
    check_transport("ws").await;
}

#[tokio::test]
async fn comments_go_up_and_flushes_come_down_over_secure_web_sockets() {
    check_transport("wss").await;
}

#[tokio::test]
async fn comments_go_up_and_flushes_come_down_over_the_national_suites() {
    check_transport("national").await;
}

#[tokio::test]
async fn comments_go_up_and_flushes_come_down_over_quic() {
    check_transport("quic").await;
}

async fn check_transport(transport: &str) {
    let mut world = World::new().await;
    let mut sender = world.enter(transport, "alice", "r").await;
    let mut reader = world.enter(transport, "bob", "r").await;

    sender.comment(5, "hello").await;
    let said = world.act(|it| matches!(it.act, Act::Comment { .. })).await;
    assert_eq!(said.viewer, ViewerId::parse("alice").unwrap());
    assert!(matches!(&said.act, Act::Comment { cid: Cid(5), text, .. } if text == "hello"));

    let ack = Ack { cid: Cid(5), outcome: Outcome::Verdict(Verdict::Admit(ItemId(99))) };
    world.reply(Reply::Ack { session: said.session, cid: ack.cid, outcome: ack.outcome }).await;
    assert_eq!(sender.receive().await, Downlink::Ack(ack));

    world.happen("r", vec![flush(0, 1..=3)]).await;
    let read = reader.receive_bytes().await;
    assert_eq!(sender.receive_bytes().await, read, "both get the same bytes");
    let Downlink::Batch(batch) = Downlink::decode(&read).unwrap() else { panic!() };
    assert_eq!(batch.items.len(), 3);
}

#[tokio::test]
async fn who_offers_a_codec_gets_the_same_items_in_fewer_bytes() {
    for transport in ["tcp", "ws", "tls"] {
        let (plain, packed, saved) = check_codec(World::new().await, transport).await;

        assert!(packed.len() < plain.len() * 2 / 3, "{transport}: {} bytes", packed.len());
        assert_eq!(*expand(&packed).unwrap(), plain[..]);
        // A message's header may be shorter by the six bytes that a longer length takes.
        let less = (plain.len() - packed.len()) as u64;
        assert!((less..=less + 6).contains(&saved), "{transport}: {saved} of {less}");
    }
}

#[tokio::test]
async fn a_node_that_compresses_nothing_says_so() {
    let world = World::with(Limits::default(), |it| it.compress = false).await;

    let (plain, packed, saved) = check_codec(world, "tcp").await;

    assert_eq!((packed, saved), (plain, 0));
}

/// What a session gets that offers no codec, what one gets that does, and what the node says that
/// it saved.
async fn check_codec(world: World, transport: &str) -> (Bytes, Bytes, u64) {
    let mut plain = world.enter(transport, "alice", "r").await;
    let mut packed = world.connect(transport).await;
    packed.offer.codecs = Codec::ALL.map(|it| it.name().to_owned()).into();
    packed.login(&world.token(transport, "bob", "r"), "r").await.ok();

    world.happen("r", vec![flush(0, 1..=20)]).await;

    let bytes = (plain.receive_bytes().await, packed.receive_bytes().await);
    (bytes.0, bytes.1, world.metric("link_saved_bytes_total"))
}

#[tokio::test]
async fn a_session_comes_back_with_its_ticket_and_misses_nothing() {
    for transport in ["tcp", "quic"] {
        check_resume(transport).await;
    }
}

async fn check_resume(transport: &str) {
    let world = World::new().await;
    let mut first = world.connect(transport).await;
    let login = first.login(&world.token(transport, "alice", "r"), "r").await.ok();
    world.happen("r", vec![flush(0, 1..=2)]).await;
    assert_eq!(first.batch().await.items.len(), 2);
    drop(first);
    world.happen("r", vec![flush(0, 3..=4), flush(1, 5..=5)]).await;

    let mut second = world.connect(transport).await;
    second.resume = Some(Place { gen_no: Gen(1), seq: Seq(3) });
    let again = second.login_with(Credential::ResumeTicket(login.resume_ticket), "r").await.ok();

    assert_ne!(again.session, login.session);
    assert!(matches!(
        again.rooms[0].outcome,
        JoinOutcome::In { resumed: Resumed::Recovered { items: 2 }, path: Path::Push, .. }
    ));
    assert_eq!(second.batch().await.items[0].seq, Seq(4));
    assert_eq!(second.batch().await.items[0].seq, Seq(5));
}

#[tokio::test]
async fn joins_and_leaves_are_told_and_counted() {
    let mut world = World::new().await;
    world.open_room("s").await;
    let token = world.token_with("tcp", "alice", "r", |claims| {
        claims.rooms = vec![room("r"), room("s")].try_into().unwrap();
    });
    let mut client = world.connect("tcp").await;
    client.login(&token, "r").await.ok();
    let alice = ViewerId::parse("alice").unwrap();
    world
        .act(|it| it.viewer == alice && matches!(it.act, Act::Join { .. }) && it.room == room("r"))
        .await;

    client.send(Uplink::Join(Join { room: room("s"), path: Path::Auto, resume: None })).await;
    assert!(matches!(client.receive().await, Downlink::Joined(it) if it.room == room("s")));
    world
        .act(|it| it.viewer == alice && matches!(it.act, Act::Join { .. }) && it.room == room("s"))
        .await;
    client.send(Uplink::Leave { room: room("r") }).await;
    world.act(|it| it.viewer == alice && it.act == Act::Leave && it.room == room("r")).await;
    drop(client);
    world.act(|it| it.viewer == alice && it.act == Act::Leave && it.room == room("s")).await;

    world.until("nobody is left", || world.metric("link_sessions") == 0).await;
}

#[tokio::test]
async fn a_kick_ends_the_session_and_refuses_its_tickets() {
    for transport in ["ws", "quic"] {
        check_kick(transport).await;
    }
}

async fn check_kick(transport: &str) {
    let world = World::new().await;
    let mut kicked = world.connect(transport).await;
    let login = kicked.login(&world.token(transport, "alice", "r"), "r").await.ok();
    let mut other = world.enter("tcp", "bob", "r").await;
    let unused = world.token("tcp", "alice", "r");

    let not_before = Wall(world.clock.wall().0 + 1000);
    let viewer = ViewerId::parse("alice").unwrap();
    world.tell(Fact::Kick { app: APP, room: room("r"), viewer, not_before }).await;

    assert_eq!(kicked.closed().await.name(), "kicked");
    let mut again = world.connect("tcp").await;
    assert_eq!(again.login(&unused, "r").await.code().name(), "kicked");
    let mut again = world.connect("tcp").await;
    let ticket = Credential::ResumeTicket(login.resume_ticket);
    assert_eq!(again.login_with(ticket, "r").await.code().name(), "kicked");
    other.lives().await;
}

#[tokio::test]
async fn one_session_is_closed_by_name() {
    let world = World::new().await;
    let mut client = world.connect("tls").await;
    let session = client.login(&world.token("tls", "alice", "r"), "r").await.ok().session;
    let mut other = world.enter("tls", "alice", "r").await;

    world.tell(Fact::Close { node: NODE, session, code: 3502 }).await;

    assert_eq!(client.closed().await.name(), "other_device");
    other.lives().await;
}

#[tokio::test]
async fn a_chatserver_can_end_a_session() {
    let mut world = World::new().await;
    let mut client = world.enter("ws", "alice", "r").await;
    let alice = ViewerId::parse("alice").unwrap();
    let session = world.act(|it| it.viewer == alice).await.session;

    world.reply(Reply::Close { session, code: CloseCode::Kicked }).await;

    assert_eq!(client.closed().await, CloseCode::Kicked);
}

#[tokio::test]
async fn a_node_that_drains_says_so_first_and_sends_everyone_elsewhere() {
    let collector = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = collector.local_addr().unwrap().to_string();
    let limits = Limits::default();
    let world = World::with(limits, |config| {
        config.collectors = vec![at];
        config.drain_ms = 50;
    })
    .await;
    let mut client = world.enter("tls", "alice", "r").await;
    let mut other = world.enter("quic", "bob", "r").await;

    let running = report(&collector, |it| it.load.sessions == 2).await;
    assert_eq!((running.node, running.unit), (NODE, UNIT));
    assert_eq!(running.addresses.len(), 6);
    assert!(!running.load.draining);

    world.shut_down();
    report(&collector, |it| it.load.draining).await;
    assert_eq!(client.closed().await.name(), "draining");
    assert_eq!(other.closed().await.name(), "draining");
    drop((client, other));
    world.ended().await;
}

/// The next report for which `pick` says so, its signature checked.
async fn report(
    collector: &tokio::net::UdpSocket,
    pick: impl Fn(&LoadReport) -> bool,
) -> LoadReport {
    use hmac::{Hmac, KeyInit, Mac};
    let mut datagram = [0; 2048];
    loop {
        let received = tokio::time::timeout(crate::world::PATIENCE, collector.recv(&mut datagram));
        let length = received.await.expect("no report came").unwrap();
        let (bytes, mac) = datagram[..length].split_at(length - 32);
        let mut expected = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        expected.update(bytes);
        assert_eq!(expected.finalize().into_bytes()[..], *mac);
        let report = LoadReport::decode(bytes).unwrap();
        if pick(&report) {
            return report;
        }
    }
}
