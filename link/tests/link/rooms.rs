//! How rooms are delivered: heat, paths, closing, counting.

use std::sync::Arc;

use auth_core::token::cap;
use bus::tail::{Tail, Tailed};
use bus::{At, Bus};
use proto::close::CloseCode;
use proto::control::{Fact, RoomFact, RoomSettings};
use proto::envelope::{LinkGauges, RoomEvent, RoomGauge};
use proto::frame::{Control, Downlink, Join, JoinOutcome, Path, Uplink};
use proto::heat::Heat;
use proto::id::{Gen, Seq, SlotNo, ViewerId};
use proto::time::Wall;

use crate::client::Answer;
use crate::world::{APP, NODE, PATIENCE, World, flush, room};

#[tokio::test]
async fn a_hot_room_is_pushed_to_the_switch_and_then_to_promoted_sessions_only() {
    let world = World::new().await;
    let mut auto = world.enter("tcp", "auto", "r").await;
    let mut plain = world.connect("tcp").await;
    plain.path = Path::Push;
    plain.login(&world.token("tcp", "plain", "r"), "r").await.ok();
    let mut promoted = world.connect("tcp").await;
    promoted.path = Path::Push;
    let token = world.token_with("tcp", "promoted", "r", |it| it.caps = cap::PROMOTED);
    promoted.login(&token, "r").await.ok();

    let hot = RoomEvent::Heat { heat: Heat::Hot, gen_no: Gen(1), slot: SlotNo(6), online: 9 };
    world.happen("r", vec![flush(4, 1..=1), hot, flush(5, 2..=2), flush(6, 3..=3)]).await;
    let cold = RoomEvent::Heat { heat: Heat::Cold, gen_no: Gen(1), slot: SlotNo(8), online: 2 };
    world.happen("r", vec![flush(7, 4..=4), cold, flush(8, 5..=5)]).await;

    for client in [&mut auto, &mut plain] {
        assert_eq!(told(client).await, "1 | Hot from 6 | 2 | Cold from 8 | 5");
    }
    assert_eq!(told(&mut promoted).await, "1 | Hot from 6 | 2 | 3 | 4 | Cold from 8 | 5");
}

#[tokio::test]
async fn a_session_that_comes_before_an_announced_switch_is_told_of_it() {
    let world = World::new().await;
    let mut first = world.enter("tcp", "first", "r").await;
    let hot = RoomEvent::Heat { heat: Heat::Hot, gen_no: Gen(1), slot: SlotNo(6), online: 9 };
    world.happen("r", vec![flush(4, 1..=1), hot]).await;
    first.batch().await;

    let mut late = world.enter("tcp", "late", "r").await;
    world.happen("r", vec![flush(5, 5..=5)]).await;

    assert_eq!(told(&mut late).await, "Hot from 6 | 5");
}

#[tokio::test]
async fn a_session_on_segments_gets_news_only() {
    let world = World::new().await;
    let mut poller = world.connect("tcp").await;
    poller.path = Path::Segments;
    let login = poller.login(&world.token("tcp", "poller", "r"), "r").await.ok();
    assert!(matches!(login.rooms[0].outcome, JoinOutcome::In { path: Path::Segments, .. }));

    world.happen("r", vec![flush(1, 1..=1)]).await;
    let hot = RoomEvent::Heat { heat: Heat::Hot, gen_no: Gen(1), slot: SlotNo(2), online: 9 };
    world.happen("r", vec![hot]).await;

    assert!(matches!(poller.receive().await, Downlink::Control(Control::Heat { .. })));
}

#[tokio::test]
async fn a_closed_room_is_told_and_not_entered() {
    let world = World::new().await;
    let mut client = world.enter("tcp", "alice", "r").await;

    world
        .tell(Fact::Room(RoomFact {
            app: APP,
            room: room("r"),
            version: 2,
            open: false,
            settings: RoomSettings::default(),
        }))
        .await;

    assert_eq!(client.receive().await, Downlink::Control(Control::Closed { room: room("r") }));
    let mut late = world.connect("tcp").await;
    let Answer::In(ok) = late.login(&world.token("tcp", "bob", "r"), "r").await else { panic!() };
    assert!(matches!(
        ok.rooms[0].outcome,
        JoinOutcome::Refused { code: CloseCode::RoomClosed, .. }
    ));
}

