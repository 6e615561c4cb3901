//! Records and their places.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use proto::id::Term;
use proto::limits::RECORD_BYTES_MAX;
use proto::time::Wall;

use super::{LONG, fill, publish_one, read, record, texts, topic, with_term};
use crate::topic::Keep;
use crate::{At, Bus, Offset, PartitionNo, Publish, PublishError, ReadError};

const FIRST: PartitionNo = PartitionNo(0);

pub(super) async fn order_is_kept_in_each_partition(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);

    let first = fill(bus, &topic, 0, &["a", "b"]).await;
    fill(bus, &topic, 1, &["x"]).await;
    let second = fill(bus, &topic, 0, &["c"]).await;

    let records = read(bus, &topic, 0, first[0], 3).await.unwrap();
    assert_eq!(texts(&records), ["a", "b", "c"]);
    let offsets: Vec<_> = records.iter().map(|it| it.offset).collect();
    assert_eq!(offsets, [first, second].concat());
    assert!(offsets.is_sorted_by(|a, b| a < b));
    assert!(records.iter().all(|it| it.partition == FIRST));
    let other = bus.locate(topic.clone(), PartitionNo(1), At::Oldest).await.unwrap();
    assert_eq!(texts(&read(bus, &topic, 1, other, 1).await.unwrap()), ["x"]);
}

pub(super) async fn a_read_gives_at_most_what_was_asked_for(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);
    let offsets = fill(bus, &topic, 0, &["a", "b", "c"]).await;

    let records = bus.read(topic, FIRST, offsets[0], 2, LONG).await.unwrap();

    assert!((1..=2).contains(&records.len()));
}

pub(super) async fn a_read_waits_for_the_first_record(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);
    let end = bus.locate(topic.clone(), FIRST, At::End).await.unwrap();

    let (read, _) =
        tokio::join!(bus.read(topic.clone(), FIRST, end, 10, LONG), fill(bus, &topic, 0, &["a"]));

    assert_eq!(texts(&read.unwrap()), ["a"]);
}

pub(super) async fn a_read_gives_nothing_only_where_nothing_is(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);
    let nothing = |from| {
        let read = bus.read(topic.clone(), FIRST, from, 10, Duration::ZERO);
        async move {
            match read.await {
                Ok(records) => records.is_empty(),
                Err(error) => {
                    assert_eq!(error, ReadError::Away, "it may not know in time");
                    false
                }
            }
        }
    };

    for text in ["a", "b", "c"] {
        let written = fill(bus, &topic, 0, &[text]).await[0];

        assert!(!nothing(written).await, "{text} is there, however short the wait");
    }
    let end = bus.locate(topic.clone(), FIRST, At::End).await.unwrap();
    let read = bus.read(topic.clone(), FIRST, end, 10, Duration::from_millis(1)).await;
    let is_right = read.map_or_else(|it| it == ReadError::Away, |it| it.is_empty());
    assert!(is_right, "there is no more");
}

pub(super) async fn a_cancelled_read_loses_nothing(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);
    let end = bus.locate(topic.clone(), FIRST, At::End).await.unwrap();

    for _ in 0..3 {
        assert!(bus.read(topic.clone(), FIRST, end, 10, LONG).now_or_never().is_none());
    }
    fill(bus, &topic, 0, &["a", "b"]).await;

    assert_eq!(texts(&read(bus, &topic, 0, end, 2).await.unwrap()), ["a", "b"]);
}

pub(super) async fn places_are_found_by_time(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);
    let offsets = fill(bus, &topic, 0, &["a", "b", "c"]).await;
    let records = read(bus, &topic, 0, offsets[0], 3).await.unwrap();
    let place = |at| bus.locate(topic.clone(), FIRST, at);

    let second = place(At::Time(records[1].at)).await.unwrap();
    let expected = records.iter().find(|it| it.at >= records[1].at).unwrap().offset;

    assert_eq!(second, expected);
    assert_eq!(place(At::Time(Wall(0))).await, Ok(offsets[0]));
    assert_eq!(place(At::Oldest).await, Ok(offsets[0]));
    let end = place(At::End).await.unwrap();
    assert!(end > offsets[2]);
    assert_eq!(place(At::Time(Wall(records[2].at.0 + 3_600_000))).await, Ok(end));
}

pub(super) async fn what_cannot_be_taken_is_refused_alone(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);
    let largest = Bytes::from(vec![0; RECORD_BYTES_MAX]);
    let larger = Bytes::from(vec![0; RECORD_BYTES_MAX + 1]);
    let records = vec![
        record(&topic, 0, "a"),
        record(&topic, 0, larger),
        record(&topic, 3, "b"),
        record(&topic, 0, largest),
    ];

    let results = bus.publish(records).await;

    assert!(results[0].is_ok() && results[3].is_ok(), "{results:?}");
    assert_eq!(results[1], Err(PublishError::TooLarge { bytes: RECORD_BYTES_MAX + 1 }));
    assert_eq!(results[2], Err(PublishError::NoPartition));
    let absent = PartitionNo(3);
    assert_eq!(bus.locate(topic.clone(), absent, At::End).await, Err(ReadError::NoPartition));
    let none = bus.read(topic, absent, Offset(0), 1, LONG).await;
    assert_eq!(none.unwrap_err(), ReadError::NoPartition);
}

pub(super) async fn an_older_term_is_fenced_in_its_partition(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);
    let write = |partition, term| with_term(term, record(&topic, partition, "a"));
    let fenced =
        |given, newest| Err(PublishError::Fenced { given: Term(given), newest: Term(newest) });

    assert!(publish_one(bus, write(0, 5)).await.is_ok());
    assert_eq!(publish_one(bus, write(0, 4)).await, fenced(4, 5));
    assert!(publish_one(bus, write(0, 5)).await.is_ok());
    assert!(publish_one(bus, write(0, 7)).await.is_ok());
    assert_eq!(publish_one(bus, write(0, 5)).await, fenced(5, 7));
    assert!(publish_one(bus, write(1, 4)).await.is_ok(), "another partition");
    assert!(publish_one(bus, record(&topic, 0, "a")).await.is_ok(), "no term");
}

pub(super) async fn the_newest_of_each_key_is_kept(bus: &dyn Bus) {
    let topic = topic(Keep::Compacted);
    let write = |key: &str, value: &str| Publish {
        key: Some(key.into()),
        ..record(&topic, 0, Bytes::copy_from_slice(value.as_bytes()))
    };
    let records = vec![write("a", "1"), write("b", "1"), write("a", "2"), write("a", "3")];

    let results = bus.publish(records).await;
    let last = results[3].unwrap();

    let mut next = bus.locate(topic.clone(), FIRST, At::Oldest).await.unwrap();
    let mut newest = std::collections::BTreeMap::new();
    while next <= last {
        for it in read(bus, &topic, 0, next, 1).await.unwrap() {
            assert!(it.offset >= next, "offsets rise, with holes");
            next = Offset(it.offset.0 + 1);
            newest.insert(it.key.unwrap(), it.value);
        }
    }
    assert_eq!(newest.len(), 2);
    assert_eq!((&newest["a"][..], &newest["b"][..]), (&b"3"[..], &b"1"[..]));
}
