//! What every [`Quota`] adapter does; its tests call [`check`] with an empty one.

use proto::time::Wall;

use super::{Ask, Quota, Taken};

/// Panics where `quota` does not keep the contract. It must be empty; `now` is any time.
pub(super) async fn check(quota: &dyn Quota, now: Wall) {
    a_bucket_starts_full_and_refills(quota, now).await;
    a_batch_is_answered_in_order(quota, now).await;
    what_can_never_be_given_says_so(quota, now).await;
    a_clock_set_back_gives_nothing_and_blocks_nobody(quota, now).await;
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
