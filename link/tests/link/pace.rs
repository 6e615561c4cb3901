//! How much viewers may say, before anything looks at what it is: `keep`, and the node's own bound.

use auth_core::token::flag;
use bytes::Bytes;
use futures_util::SinkExt;
use link_core::session::EARLY_SIGNS_MAX;
use proto::close::CloseCode;
use proto::control::{Fact, RoomFact, RoomSettings};
use proto::frame::{Downlink, Outcome, Uplink};
use proto::verdict::{Reason, Verdict};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, Pipe};
use crate::world::{APP, World, room};

const COMMENTS: u64 = 400;

#[tokio::test]
async fn a_share_of_a_rooms_comments_is_passed_on_and_all_of_its_moderators() {
    let world = World::with(bus::memory::Limits::default(), |config| {
        config.frames_per_s = 100_000;
        config.frames_burst = 100_000;
    })
    .await;
    let mut viewer = world.enter("tcp", "alice", "r").await;
    let mut moderator = world.connect("tcp").await;
    let token = world.token_with("tcp", "moderator", "r", |it| it.flags |= flag::MODERATOR);
    moderator.login(&token, "r").await.ok();
    keep(&world, 0).await;
    while viewer.refused(0).await.is_none() {}

    keep(&world, 250).await;
    // Which ones pass is fixed by their numbers.
    let mut cid = 0;
    while viewer.refused(cid).await.is_some() {
        cid += 1;
    }
    let refused = refusals(&mut viewer).await;

    let share = u64::try_from(refused.len()).unwrap() * 100 / COMMENTS;
    assert!((65..=85).contains(&share), "{share} % are refused");
    assert!(refused.iter().all(|it| it.0 == Reason::RoomBusy && it.1 > 0), "{refused:?}");
    assert_eq!(refusals(&mut moderator).await, []);

    keep(&world, 1000).await;
    while !refusals(&mut viewer).await.is_empty() {}
}

#[tokio::test]
async fn of_a_flood_that_nobody_knows_of_a_link_passes_on_a_burst() {
    let world = World::with(bus::memory::Limits::default(), |config| {
        config.frames_per_s = 100_000;
        config.frames_burst = 100_000;
    })
    .await;
    let mut viewer = world.enter("tcp", "alice", "r").await;
    let mut moderator = world.connect("tcp").await;
    let token = world.token_with("tcp", "moderator", "r", |it| it.flags |= flag::MODERATOR);
    moderator.login(&token, "r").await.ok();
    let settings = RoomSettings { items_per_s: 40, ..RoomSettings::default() };
    let fact = RoomFact { app: APP, room: room("r"), version: 100, open: true, settings };
    world.tell(Fact::Room(fact)).await;
    keep(&world, 0).await;
    while viewer.refused(0).await.is_none() {}
    keep(&world, 1000).await;
    while viewer.refused(0).await.is_some() {}

    let refused = refusals(&mut viewer).await;

    // A burst is a hundred of them; time goes on meanwhile.
    assert!((250..=310).contains(&refused.len()), "{} refused", refused.len());
    assert!(refused.iter().all(|it| it.0 == Reason::RoomBusy && it.1 > 0), "{refused:?}");
    assert_eq!(world.metric("link_capped_comments_total"), refused.len() as u64);
    assert_eq!(refusals(&mut moderator).await, []);
}

#[tokio::test]
async fn a_node_passes_on_so_many_comments_a_second() {
    let world =
        World::with(bus::memory::Limits::default(), |config| config.comments_per_s = 5).await;
    let mut alice = world.enter("tcp", "alice", "r").await;
    let mut bob = world.enter("tcp", "bob", "r").await;

    let mut refused = Vec::new();
    for cid in 0..10 {
        refused.extend(alice.refused(cid).await);
        refused.extend(bob.refused(cid).await);
    }

    let busy = |it: &Outcome| {
        matches!(it, Outcome::Verdict(Verdict::Drop { reason: Reason::Busy, retry_after_ms: 1.. }))
    };
    assert!(!refused.is_empty() && refused.iter().all(busy), "{refused:?}");
    assert!(world.metric("link_dropped_comments_total{reason=\"busy\"}") > 0);
    alice.lives().await;
}

#[tokio::test]
async fn a_client_that_only_pings_is_not_waited_for() {
    let world = World::new().await;
    let mut client = world.connect("ws").await;

    let Pipe::WebSocket(socket) = &mut client.pipe else { panic!("no WebSocket") };
    for _ in 0..=EARLY_SIGNS_MAX {
        socket.send(Message::Ping(Bytes::new())).await.unwrap();
    }

    assert_eq!(client.closed().await, CloseCode::RateLimited);
}

async fn keep(world: &World, keep_permille: u16) {
    world.tell(Fact::Keep { app: APP, room: room("r"), keep_permille }).await;
}

/// Says much at once; gives what the link itself refuses.
async fn refusals(client: &mut Client) -> Vec<(Reason, u32)> {
    let comments = (0..COMMENTS).map(|cid| crate::client::comment(cid, "may I").encode());
    let ping = Uplink::Ping { nonce: COMMENTS }.encode();
    let frames: Vec<_> = comments.chain([ping]).collect();
    client.send_bytes(&frames).await;
    let mut refused = Vec::new();
    loop {
        match client.receive().await {
            Downlink::Ack(ack) => match ack.outcome {
                Outcome::Verdict(Verdict::Drop { reason, retry_after_ms }) => {
                    refused.push((reason, retry_after_ms));
                }
                other => panic!("{other:?}"),
            },
            Downlink::Pong { .. } => return refused,
            other => panic!("{other:?}"),
        }
    }
}
