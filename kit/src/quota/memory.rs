//! Quotas of one process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use proto::id::NodeId;
use proto::time::{Wall, millis};

use super::window::{Window, is_recent};
use super::{Ask, Away, Quota, Shared, Taken, Use};

/// Clocks of those who share a quota may differ by so much; one that lags further was set back.
const SKEW_MAX: Duration = Duration::from_secs(10);

/// Buckets and windows in memory, at most `keys_max` of each.
///
/// When a new key finds no room, buckets that are full again are forgotten, which changes
/// nothing; if there is none, the one that was asked longest ago is. About 150 bytes a key.
/// Windows likewise: those in which nothing is any more, then any. About 400 bytes a key
/// and 50 for each node.
///
/// The foremost of the callers' clocks counts: between two answers no time passes twice.
#[derive(Debug)]
pub struct MemoryQuota {
    keys_max: usize,
    /// The time that counts.
    latest: Mutex<Wall>,
    buckets: Mutex<BTreeMap<Arc<str>, Bucket>>,
    windows: Mutex<Windows>,
}

#[derive(Debug, Default)]
struct Windows {
    keys: BTreeMap<Arc<str>, Window>,
    /// When each node last said something.
    nodes: BTreeMap<NodeId, Wall>,
}

/// Level in thousandths: a rate per second is thousandths per millisecond.
#[derive(Debug)]
struct Bucket {
    level_milli: u64,
    full_milli: u64,
    rate_per_s: u32,
    asked: Wall,
}

impl MemoryQuota {
    /// Without any bucket.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self {
            keys_max: keys_max.max(1),
            latest: Mutex::default(),
            buckets: Mutex::default(),
            windows: Mutex::default(),
        }
    }

    /// Keys that have a bucket now.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.buckets.lock().len()
    }

    /// The time that counts, when a caller's clock says `told`.
    fn now(&self, told: Wall) -> Wall {
        let mut latest = self.latest.lock();
        if told > *latest || latest.since(told) > SKEW_MAX {
            *latest = told;
        }
        *latest
    }

    fn take_one(&self, ask: &Ask, now: Wall) -> Taken {
        let mut buckets = self.buckets.lock();
        if buckets.len() >= self.keys_max && !buckets.contains_key(&ask.key) {
            make_room(&mut buckets, self.keys_max, now);
        }
        let bucket = buckets.entry(Arc::clone(&ask.key)).or_insert_with(|| Bucket::new(ask, now));
        bucket.fill(ask, now);
        bucket.take(ask.wanted)
    }
}

impl Quota for MemoryQuota {
    fn take(&self, asks: Vec<Ask>, now: Wall) -> BoxFuture<'_, Vec<Taken>> {
        let now = self.now(now);
        ready(asks.iter().map(|ask| self.take_one(ask, now)).collect()).boxed()
    }

    fn share(
        &self,
        node: NodeId,
        uses: Vec<Use>,
        now: Wall,
    ) -> BoxFuture<'_, Result<Shared, Away>> {
        let now = self.now(now);
        ready(Ok(self.windows.lock().share(node, &uses, self.keys_max, now))).boxed()
    }
}

impl Windows {
    fn share(&mut self, node: NodeId, uses: &[Use], keys_max: usize, now: Wall) -> Shared {
        self.nodes.insert(node, now);
        self.nodes.retain(|_, said| is_recent(*said, now));
        let seen = uses.iter().map(|told| {
            if self.keys.len() >= keys_max && !self.keys.contains_key(&told.key) {
                self.make_room(keys_max, now);
            }
            let window = self.keys.entry(Arc::clone(&told.key)).or_default();
            window.add(node, told, now);
            window.seen(node, now)
        });
        let seen = seen.collect();
        Shared { nodes: u32::try_from(self.nodes.len()).unwrap_or(u32::MAX), seen }
    }

    fn make_room(&mut self, keys_max: usize, now: Wall) {
        self.keys.retain(|_, it| !it.is_over(now));
        while self.keys.len() >= keys_max {
            self.keys.pop_first();
        }
    }
}

impl Bucket {
    fn new(ask: &Ask, now: Wall) -> Self {
        let full_milli = u64::from(ask.burst) * 1000;
        Self { level_milli: full_milli, full_milli, rate_per_s: ask.rate_per_s, asked: now }
    }

    /// A clock that was set back neither fills the bucket nor stops it from filling.
    fn fill(&mut self, ask: &Ask, now: Wall) {
        self.full_milli = u64::from(ask.burst) * 1000;
        self.rate_per_s = ask.rate_per_s;
        self.level_milli = self.level_at(now);
        self.asked = now;
    }

    fn level_at(&self, now: Wall) -> u64 {
        let gained = millis(now.since(self.asked)).saturating_mul(u64::from(self.rate_per_s));
        self.level_milli.saturating_add(gained).min(self.full_milli)
    }

    fn take(&mut self, wanted: u32) -> Taken {
        let there = u32::try_from(self.level_milli / 1000).unwrap_or(u32::MAX);
        let granted = wanted.min(there);
        self.level_milli -= u64::from(granted) * 1000;
        let missing_milli = (u64::from(wanted - granted) * 1000).min(self.full_milli);
        let retry_after_ms = match (wanted - granted, missing_milli, self.rate_per_s) {
            (0, _, _) => 0,
            (_, 0, _) | (_, _, 0) => u32::MAX,
            (_, _, rate) => {
                let lacking = missing_milli.saturating_sub(self.level_milli);
                u32::try_from(lacking.div_ceil(u64::from(rate))).unwrap_or(u32::MAX)
            }
        };
        Taken { granted, retry_after_ms }
    }
}

fn make_room(buckets: &mut BTreeMap<Arc<str>, Bucket>, keys_max: usize, now: Wall) {
    buckets.retain(|_, it| it.level_at(now) < it.full_milli);
    while buckets.len() >= keys_max {
        let Some(oldest) = buckets.iter().min_by_key(|(_, it)| it.asked) else { return };
        let oldest = Arc::clone(oldest.0);
        buckets.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::contract;

    #[tokio::test]
    async fn memory_keeps_the_contract() {
        contract::check(&MemoryQuota::new(100), Wall(1_000_000)).await;
    }

    #[tokio::test]
    async fn full_buckets_are_forgotten_before_used_ones() {
        let quota = MemoryQuota::new(2);
        quota.take(vec![ask("used", 10), ask("idle", 0)], Wall(0)).await;

        quota.take(vec![ask("new", 1)], Wall(1)).await;

        assert_eq!(quota.keys(), 2);
        assert_eq!(quota.take(vec![ask("used", 1)], Wall(1)).await[0].granted, 0);
    }

    #[tokio::test]
    async fn keys_are_bounded_even_if_all_are_used() {
        let quota = MemoryQuota::new(3);

        for key in 0..100_u64 {
            quota.take(vec![ask(&key.to_string(), 10)], Wall(key)).await;
        }

        assert_eq!(quota.keys(), 3);
    }

    #[tokio::test]
    async fn windows_are_bounded_too() {
        let quota = MemoryQuota::new(3);

        for key in 0..100_u64 {
            let told = Use { key: key.to_string().into(), wanted_per_s: 1, passed: 1 };
            quota.share(NodeId(1), vec![told], Wall(key)).await.unwrap();
        }

        assert_eq!(quota.windows.lock().keys.len(), 3);
    }

    fn ask(key: &str, wanted: u32) -> Ask {
        Ask { key: key.into(), wanted, rate_per_s: 1, burst: 10 }
    }
}
