//! Commits, and what happens to a partition that is full.

use std::sync::Arc;

use super::{RECORDS_MAX, fill, publish_one, read, record, texts, topic};
use crate::topic::Keep;
use crate::{At, Bus, Offset, PartitionNo, PublishError, ReadError};

const FIRST: PartitionNo = PartitionNo(0);

pub(super) async fn a_group_goes_on_where_it_committed(bus: &dyn Bus) {
    let topic = topic(Keep::UntilCommitted);
    let group: Arc<str> = "group".into();
    let committed = || bus.locate(topic.clone(), FIRST, At::Committed(Arc::clone(&group)));
    let offsets = fill(bus, &topic, 0, &["a", "b", "c"]).await;
    assert_eq!(committed().await, Ok(offsets[0]), "never committed: the oldest record");

    bus.commit(Arc::clone(&group), topic.clone(), FIRST, offsets[1]).await.unwrap();

    let next = committed().await.unwrap();
    assert_eq!(next, offsets[1]);
    for _ in 0..2 {
        assert_eq!(texts(&read(bus, &topic, 0, next, 2).await.unwrap()), ["b", "c"]);
    }
}

pub(super) async fn a_commit_never_goes_back(bus: &dyn Bus) {
    let topic = topic(Keep::UntilCommitted);
    let group: Arc<str> = "group".into();
    let commit = |next| bus.commit(Arc::clone(&group), topic.clone(), FIRST, next);
    let offsets = fill(bus, &topic, 0, &["a", "b", "c"]).await;

    commit(offsets[2]).await.unwrap();
    commit(offsets[1]).await.unwrap();

    let committed = bus.locate(topic.clone(), FIRST, At::Committed(Arc::clone(&group))).await;
    assert_eq!(committed, Ok(offsets[2]));
}

pub(super) async fn a_full_partition_is_busy_until_work_is_committed(bus: &dyn Bus) {
    let topic = topic(Keep::UntilCommitted);
    let group: Arc<str> = "group".into();
    let offsets = fill(bus, &topic, 0, &["a"; RECORDS_MAX]).await;

    assert_eq!(publish_one(bus, record(&topic, 0, "b")).await, Err(PublishError::Busy));
    assert!(publish_one(bus, record(&topic, 1, "b")).await.is_ok(), "another partition has room");
    bus.commit(group, topic.clone(), FIRST, offsets[1]).await.unwrap();

    assert!(publish_one(bus, record(&topic, 0, "b")).await.is_ok());
    assert_eq!(publish_one(bus, record(&topic, 0, "c")).await, Err(PublishError::Busy));
    let kept = read(bus, &topic, 0, offsets[1], RECORDS_MAX).await.unwrap();
    assert_eq!(texts(&kept).last(), Some(&"b"));
}

pub(super) async fn a_recent_partition_is_never_busy_and_says_what_is_gone(bus: &dyn Bus) {
    let topic = topic(Keep::Recent);

    let offsets = fill(bus, &topic, 0, &["a"; RECORDS_MAX + 3]).await;

    let oldest = match read(bus, &topic, 0, offsets[0], 1).await {
        Ok(records) => records[0].offset,
        Err(ReadError::Gone { oldest }) => oldest,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(bus.locate(topic.clone(), FIRST, At::Oldest).await, Ok(oldest));
    let last = offsets[RECORDS_MAX + 2];
    let left = usize::try_from(last.0 - oldest.0 + 1).unwrap();
    let records = read(bus, &topic, 0, oldest, left).await.unwrap();
    assert_eq!(records.last().map(|it| it.offset), Some(last));
    assert_eq!(bus.locate(topic, FIRST, At::End).await, Ok(Offset(last.0 + 1)));
}
