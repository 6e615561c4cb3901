//! What every [`RoomStore`] adapter does; its tests call [`check`] with an empty one.

use std::sync::Arc;

use super::{
    BATCH_MAX, Expect, Key, NAME_BYTES_MAX, RoomStore, StoreError, Table, VALUE_BYTES_MAX, Write,
    Written,
};

/// Panics where `store` does not keep the contract. It must be empty.
///
/// # Panics
/// That is how it tells.
pub async fn check(store: Arc<dyn RoomStore>) {
    values_are_versioned(&*store).await;
    a_batch_happens_whole_or_not_at_all(&*store).await;
    rows_come_in_order_and_in_pages(&*store).await;
    one_of_many_wins_a_race(&store).await;
    what_is_too_large_is_refused(&*store).await;
}

async fn values_are_versioned(store: &dyn RoomStore) {
    let key = || Key::new(Table::Rooms, "versioned");

    assert_eq!(read(store, key()).await, None);
    assert_eq!(write(store, vec![key().put(Expect::Absent, "a")]).await, Written::Done);
    assert_eq!(read(store, key()).await, Some((1, "a".into())));
    assert_eq!(
        write(store, vec![key().put(Expect::Absent, "b")]).await,
        Written::Conflict { index: 0 }
    );
    assert_eq!(write(store, vec![key().put(Expect::Version(1), "b")]).await, Written::Done);
    assert_eq!(
        write(store, vec![key().put(Expect::Version(1), "c")]).await,
        Written::Conflict { index: 0 }
    );
    assert_eq!(write(store, vec![key().put(Expect::Any, "d")]).await, Written::Done);
    assert_eq!(read(store, key()).await, Some((3, "d".into())));
    assert_eq!(read(store, Key::new(Table::Acts, "versioned")).await, None);
    assert_eq!(write(store, vec![key().remove()]).await, Written::Done);
    assert_eq!(write(store, vec![key().remove()]).await, Written::Done);
    assert_eq!(read(store, key()).await, None);
    assert_eq!(write(store, vec![key().put(Expect::Absent, "e")]).await, Written::Done);
}

async fn a_batch_happens_whole_or_not_at_all(store: &dyn RoomStore) {
    let key = |name| Key::new(Table::Keys, name);
    write(store, vec![key("taken").put(Expect::Any, "1")]).await;

    let batch = vec![key("free").put(Expect::Absent, "2"), key("taken").put(Expect::Absent, "2")];
    assert_eq!(write(store, batch).await, Written::Conflict { index: 1 });
    assert_eq!(read(store, key("free")).await, None);

    let batch = vec![
        key("free").put(Expect::Absent, "3"),
        Key::new(Table::Open, "free").put(Expect::Absent, ""),
        key("taken").remove(),
    ];
    assert_eq!(write(store, batch).await, Written::Done);
    let batch = vec![key("free").keep(Expect::Version(1)), key("other").put(Expect::Any, "4")];
    assert_eq!(write(store, batch).await, Written::Done);
    let batch = vec![key("other").put(Expect::Any, "5"), key("free").keep(Expect::Absent)];
    assert_eq!(write(store, batch).await, Written::Conflict { index: 1 });
    assert_eq!(read(store, key("other")).await, Some((1, "4".into())));
    assert_eq!(read(store, key("free")).await, Some((1, "3".into())));

    let keys = vec![key("taken"), key("free"), Key::new(Table::Open, "free"), key("free")];
    let values = store.get(keys).await.expect("the store is there");
    let bytes: Vec<_> = values.into_iter().map(|it| it.map(|it| it.bytes)).collect();
    assert_eq!(bytes, [None, Some("3".into()), Some("".into()), Some("3".into())]);
}

async fn rows_come_in_order_and_in_pages(store: &dyn RoomStore) {
    let names = ["a:1", "a:10", "a:2", "a:é", "b:1"];
    let writes = names.iter().rev().map(|&it| Key::new(Table::Acts, it).put(Expect::Any, it));
    write(store, writes.collect()).await;
    let list = async |prefix: &str, after: Option<&str>, rows_max| {
        let rows = store.list(Table::Acts, prefix.into(), after.map(Into::into), rows_max).await;
        let rows = rows.expect("the store is there");
        rows.into_iter().map(|it| it.0).collect::<Vec<_>>()
    };

    assert_eq!(list("a:", None, 10).await, names[..4]);
    assert_eq!(list("a:", None, 2).await, names[..2]);
    assert_eq!(list("a:", Some("a:10"), 10).await, names[2..4]);
    assert_eq!(list("a:", Some("a:é"), 10).await, [""; 0]);
    assert_eq!(list("", None, 10).await, names);
    assert_eq!(list("c", None, 10).await, [""; 0]);
}

async fn one_of_many_wins_a_race(store: &Arc<dyn RoomStore>) {
    let racers = (0..32).map(|n| {
        let store = Arc::clone(store);
        async move {
            let key = Key::new(Table::Own, "race");
            write(&*store, vec![key.put(Expect::Absent, n.to_string())]).await
        }
    });

    let ended = futures_util::future::join_all(racers).await;

    let winners: Vec<_> = (0..).zip(ended).filter(|it| it.1 == Written::Done).collect();
    assert_eq!(winners.len(), 1);
    let held = read(&**store, Key::new(Table::Own, "race")).await;
    assert_eq!(held, Some((1, winners[0].0.to_string())));
}

async fn what_is_too_large_is_refused(store: &dyn RoomStore) {
    let key = |bytes| Key::new(Table::Own, "n".repeat(bytes));
    let put = |bytes| key(1).put(Expect::Any, vec![0; bytes]);

    assert_eq!(write(store, vec![put(VALUE_BYTES_MAX)]).await, Written::Done);
    for writes in [
        vec![put(VALUE_BYTES_MAX + 1)],
        vec![key(NAME_BYTES_MAX + 1).remove()],
        vec![key(1).remove(); BATCH_MAX + 1],
    ] {
        assert_eq!(store.write(writes).await, Err(StoreError::TooLarge));
    }
}

async fn read(store: &dyn RoomStore, key: Key) -> Option<(u64, String)> {
    let mut values = store.get(vec![key]).await.expect("the store is there");
    assert_eq!(values.len(), 1, "one answer for each key");
    let value = values.pop()??;
    Some((value.version, String::from_utf8_lossy(&value.bytes).into_owned()))
}

async fn write(store: &dyn RoomStore, writes: Vec<Write>) -> Written {
    store.write(writes).await.expect("the store is there")
}
