//! A broadcaster ends, and a room goes on.

use broadcaster_core::pack::expand;
use proto::envelope::RoomEvent;
use proto::id::ItemId;
use proto::segment::Segment;
use proto::verdict::Fate;

use crate::stage::{World, comment, config, gift, settings};

#[tokio::test(flavor = "multi_thread")]
async fn after_a_lost_bus_a_new_gen_follows_and_no_gift_is_sealed_twice() {
    let folder = tempfile::tempdir().unwrap();
    let before = World::new(folder.path());
    before.set_room(settings(), true).await;
    let first = before.start(config(1)).await;
    before.admit(vec![gift(1), comment(2)]).await;
    let mut sealed = before.sealed().await;
    let (_, slot, placed) = sealed.flush_of(1).await;
    sealed.seal_of(1, slot).await;
    first.kill();

    let after = World::new(folder.path());
    after.set_room(settings(), true).await;
    let second = after.start(config(1)).await;
    after.admit(vec![gift(1), gift(3)]).await;

    let mut sealed = after.sealed().await;
    let mut told = None;
    let flushed = loop {
        match sealed.next().await {
            RoomEvent::Fates { fates } => told = fates.first().copied(),
            RoomEvent::Flush { gen_no, items, .. } => break (gen_no, items),
            _ => {}
        }
    };
    assert_eq!(flushed.0.0, 2);
    assert_eq!(flushed.1.iter().map(|it| it.item.id.0).collect::<Vec<_>>(), [3]);
    let Some((ItemId(1), Fate::Sealed { gen_no, seq, slot: at })) = told else {
        panic!("the gift's first place was not told: {told:?}");
    };
    assert_eq!((gen_no.0, seq, at.0), (1, placed.seq, slot));

    sealed.seal_of(2, 0).await;
    let head = second.head().await;
    assert_eq!(head.gen_no.0, 2);
    assert_eq!(second.segment(1, slot).await.status, 200);
    let over = second.segment(1, slot + 100).await;
    assert_eq!((over.status, over.header("cache-control")), (410, "public, max-age=1"));
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_gen_is_still_served_after_two_lost_buses() {
    let folder = tempfile::tempdir().unwrap();
    for gen_no in 1..=3 {
        let world = World::new(folder.path());
        world.set_room(settings(), true).await;
        let running = world.start(config(1)).await;
        world.sealed().await.seal_of(gen_no, 0).await;

        for earlier in 1..=gen_no {
            assert_eq!(running.segment(earlier, 0).await.status, 200, "{earlier} in {gen_no}");
        }
        running.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_broadcaster_goes_on_with_the_gen_when_one_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let first = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;
    world.admit(vec![gift(1), comment(2)]).await;
    let (_, _, last) = sealed.flush_of(2).await;
    first.kill();
    let second = world.start(config(2)).await;
    world.admit(vec![gift(1), comment(3)]).await;

    let (gen_no, slot, placed) = sealed.flush_of(3).await;
    assert_eq!((gen_no, placed.seq.0), (1, last.seq.0 + 1));
    sealed.seal_of(1, slot).await;

    let mut slots = Vec::new();
    let mut ids = Vec::new();
    for at in 0..=slot {
        let got = second.segment(1, at).await;
        assert_eq!(got.status, 200, "slot {at}");
        let segment = Segment::decode(&expand(&got.body).unwrap()).unwrap();
        slots.push(segment.header.slot.0);
        ids.extend(segment.items.iter().map(|it| it.item.id.0));
    }
    assert_eq!(slots, (0..=slot).collect::<Vec<_>>());
    assert_eq!(ids, [1, 2, 3]);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcaster_that_stops_hands_over_and_the_other_serves_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    world.set_room(settings(), true).await;
    let first = world.start(config(1)).await;
    let mut sealed = world.sealed().await;
    sealed.seal_of(1, 0).await;
    let second = world.start(config(2)).await;

    let next = first.head().await.slot.0 + 1;
    assert_eq!(second.segment(1, 0).await.status, 200);
    assert_eq!(second.segment(1, next).await.status, 200);

    world.admit(vec![comment(1)]).await;
    let (_, _, placed) = sealed.flush_of(1).await;
    first.stop().await;
    world.admit(vec![comment(2)]).await;

    let (gen_no, slot, next) = sealed.flush_of(2).await;
    assert_eq!((gen_no, next.seq.0), (1, placed.seq.0 + 1));
    sealed.seal_of(1, slot).await;
    assert_eq!(second.segment(1, slot).await.status, 200);
    second.stop().await;
}
