//! Items in; flushes, seals, segments and heads out.

use broadcaster_core::pack::{crc, expand};
use bus::{At, Publish, topic};
use proto::control::{Fact, RoomSettings, Segments};
use proto::envelope::{LinkGauges, RoomEvent, RoomGauge};
use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{AppId, ItemId, NodeId, Seq};
use proto::segment::Segment;
use proto::time::Wall;
use proto::verdict::{Fate, Reason};

use crate::get::get;
use crate::stage::{UNIT, World, comment, config, gift, room, settings};

#[tokio::test(flavor = "multi_thread")]
async fn items_take_the_same_places_on_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;

    world.admit(vec![comment(1), comment(2), gift(3)]).await;

    let mut sealed = world.sealed().await;
    let (gen_no, slot, placed) = sealed.flush_of(3).await;
    assert_eq!(placed.seq, Seq(1));
    sealed.seal_of(gen_no, slot).await;
    let mut downlink = world.downlink().await;
    assert_eq!(downlink.flush_of(3).await, (gen_no, slot, placed.clone()));
    let (items, seal_crc) = downlink
        .find(|event| match event {
            RoomEvent::Seal { items, crc, slot: at, .. } if at.0 == slot => Some((*items, *crc)),
            _ => None,
        })
        .await;

    let got = broadcaster.segment(gen_no, slot).await;
    assert_eq!(got.status, 200);
    let segment = Segment::decode(&expand(&got.body).unwrap()).unwrap();
    assert_eq!(segment.items[0], placed);
    assert_eq!(segment.items.len(), items as usize);
    assert_eq!(crc(segment.items.iter().map(|it| &it.item)), seal_crc);

    let head = broadcaster.head().await;
    assert!(head.slot.0 >= slot);
    assert_eq!((head.gen_no.0, head.interval_ms), (gen_no, 400));
    assert_eq!(head.tiers, [Tier::Full, Tier::Lite]);

    let json = get(broadcaster.addr, &format!("/dm/1/room-1/{gen_no}/lite/{slot}.json")).await;
    let json = expand(&json.body).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["items"][0]["id"], "3");
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_is_committed_after_the_seal() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;

    world.admit(vec![comment(1)]).await;
    let mut sealed = world.sealed().await;
    let (gen_no, slot, _) = sealed.flush_of(1).await;
    sealed.seal_of(gen_no, slot).await;
    broadcaster.stop().await;

    let accepted = topic::accepted();
    let partition = accepted.partition_of_room(&room());
    let committed = At::Committed("broadcaster".into());
    let committed = world.bus.locate(accepted.clone(), partition, committed).await.unwrap();
    assert_eq!(committed, world.bus.locate(accepted, partition, At::End).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_budget_cannot_show_is_told_as_shed() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(RoomSettings { items_per_s: 10, ..settings() }, true).await;
    let broadcaster = world.start(config(1)).await;

    world.admit((1..=100).map(comment).collect()).await;

    let mut sealed = world.sealed().await;
    let mut fates = 0;
    let mut shown = 0;
    while fates + shown < 100 {
        match sealed.next().await {
            RoomEvent::Fates { fates: told } => {
                let shed = Fate::Shed { reason: Reason::OverBudget };
                assert!(told.iter().all(|it| it.1 == shed), "{told:?}");
                fates += told.len();
            }
            RoomEvent::Flush { items, .. } => shown += items.len(),
            _ => {}
        }
    }
    assert!((20..=40).contains(&shown), "{shown}");
    let metrics = broadcaster.meter.render();
    assert!(metrics.contains("fate=\"over_budget\",lane=\"comment\""), "{metrics}");
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_says_something_before_a_room_is_open_is_told_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    // Only the first thousand of them wait for the room.
    for start in [1, 1001, 2001] {
        world.admit((start..start + 1000).map(comment).collect()).await;
    }
    world.admit(vec![gift(4000)]).await;
    let broadcaster = world.start(config(1)).await;
    world.set_room(settings(), true).await;

    let mut sealed = world.sealed().await;
    let (mut told, mut late, mut has_gift) = (0, 0, false);
    while told < 3001 {
        match sealed.next().await {
            RoomEvent::Fates { fates } => {
                told += fates.len();
                let is_late = |it: &&(ItemId, Fate)| it.1 == Fate::Shed { reason: Reason::Late };
                late += fates.iter().filter(is_late).count();
            }
            RoomEvent::Flush { items, .. } => {
                told += items.len();
                has_gift |= items.iter().any(|it| it.item.id == ItemId(4000));
            }
            _ => {}
        }
    }

    assert_eq!((told, late, has_gift), (3001, 2000, true));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_room_that_nobody_made_are_shed_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let broadcaster = world.start(config(1)).await;

    world.admit(vec![comment(1)]).await;

    let mut sealed = world.sealed().await;
    let fate = sealed
        .find(|event| match event {
            RoomEvent::Fates { fates } => Some(fates[0]),
            _ => None,
        })
        .await;
    assert_eq!(fate, (ItemId(1), Fate::Shed { reason: Reason::NoRoom }));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_room_ends_in_its_head_and_goes_on_in_a_new_gen() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let broadcaster = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;

    world.set_room(settings(), false).await;
    let mut head = broadcaster.head().await;
    while head.end.is_none() {
        tokio::task::yield_now().await;
        head = broadcaster.head().await;
    }
    assert_eq!(head.end, Some(head.slot));
    let after = broadcaster.segment(1, head.slot.0 + 1).await;
    assert_eq!((after.status, after.header("cache-control")), (410, "public, max-age=1"));

    world.set_room(settings(), true).await;
    sealed.seal_of(2, 0).await;
    assert_eq!(broadcaster.head().await.gen_no.0, 2);
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_room_turns_hot_and_writes_segments() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let auto = RoomSettings { segments: Segments::Auto, hot_sessions: 100, ..settings() };
    world.set_room(auto, true).await;
    let hold = broadcaster::Config { hot_hold_ms: 0, ..config(1) };
    let broadcaster = world.start(hold).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;
    assert_eq!(get(broadcaster.addr, "/dm/1/room-1/head.json").await.status, 404);

    let rooms =
        vec![RoomGauge { app: AppId(1), room: room(), people: 90, sessions: 100, offered: 0 }];
    let gauges = LinkGauges { node: NodeId(7), unit: UNIT, at: Wall(0), rooms };
    let topic = topic::gauges();
    let partition = topic.partition_of_room(&room());
    let value = gauges.encode();
    world.publish(Publish { topic, partition, term: None, key: None, value }).await;

    let (slot, online) = sealed
        .find(|event| match event {
            RoomEvent::Heat { heat: Heat::Hot, slot, online, .. } => Some((*slot, *online)),
            _ => None,
        })
        .await;
    assert_eq!(online, 90);
    sealed.seal_of(1, slot.0).await;
    let head = broadcaster.head().await;
    assert_eq!((head.heat, head.online), (Heat::Hot, 90));
    assert!(head.oldest < slot);
    assert!(is_hot_on_control(&world).await);
    broadcaster.stop().await;
}

async fn is_hot_on_control(world: &World) -> bool {
    let wait = std::time::Duration::ZERO;
    let partition = bus::PartitionNo(0);
    let from = world.bus.locate(topic::control(), partition, At::Oldest).await.unwrap();
    let records = world.bus.read(topic::control(), partition, from, 1000, wait).await.unwrap();
    let facts = records.iter().filter_map(|it| Fact::decode(&it.value).ok());
    facts.into_iter().any(|it| matches!(it, Fact::Heat { heat: Heat::Hot, .. }))
}
