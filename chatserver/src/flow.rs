//! What rooms may show, shared with the other chatservers and told to links.
//!
//! Ten times a second this chatserver says what it saw of each room, and hears what all saw
//! ([`chatserver_core::flow`]); while nobody answers, the shard keeps to its own part. The share of
//! comments that links pass on ([`chatserver_core::keep`]) is told by the one chatserver that has
//! the partition of the room's gauges.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bus::{Lease, LeaseConfig, LeaseEvent, PartitionNo, topic};
use chatserver_core::flow::{Seen, TURN};
use chatserver_core::shard::Input;
use kit::quota::{Quota, Use};
use parking_lot::Mutex;
use proto::control::Fact;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::mail;
use crate::site::Site;

/// Time for the others to answer; what is not answered by then counts as not heard.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Under which name the partitions of `gauges` are shared out among chatservers.
const LEASE: &str = "keep";
/// Pause after the lease could not be joined.
const PAUSE: Duration = Duration::from_millis(500);

/// Who tells and hears.
#[derive(Debug)]
pub(crate) struct Flow {
    site: Arc<Site>,
    desk: Arc<Desk>,
    quota: Arc<dyn Quota>,
    owned: Mutex<BTreeSet<PartitionNo>>,
}

impl Flow {
    pub(crate) fn new(site: Arc<Site>, desk: Arc<Desk>, quota: Arc<dyn Quota>) -> Self {
        Self { site, desk, quota, owned: Mutex::default() }
    }

    /// Takes turns until `shutdown`.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            () = shutdown.cancelled() => Ok(()),
            () = self.take_turns() => Ok(()),
        }
    }

    /// Holds what partitions of `gauges` it can get, until `shutdown`.
    pub(crate) async fn own(self: Arc<Self>, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut lease = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            lease = self.join() => lease,
        };
        loop {
            let event = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                event = lease.next() => event,
            };
            match event {
                LeaseEvent::Gained { partition, .. } => self.owned.lock().insert(partition),
                LeaseEvent::Lost { partition } => self.owned.lock().remove(&partition),
            };
        }
        lease.leave().await;
        Ok(())
    }

    async fn join(&self) -> Lease {
        loop {
            let joined = Lease::join(LeaseConfig {
                control: self.site.global.bus(),
                name: LEASE.into(),
                partitions: topic::gauges().partitions,
                node: self.site.config.node,
                clock: self.site.clock.clone(),
            });
            match joined.await {
                Ok(lease) => return lease,
                Err(error) => tracing::warn!(%error, "the lease of gauges cannot be joined"),
            }
            self.site.clock.sleep(PAUSE).await;
        }
    }

    async fn take_turns(&self) {
        let mut next = self.site.clock.mono();
        loop {
            let outcome = if self.share().await.is_some() { "ok" } else { "away" };
            self.site.counts.flow_turn(outcome);
            self.tell_links().await;
            next = (next + TURN).max(self.site.clock.mono());
            self.site.clock.sleep_until(next).await;
        }
    }

    /// None if nobody answers.
    async fn share(&self) -> Option<()> {
        let tallies = self.desk.tell();
        let uses = tallies.iter().map(|it| Use {
            key: format!("flow:{}:{}", it.app, it.room).into(),
            wanted_per_s: it.wanted_per_s,
            passed: it.passed,
        });
        let node = self.site.config.node;
        let shared = self.quota.share(node, uses.collect(), self.site.clock.wall());
        let shared = tokio::time::timeout(ANSWER_MAX, shared).await.ok()?.ok()?;
        let seen = tallies.into_iter().zip(shared.seen).map(|(told, it)| {
            let kit::quota::Seen { wanted_per_s, own_per_s, passed } = it;
            (told.app, told.room, Seen { wanted_per_s, own_per_s, passed })
        });
        let seen = seen.collect();
        self.desk.learn([Input::Flow { nodes: shared.nodes, seen }]);
        Some(())
    }

    async fn tell_links(&self) {
        let gauges = topic::gauges();
        let facts = self.desk.tick();
        let records: Vec<_> = {
            let owned = self.owned.lock();
            let is_ours = |fact: &&Fact| {
                let Fact::Keep { room, .. } = fact else { return false };
                owned.contains(&gauges.partition_of_room(room))
            };
            facts.iter().filter(is_ours).map(mail::fact).collect()
        };
        if records.is_empty() {
            return;
        }
        let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
        let sent = tokio::time::timeout(ANSWER_MAX, self.site.global.send_once(records)).await;
        match sent {
            Ok(sent) if sent.iter().all(Result::is_ok) => self.site.counts.keeps.inc_by(count),
            // It is told again in a while.
            Ok(_) | Err(_) => tracing::debug!("control did not take shares of comments"),
        }
    }
}
