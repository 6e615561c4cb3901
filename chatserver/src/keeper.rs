//! The journal of the partitions that this process keeps: what is open is published again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bus::{Lease, LeaseConfig, LeaseEvent, PartitionNo, topic};
use chatserver_core::gift;
use chatserver_core::journal::{Input, Journal, Output};
use parking_lot::Mutex;
use proto::envelope::{Accepted, RoomEntry, RoomEvent};
use proto::id::{ItemId, RoomId};
use tokio_util::sync::CancellationToken;

use crate::desk::gauge;
use crate::mail;
use crate::site::Site;
use crate::store::StoreError;

/// Under which name the partitions are shared out among chatservers.
const LEASE: &str = "journal";
/// How often open entries are looked at.
const SCAN: Duration = Duration::from_secs(1);
/// Pause after the lease could not be joined.
const PAUSE: Duration = Duration::from_millis(500);

/// The keeper of the journal.
#[derive(Debug)]
pub(crate) struct Keeper {
    site: Arc<Site>,
    journal: Mutex<Journal>,
    owned: Mutex<BTreeSet<PartitionNo>>,
}

impl Keeper {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        Self { site, journal: Mutex::default(), owned: Mutex::default() }
    }

    /// Holds what partitions it can get, and looks after their open entries, until `shutdown`.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut lease = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            lease = self.join() => lease,
        };
        let mut scan_at = self.site.clock.mono();
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                event = lease.next() => match event {
                    LeaseEvent::Gained { partition, .. } => {
                        self.owned.lock().insert(partition);
                    }
                    LeaseEvent::Lost { partition } => {
                        self.owned.lock().remove(&partition);
                    }
                },
                () = self.site.clock.sleep_until(scan_at) => {
                    match self.scan().await {
                        Ok(()) => self.site.store.ok(),
                        Err(error) => self.site.store.fail(error.to_string()),
                    }
                    scan_at = self.site.clock.mono() + SCAN;
                }
            }
        }
        lease.leave().await;
        Ok(())
    }

    /// Takes note of what became of items in a partition.
    pub(crate) async fn see(&self, partition: PartitionNo, entries: &[RoomEntry]) {
        if !self.owned.lock().contains(&partition) {
            return;
        }
        let told = entries.iter().filter(|it| concerns(&it.event)).cloned();
        let told = told.map(|RoomEntry { room, event, .. }| Input::Event { room, event });
        let (_, forgotten) = self.feed(told);
        if let Err(error) = self.close(&forgotten).await {
            // They are published again, and the broadcaster says again that they were shown.
            tracing::warn!(%error, "journal entries stay open");
        }
    }

    async fn join(&self) -> Lease {
        loop {
            let joined = Lease::join(LeaseConfig {
                control: self.site.global.bus(),
                name: LEASE.into(),
                partitions: topic::accepted().partitions,
                node: self.site.config.node,
                clock: self.site.clock.clone(),
            });
            match joined.await {
                Ok(lease) => return lease,
                Err(error) => tracing::warn!(%error, "the journal's lease cannot be joined"),
            }
            self.site.clock.sleep(PAUSE).await;
        }
    }

    async fn scan(&self) -> Result<(), StoreError> {
        let owned = self.owned.lock().clone();
        let mut open = Vec::new();
        for partition in owned {
            open.extend(self.site.rows.open(partition.0).await?);
        }
        self.site.counts.open_entries.set(gauge(open.len()));
        self.journal.lock().tick(self.site.now());
        let (due, forgotten) = self.feed([Input::Scan(open)]);
        self.close(&forgotten).await?;
        if !due.is_empty() {
            let records = mail::accepted(due).into_iter().map(|it| (it.ids.len(), it.record));
            let (counts, records): (Vec<_>, Vec<_>) = records.unzip();
            for (count, sent) in counts.into_iter().zip(self.site.global.send_once(records).await) {
                // What the bus did not take is due again in three seconds.
                if sent.is_ok() {
                    self.site.counts.republished.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
                }
            }
        }
        Ok(())
    }

    async fn close(&self, forgotten: &[(RoomId, ItemId)]) -> Result<(), StoreError> {
        let accepted = topic::accepted();
        let key = |(room, id): &(RoomId, ItemId)| (accepted.partition_of_room(room).0, *id);
        self.site.rows.close(&forgotten.iter().map(key).collect::<Vec<_>>()).await?;
        self.site.counts.closed.inc_by(u64::try_from(forgotten.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    fn feed(
        &self,
        inputs: impl IntoIterator<Item = Input>,
    ) -> (Vec<Accepted>, Vec<(RoomId, ItemId)>) {
        let now = self.site.now();
        let (mut due, mut forgotten) = (Vec::new(), Vec::new());
        let mut journal = self.journal.lock();
        for input in inputs {
            journal.handle(input, now);
        }
        while let Some(output) = journal.poll() {
            match output {
                Output::Republish(accepted) => due.push(accepted),
                Output::Forget { room, id } => forgotten.push((room, id)),
            }
        }
        (due, forgotten)
    }
}

/// Whether an event says something about journaled items: most flushes do not, and are not copied.
fn concerns(event: &RoomEvent) -> bool {
    match event {
        RoomEvent::Flush { items, .. } => items.iter().any(|it| gift::is_journaled(it.item.id)),
        RoomEvent::Fates { fates } => fates.iter().any(|it| gift::is_journaled(it.0)),
        RoomEvent::Seal { .. } => true,
        RoomEvent::Opened { .. } | RoomEvent::Heat { .. } => false,
    }
}
