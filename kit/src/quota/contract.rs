//! What every [`Quota`] adapter does; its tests call [`check`] with an empty one.

#![expect(clippy::unwrap_used, reason = "a test is to panic")]

use proto::id::NodeId;
use proto::time::Wall;

use super::{Ask, Quota, Seen, Shared, Taken, Use};

/// Panics where `quota` does not keep the contract. It must be empty; `now` is any time.
///
/// # Panics
/// There.
pub async fn check(quota: &dyn Quota, now: Wall) {
    a_bucket_starts_full_and_refills(quota, now).await;
    a_batch_is_answered_in_order(quota, now).await;
    what_can_never_be_given_says_so(quota, now).await;
    a_clock_set_back_gives_nothing_and_blocks_nobody(quota, now).await;
    nodes_learn_what_all_of_them_saw(quota, now).await;
    what_passed_counts_for_a_second_and_the_last_wish_as_long(quota, now).await;
    silent_nodes_are_not_counted(quota, Wall(now.0 + 100_000)).await;
    nodes_whose_clocks_differ_share_all_the_same(quota, Wall(now.0 + 200_000)).await;
}

async fn nodes_learn_what_all_of_them_saw(quota: &dyn Quota, now: Wall) {
    let told = |key: &str, wanted_per_s, passed| Use { key: key.into(), wanted_per_s, passed };
    let both = vec![told("hers", 4, 2), told("ours", 3, 1)];
    quota.share(NodeId(1), both, now).await.unwrap();

    let shared = quota.share(NodeId(2), vec![told("ours", 5, 5), told("his", 1, 0)], now).await;

    let ours = Seen { wanted_per_s: 8, own_per_s: 5, passed: 6 };
    let his = Seen { wanted_per_s: 1, own_per_s: 1, passed: 0 };
    assert_eq!(shared, Ok(Shared { nodes: 2, seen: vec![ours, his] }));
}

async fn what_passed_counts_for_a_second_and_the_last_wish_as_long(quota: &dyn Quota, now: Wall) {
    // In the middle of a tenth of a second.
    let start = now.0 / 100 * 100 + 50;
    let told = |wanted_per_s, passed| vec![Use { key: "old".into(), wanted_per_s, passed }];
    quota.share(NodeId(1), told(7, 100), Wall(start)).await.unwrap();
    let mut seen = Vec::new();
    for (after_ms, wanted, passed) in
        [(100, 9, 10), (900, 1, 1), (1_000, 1, 0), (1_049, 1, 0), (1_100, 1, 0), (3_000, 1, 0)]
    {
        let told = told(wanted, passed);
        let shared = quota.share(NodeId(2), told, Wall(start + after_ms)).await.unwrap();
        seen.push((shared.seen[0].wanted_per_s, shared.seen[0].passed));
    }

    // A tenth that is half outside counts half.
    assert_eq!(seen, [(16, 110), (8, 111), (1, 61), (1, 12), (1, 6), (1, 0)]);
}

async fn silent_nodes_are_not_counted(quota: &dyn Quota, now: Wall) {
    let mut nodes = Vec::new();
    for (node, after_ms) in [(1, 0), (2, 0), (1, 600), (1, 1_200), (2, 1_300)] {
        let shared = quota.share(NodeId(node), vec![], Wall(now.0 + after_ms)).await.unwrap();
        nodes.push(shared.nodes);
    }

    assert_eq!(nodes, [1, 2, 2, 1, 2]);
}

async fn nodes_whose_clocks_differ_share_all_the_same(quota: &dyn Quota, now: Wall) {
    let ask = || Ask { key: "skew".into(), wanted: 100, rate_per_s: 10, burst: 100 };
    let told = || vec![Use { key: "skew".into(), wanted_per_s: 5, passed: 1 }];
    let ahead_ms = 5_000;

    let (mut granted, mut seen) = (0, Vec::new());
    for turn in 0..10 {
        let slow = Wall(now.0 + turn * 100);
        for (node, now) in [(1, slow), (2, Wall(slow.0 + ahead_ms))] {
            granted += one(quota, ask(), now).await.granted;
            let shared = quota.share(NodeId(node), told(), now).await.unwrap();
            seen.push((shared.nodes, shared.seen[0].wanted_per_s, shared.seen[0].passed));
        }
    }

    // From the second turn on. The bucket was full, and filled once for the difference.
    assert!(seen[2..].iter().all(|it| (it.0, it.1) == (2, 10)), "{seen:?}");
    assert_eq!(seen.last().map(|it| it.2), Some(19), "the first node's first was long ago");
    assert_eq!(granted, 100 + 50 + 9);
}

async fn a_bucket_starts_full_and_refills(quota: &dyn Quota, now: Wall) {
    let ask = |wanted| Ask { key: "refill".into(), wanted, rate_per_s: 10, burst: 5 };

    assert_eq!(one(quota, ask(3), now).await, given(3, 0));
    assert_eq!(one(quota, ask(3), now).await, given(2, 100));
    assert_eq!(one(quota, ask(1), Wall(now.0 + 99)).await, given(0, 1));
    assert_eq!(one(quota, ask(1), Wall(now.0 + 100)).await, given(1, 0));
    assert_eq!(one(quota, ask(9), Wall(now.0 + 60_000)).await, given(5, 400));
}

async fn a_batch_is_answered_in_order(quota: &dyn Quota, now: Wall) {
    let ask = |key: &str| Ask { key: key.into(), wanted: 2, rate_per_s: 1, burst: 3 };

    let taken = quota.take(vec![ask("first"), ask("second"), ask("first")], now).await;

    assert_eq!(taken, [given(2, 0), given(2, 0), given(1, 1000)]);
    assert_eq!(quota.take(vec![], now).await, []);
}

async fn what_can_never_be_given_says_so(quota: &dyn Quota, now: Wall) {
    let no_rate = Ask { key: "no rate".into(), wanted: 2, rate_per_s: 0, burst: 1 };
    let no_burst = Ask { key: "no burst".into(), wanted: 1, rate_per_s: 5, burst: 0 };

    assert_eq!(one(quota, no_rate, now).await, given(1, u32::MAX));
    assert_eq!(one(quota, no_burst, now).await, given(0, u32::MAX));
}

async fn a_clock_set_back_gives_nothing_and_blocks_nobody(quota: &dyn Quota, now: Wall) {
    let ask = || Ask { key: "back".into(), wanted: 1, rate_per_s: 1, burst: 1 };
    let earlier = Wall(now.0.saturating_sub(500_000));
    assert_eq!(one(quota, ask(), now).await, given(1, 0));

    assert_eq!(one(quota, ask(), earlier).await, given(0, 1000));
    assert_eq!(one(quota, ask(), Wall(earlier.0 + 1000)).await, given(1, 0));
}

async fn one(quota: &dyn Quota, ask: Ask, now: Wall) -> Taken {
    let taken = quota.take(vec![ask], now).await;
    assert_eq!(taken.len(), 1, "one answer for each ask");
    taken[0]
}

fn given(granted: u32, retry_after_ms: u32) -> Taken {
    Taken { granted, retry_after_ms }
}
