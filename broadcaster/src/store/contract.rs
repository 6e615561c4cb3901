//! What every [`SegmentStore`] keeps to; each adapter's tests call it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use proto::head::Tier;
use proto::id::{Gen, RoomId, SlotNo, Term};

use super::{Created, Ext, File, Replaced, SegmentStore, Stamp};

/// Checks an empty store.
pub(crate) async fn check(store: Arc<dyn SegmentStore>) {
    existing_bytes_win(&*store).await;
    only_what_is_newer_replaces(&*store).await;
    what_is_removed_is_gone(&*store).await;
}

/// Checks that of many who create a file at once, through two stores on the same place, one wins
/// and all read the winner's bytes; and that the newest of many stamps stays.
pub(crate) async fn check_race(one: Arc<dyn SegmentStore>, other: Arc<dyn SegmentStore>) {
    let stores = [&one, &other];
    let creates = (0..20_usize).map(|writer| {
        let files = vec![(segment(7), Bytes::from(format!("bytes of {writer}")))];
        async move { (writer, stores[writer % 2].create(files).await) }
    });

    let created = join_all(creates).await;

    let winners: Vec<usize> =
        created.iter().filter(|it| it.1 == [Ok(Created::New)]).map(|it| it.0).collect();
    assert_eq!(winners.len(), 1);
    let expected = Bytes::from(format!("bytes of {}", winners[0]));
    for store in stores {
        assert_eq!(store.get(segment(7)).await, Ok(Some(expected.clone())));
    }

    let replaces = (1..=20_u64).map(|version| {
        let bytes = Bytes::from(version.to_string());
        let store = stores[usize::from(version % 2 == 0)];
        store.replace(head(), bytes, Stamp { version, ..Stamp::default() })
    });
    join_all(replaces).await;
    for store in stores {
        assert_eq!(store.get(head()).await, Ok(Some(Bytes::from_static(b"20"))));
    }
    other.remove(vec![segment(7), head()]).await;
}

async fn existing_bytes_win(store: &dyn SegmentStore) {
    let first = Bytes::from_static(b"first");
    let second = Bytes::from_static(b"second");
    assert_eq!(store.get(segment(0)).await, Ok(None));

    let files = vec![(segment(0), first.clone()), (segment(1), first.clone())];
    assert_eq!(store.create(files).await, [Ok(Created::New), Ok(Created::New)]);
    let files = vec![(segment(1), second.clone()), (segment(2), second.clone())];
    assert_eq!(store.create(files).await, [Ok(Created::Existed), Ok(Created::New)]);

    assert_eq!(store.get(segment(1)).await, Ok(Some(first)));
    assert_eq!(store.get(segment(2)).await, Ok(Some(second)));
}

async fn only_what_is_newer_replaces(store: &dyn SegmentStore) {
    let stamp = |gen_no, term, version| Stamp { gen_no: Gen(gen_no), term: Term(term), version };
    for (stamp, expected) in [
        (stamp(1, 5, 0), Replaced::Done),
        (stamp(1, 5, 0), Replaced::Stale),
        (stamp(1, 5, 9), Replaced::Done),
        (stamp(1, 4, 99), Replaced::Stale),
        (stamp(1, 6, 0), Replaced::Done),
        (stamp(2, 1, 0), Replaced::Done),
        (stamp(1, 99, 99), Replaced::Stale),
    ] {
        let bytes = Bytes::from(format!("{stamp:?}"));
        assert_eq!(store.replace(head(), bytes.clone(), stamp).await, Ok(expected), "{stamp:?}");
        let is_there = store.get(head()).await == Ok(Some(bytes));
        assert!(expected == Replaced::Stale || is_there);
    }
}

async fn what_is_removed_is_gone(store: &dyn SegmentStore) {
    let files = vec![segment(0), segment(99), head()];

    assert_eq!(store.remove(files).await, [Ok(()), Ok(()), Ok(())]);

    assert_eq!(store.get(segment(0)).await, Ok(None));
    let bytes = Bytes::from_static(b"again");
    assert_eq!(store.create(vec![(segment(0), bytes.clone())]).await, [Ok(Created::New)]);
    assert_eq!(store.replace(head(), bytes, Stamp::default()).await, Ok(Replaced::Done));
    store.remove(vec![segment(0), segment(1), segment(2), head()]).await;
}

fn room() -> RoomId {
    RoomId::parse("room-1").unwrap()
}

fn head() -> File {
    File::Head(room())
}

fn segment(slot: u64) -> File {
    let slot = SlotNo(slot);
    File::Segment { room: room(), gen_no: Gen(1), tier: Tier::Full, slot, ext: Ext::Bin }
}