#[tokio::test]
async fn a_banned_viewer_is_out_until_the_ban_ends() {
    let world = World::new().await;
    let mut client = world.enter("tcp", "alice", "r").await;
    let viewer = ViewerId::parse("alice").unwrap();
    let ban = |until| Fact::Ban { app: APP, room: room("r"), viewer: viewer.clone(), until };

    world.tell(ban(Wall(u64::MAX))).await;
    assert_eq!(client.closed().await, CloseCode::Banned);
    let mut again = world.connect("tcp").await;
    let ok = again.login(&world.token("tcp", "alice", "r"), "r").await.ok();
    assert!(matches!(ok.rooms[0].outcome, JoinOutcome::Refused { code: CloseCode::Banned, .. }));
}

#[tokio::test]
async fn who_joins_its_room_again_is_told_so_and_misses_nothing_that_waits() {
    let world = World::new().await;
    let mut client = world.enter("tcp", "alice", "r").await;
    let rounds = 20;

    for round in 0..rounds {
        let (first, last) = (round * 2 + 1, round * 2 + 2);
        world.happen("r", vec![flush(round, first..=first), flush(round, last..=last)]).await;
        let (path, resume) = (Path::Auto, None);
        client.send(Uplink::Join(Join { room: room("r"), path, resume })).await;
    }

    let (mut seqs, mut answers) = (Vec::new(), 0);
    while seqs.len() < 40 || answers < rounds {
        match client.receive().await {
            Downlink::Batch(batch) => seqs.extend(batch.items.iter().map(|it| it.seq.0)),
            Downlink::Joined(it) if matches!(it.outcome, JoinOutcome::In { .. }) => answers += 1,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(seqs, (1..=40).collect::<Vec<_>>());
}

#[tokio::test]
async fn people_and_sessions_are_counted_apart_and_comments_with_them() {
    let world = World::new().await;
    let topic = bus::topic::gauges();
    let bus = Arc::clone(&world.bus) as Arc<dyn Bus>;
    let mut gauges = Tail::open(bus, topic.clone(), Tail::all(&topic), At::End).await.unwrap();
    let mut first = world.enter("tcp", "alice", "r").await;
    let _second = world.enter("ws", "alice", "r").await;
    let _third = world.enter("ws", "bob", "r").await;
    first.comment(1, "one").await;
    first.comment(2, "two").await;
    first.lives().await;

    let mut offered = 0;
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            let gauge = next_gauge(&mut gauges).await;
            offered += gauge.offered;
            if (gauge.people, gauge.sessions, offered) == (2, 3, 2) {
                return;
            }
        }
    });
    found.await.expect("the counts never came");

    drop((first, _second, _third));
    let found = tokio::time::timeout(PATIENCE, async {
        while next_gauge(&mut gauges).await.sessions > 0 {}
    });
    found.await.expect("the room never emptied");
}

async fn next_gauge(tail: &mut Tail) -> RoomGauge {
    loop {
        let Tailed::Records(records) = tail.next(1).await.unwrap() else { continue };
        let gauges = LinkGauges::decode(&records[0].value).unwrap();
        assert_eq!(gauges.node, NODE);
        if let Some(gauge) = gauges.rooms.into_iter().find(|it| it.room == room("r")) {
            return gauge;
        }
    }
}

/// What came, up to the item with seq 5.
async fn told(client: &mut crate::client::Client) -> String {
    let mut lines = Vec::new();
    loop {
        match client.receive().await {
            Downlink::Batch(batch) => {
                lines.extend(batch.items.iter().map(|it| it.seq.to_string()));
                if batch.items.iter().any(|it| it.seq == Seq(5)) {
                    return lines.join(" | ");
                }
            }
            Downlink::Control(Control::Heat { heat, slot, .. }) => {
                lines.push(format!("{heat:?} from {slot}"));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
}
