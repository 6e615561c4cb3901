//! Tails and groups.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kit::clock::Clock;
use proto::id::{NodeId, Term};

use super::{LONG, fill, publish_one, record, texts, topic, with_term};
use crate::group::{Group, GroupConfig, GroupEvent};
use crate::tail::{Tail, Tailed};
use crate::topic::{self, Keep};
use crate::{At, Bus, Offset, PartitionNo, PublishError, Record};

pub(super) async fn a_tail_reads_all_its_partitions_from_its_place(bus: Arc<dyn Bus>) {
    let topic = topic(Keep::Recent);
    fill(&*bus, &topic, 0, &["before"]).await;
    let partitions = Tail::all(&topic);
    let opened = Tail::open(Arc::clone(&bus), topic.clone(), partitions, At::End).await;
    let mut tail = opened.unwrap();

    fill(&*bus, &topic, 0, &["a", "b"]).await;
    fill(&*bus, &topic, 2, &["x"]).await;

    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.extend(tailed(&mut tail, 1).await);
    }
    let of = |no| seen.iter().filter(|it| it.partition.0 == no).cloned().collect::<Vec<_>>();
    assert_eq!(texts(&of(0)), ["a", "b"]);
    assert_eq!(texts(&of(2)), ["x"]);
}

pub(super) async fn a_cancelled_tail_loses_nothing(bus: Arc<dyn Bus>) {
    let topic = topic(Keep::Recent);
    let partitions = Tail::all(&topic);
    let opened = Tail::open(Arc::clone(&bus), topic.clone(), partitions, At::End).await;
    let mut tail = opened.unwrap();

    assert!(tail.next(1).now_or_never().is_none());
    fill(&*bus, &topic, 1, &["a", "b"]).await;
    assert_eq!(texts(&tailed(&mut tail, 1).await), ["a"]);
    assert!(tail.next(0).now_or_never().is_none_or(|it| it.is_ok()));
    fill(&*bus, &topic, 1, &["c"]).await;

    let rest = tailed(&mut tail, 10).await;
    assert!(matches!(texts(&rest)[..], ["b", ..] | ["c"]), "{:?}", texts(&rest));
}

pub(super) async fn a_lone_member_gains_everything_quickly(bus: Arc<dyn Bus>) {
    let clock = Clock::system();
    let mut group = join(&bus, 1).await;

    let gained = gained(&mut group, 3).await;

    assert_eq!(gained.len(), 3);
    assert!(clock.mono().0 < 1000, "{:?}", clock.mono());
    group.leave().await;
}

pub(super) async fn what_is_not_committed_is_given_to_the_next_member(bus: Arc<dyn Bus>) {
    let topic = topic(Keep::UntilCommitted);
    let offsets = fill(&*bus, &topic, 0, &["a", "b", "c"]).await;
    let mut first = join(&bus, 1).await;
    gained(&mut first, 3).await;
    let records = records(&mut first).await;
    assert_eq!(records[0].offset, offsets[0]);
    first.commit(PartitionNo(0), offsets[1]).await.unwrap();
    first.leave().await;

    let mut second = join(&bus, 2).await;

    let gained = gained(&mut second, 3).await;
    assert_eq!(gained[0].2, offsets[1]);
    let again = self::records(&mut second).await;
    assert_eq!(texts(&again)[0], "b");
    second.leave().await;
}

pub(super) async fn two_members_share_and_the_first_is_fenced_where_it_gave_up(bus: Arc<dyn Bus>) {
    let topic = topic(Keep::UntilCommitted);
    let mut first = join(&bus, 1).await;
    let old = gained(&mut first, 3).await;
    let mut second = join(&bus, 2).await;

    let (lost, new) = tokio::select! {
        lost = lost(&mut first) => {
            let new = tokio::select! {
                new = gained(&mut second, 1) => new,
                _ = lost_more(&mut first) => panic!("three are shared as two and one"),
            };
            (lost, new)
        }
        _ = gained(&mut second, 1) => panic!("nothing is free before it was given up"),
    };

    let (partition, term, _) = new[0];
    assert_eq!(partition, lost);
    let stale = old.iter().find(|it| it.0 == lost).unwrap().1;
    assert!(stale < term);
    let write = |term: Term| with_term(term.0, record(&topic, partition.0, "a"));
    assert!(publish_one(&*bus, write(term)).await.is_ok());
    let refused = publish_one(&*bus, write(stale)).await;
    assert_eq!(refused, Err(PublishError::Fenced { given: stale, newest: term }));
    first.leave().await;
    second.leave().await;
}

async fn join(bus: &Arc<dyn Bus>, node: u32) -> Group {
    let config = GroupConfig {
        bus: Arc::clone(bus),
        control: Arc::clone(bus),
        topic: topic(Keep::UntilCommitted),
        group: "group".into(),
        node: NodeId(node),
        clock: Clock::system(),
    };
    assert_eq!(topic::control().partitions, 1);
    Group::join(config).await.unwrap()
}

async fn event(group: &mut Group) -> GroupEvent {
    tokio::time::timeout(LONG, group.next(100)).await.expect("an event comes in time").unwrap()
}

/// Waits until `count` partitions were gained.
async fn gained(group: &mut Group, count: usize) -> Vec<(PartitionNo, Term, Offset)> {
    let mut all = Vec::new();
    while all.len() < count {
        if let GroupEvent::Gained { partition, term, committed } = event(group).await {
            all.push((partition, term, committed));
        }
    }
    all.sort_unstable();
    all
}

async fn lost(group: &mut Group) -> PartitionNo {
    loop {
        if let GroupEvent::Lost { partition } = event(group).await {
            return partition;
        }
    }
}

/// Keeps a member going; ends only if it loses another partition.
async fn lost_more(group: &mut Group) -> PartitionNo {
    loop {
        let next = tokio::time::timeout(Duration::MAX, group.next(100)).await;
        if let Ok(Ok(GroupEvent::Lost { partition })) = next {
            return partition;
        }
    }
}

async fn records(group: &mut Group) -> Vec<Record> {
    loop {
        if let GroupEvent::Records { records, .. } = event(group).await {
            return records;
        }
    }
}

async fn tailed(tail: &mut Tail, records_max: usize) -> Vec<Record> {
    let next = tokio::time::timeout(LONG, tail.next(records_max)).await;
    match next.expect("records come in time").unwrap() {
        Tailed::Records(records) => records,
        Tailed::Skipped { records, .. } => panic!("{records} were skipped"),
    }
}
