//! What every adapter of [`Bus`] does, and the two ways to read on top of it.
//!
//! An adapter's test calls [`check`] with a function that gives a bus without records, which keeps
//! at most [`RECORDS_MAX`] records of a partition.

mod queue;
mod readers;
mod records;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::id::Term;

use crate::topic::Keep;
use crate::{Bus, Offset, PartitionNo, Publish, PublishError, ReadError, Record, Topic};

/// What the bus under test keeps of a partition.
pub(crate) const RECORDS_MAX: usize = 8;
/// Longer than any adapter needs.
const LONG: Duration = Duration::from_secs(20);

/// Panics where a bus does not keep the contract.
pub(crate) async fn check(bus: impl Fn() -> Arc<dyn Bus>) {
    records::order_is_kept_in_each_partition(&*bus()).await;
    records::a_read_gives_at_most_what_was_asked_for(&*bus()).await;
    records::a_read_waits_for_the_first_record(&*bus()).await;
    records::a_read_gives_nothing_only_where_nothing_is(&*bus()).await;
    records::a_cancelled_read_loses_nothing(&*bus()).await;
    records::places_are_found_by_time(&*bus()).await;
    records::what_cannot_be_taken_is_refused_alone(&*bus()).await;
    records::an_older_term_is_fenced_in_its_partition(&*bus()).await;
    records::the_newest_of_each_key_is_kept(&*bus()).await;
    queue::a_group_goes_on_where_it_committed(&*bus()).await;
    queue::a_commit_never_goes_back(&*bus()).await;
    queue::a_full_partition_is_busy_until_work_is_committed(&*bus()).await;
    queue::a_recent_partition_is_never_busy_and_says_what_is_gone(&*bus()).await;
    readers::a_tail_reads_all_its_partitions_from_its_place(bus()).await;
    readers::a_cancelled_tail_loses_nothing(bus()).await;
    readers::a_lone_member_gains_everything_quickly(bus()).await;
    readers::what_is_not_committed_is_given_to_the_next_member(bus()).await;
    readers::two_members_share_and_the_first_is_fenced_where_it_gave_up(bus()).await;
}

fn topic(keep: Keep) -> Topic {
    let name = match keep {
        Keep::UntilCommitted => "contract.queue",
        Keep::Recent => "contract.recent",
        Keep::Compacted => "contract.compacted",
    };
    Topic { name: name.into(), partitions: 3, keep }
}

fn record(topic: &Topic, partition: u32, value: impl Into<Bytes>) -> Publish {
    let partition = PartitionNo(partition);
    Publish { topic: topic.clone(), partition, term: None, key: None, value: value.into() }
}

fn with_term(term: u64, record: Publish) -> Publish {
    Publish { term: Some(Term(term)), ..record }
}

/// Appends texts to a partition; all must be taken.
async fn fill(bus: &dyn Bus, topic: &Topic, partition: u32, texts: &[&str]) -> Vec<Offset> {
    let texts = texts.iter().map(|it| Bytes::copy_from_slice(it.as_bytes()));
    let records = texts.map(|it| record(topic, partition, it)).collect();
    bus.publish(records).await.into_iter().map(|it| it.unwrap()).collect()
}

async fn publish_one(bus: &dyn Bus, record: Publish) -> Result<Offset, PublishError> {
    let mut results = bus.publish(vec![record]).await;
    assert_eq!(results.len(), 1, "one result for each record");
    results.remove(0)
}

/// Reads until `count` records have come.
async fn read(
    bus: &dyn Bus,
    topic: &Topic,
    partition: u32,
    mut from: Offset,
    count: usize,
) -> Result<Vec<Record>, ReadError> {
    let mut all = Vec::new();
    while all.len() < count {
        let missing = count - all.len();
        let read = bus.read(topic.clone(), PartitionNo(partition), from, missing, LONG).await?;
        let last = read.last().expect("records come before the wait ends");
        from = Offset(last.offset.0 + 1);
        all.extend(read);
    }
    Ok(all)
}

fn texts(records: &[Record]) -> Vec<&str> {
    records.iter().map(|it| std::str::from_utf8(&it.value).unwrap()).collect()
}
