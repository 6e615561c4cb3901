//! Partitions at their limits, in virtual time.

use bytes::Bytes;
use proto::control::Fact;
use proto::id::{AppId, RoomId, ViewerId};

use super::*;
use crate::{PartitionNo, topic};

#[test]
fn a_recent_record_goes_when_it_is_old() {
    let mut partition = partition(Keep::Recent);
    put(&mut partition, "a", 0);

    assert_eq!(read(&mut partition, 0, 1000), Ok(vec!["a".to_owned()]));
    assert_eq!(read(&mut partition, 0, 1001), Err(ReadError::Gone { oldest: Offset(1) }));
}

#[test]
fn a_clock_that_was_set_on_makes_nothing_old() {
    let mut partition = partition(Keep::Recent);
    put(&mut partition, "a", 0);

    let later = Now { mono: Mono(10), wall: Wall(3_600_000) };
    let records = partition.read(Offset(0), 10, later).unwrap();

    assert_eq!(records.len(), 1);
}

#[test]
fn bytes_are_bounded_as_well_as_records() {
    let mut recent = partition(Keep::Recent);
    let mut queue = partition(Keep::UntilCommitted);
    let half = "x".repeat(450);

    for _ in 0..3 {
        put(&mut recent, &half, 0);
    }
    let taken: Vec<_> = (0..3).map(|_| try_put(&mut queue, None, &half, 0)).collect();

    assert_eq!(recent.records.len(), 1);
    assert_eq!(recent.bytes, 550);
    assert_eq!(taken, [Ok(Offset(0)), Err(PublishError::Busy), Err(PublishError::Busy)]);
}

#[test]
fn committed_work_is_forgotten_only_when_every_group_has_done_it() {
    let mut partition = partition(Keep::UntilCommitted);
    for _ in 0..3 {
        put(&mut partition, "a", 0);
    }

    partition.commit("fast".into(), Offset(3));
    assert_eq!(partition.records.len(), 0);
    put(&mut partition, "b", 0);
    partition.commit("slow".into(), Offset(0));
    partition.commit("fast".into(), Offset(4));

    assert_eq!(partition.records.len(), 1);
    assert_eq!(partition.locate(&At::Committed("slow".into()), now(0)), Offset(3));
}

#[test]
fn a_commit_beyond_the_end_forgets_nothing_that_comes_later() {
    let mut partition = partition(Keep::UntilCommitted);
    put(&mut partition, "a", 0);

    partition.commit("group".into(), Offset(100));
    put(&mut partition, "b", 0);

    assert_eq!(read(&mut partition, 1, 0), Ok(vec!["b".to_owned()]));
}

#[test]
fn a_compacted_partition_replaces_in_place_and_refuses_new_keys_when_full() {
    let mut partition = partition(Keep::Compacted);
    try_put(&mut partition, Some("a"), "1", 0).unwrap();
    try_put(&mut partition, Some("b"), "1", 0).unwrap();

    assert_eq!(try_put(&mut partition, Some("c"), "1", 0), Err(PublishError::Busy));
    assert_eq!(try_put(&mut partition, Some("a"), "2", 0), Ok(Offset(2)));

    assert_eq!(read(&mut partition, 0, 0), Ok(vec!["1".to_owned(), "2".to_owned()]));
    assert_eq!(partition.bytes, 2 * (RECORD_OVERHEAD_BYTES + 2));
}

#[test]
fn a_full_compacted_partition_forgets_tombstones_and_facts_that_have_lapsed() {
    let mut partition = partition(Keep::Compacted);
    let mute = Fact::Mute {
        app: AppId(1),
        room: RoomId::parse("room").unwrap(),
        viewer: ViewerId::parse("viewer").unwrap(),
        until: Wall(5),
    };
    let mute = String::from_utf8(mute.encode()).unwrap();
    try_put(&mut partition, Some("mute"), &mute, 0).unwrap();
    try_put(&mut partition, Some("b"), "1", 0).unwrap();
    assert_eq!(try_put(&mut partition, Some("c"), "1", 0), Err(PublishError::Busy));

    assert!(try_put(&mut partition, Some("c"), "", 3_600_000).is_ok());
    assert!(try_put(&mut partition, Some("d"), "1", 3_602_000).is_ok());

    assert_eq!(read(&mut partition, 0, 3_602_000), Ok(vec!["1".to_owned(), "1".to_owned()]));
    assert_eq!(partition.by_key.len(), 2);
}

/// Two records or keys, 1000 bytes, one second.
fn partition(keep: Keep) -> Partition {
    let limits = Limits {
        records_max: 100,
        bytes_max: 1000,
        recent_ms: 1000,
        keys_max: 2,
        compacted_bytes_max: 10_000,
    };
    Partition::new(keep, limits)
}

fn now(ms: u64) -> Now {
    Now { mono: Mono(ms), wall: Wall(ms) }
}

fn put(partition: &mut Partition, text: &str, ms: u64) {
    try_put(partition, None, text, ms).unwrap();
}

fn try_put(
    partition: &mut Partition,
    key: Option<&str>,
    text: &str,
    ms: u64,
) -> Result<Offset, PublishError> {
    let record = Publish {
        topic: topic::control(),
        partition: PartitionNo(0),
        term: None,
        key: key.map(Into::into),
        value: Bytes::copy_from_slice(text.as_bytes()),
    };
    partition.append(record, now(ms))
}

fn read(partition: &mut Partition, from: u64, ms: u64) -> Result<Vec<String>, ReadError> {
    let records = partition.read(Offset(from), 100, now(ms))?;
    Ok(records.iter().map(|it| String::from_utf8_lossy(&it.value).into_owned()).collect())
}
