//! Viewers' acts, from `uplink.{unit}` to their verdicts.
//!
//! A turn takes the records of one partition, judges them, puts admitted items on `accepted` and
//! answers on `reply.{unit}`, and only then commits. A turn that is done twice, after a takeover
//! or a lost commit, finds the senders' numbers in the shard's memory.

use std::sync::Arc;
use std::time::Duration;

use bus::{Group, GroupConfig, GroupEvent, Offset, PartitionNo, ReadError, Record, topic};
use chatserver_core::shard::Input;
use proto::envelope::{Act, UplinkBatch};
use proto::time::Wall;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::devices::Devices;
use crate::site::Site;

/// Under which name uplinks are committed.
const GROUP: &str = "chatserver";
/// Records of one turn: up to 16,000 acts.
const RECORDS_MAX: usize = 16;
/// Pause after the group could not be joined.
const JOIN_PAUSE: Duration = Duration::from_millis(500);

/// The reader of `uplink.{unit}`.
#[derive(Debug)]
pub(crate) struct Uplink {
    pub(crate) site: Arc<Site>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) devices: Arc<Devices>,
}

impl Uplink {
    /// Takes turns from `ready` until `shutdown`; the last turn is finished.
    pub(crate) async fn run(
        self,
        ready: CancellationToken,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let joined = async {
            ready.cancelled().await;
            self.join().await
        };
        let mut group = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            group = joined => group,
        };
        loop {
            let event = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                event = group.next(RECORDS_MAX) => event,
            };
            match event {
                Ok(GroupEvent::Gained { partition, .. }) => {
                    tracing::debug!(partition = partition.0, "an uplink partition was gained");
                }
                Ok(GroupEvent::Lost { partition }) => {
                    tracing::debug!(partition = partition.0, "an uplink partition was lost");
                }
                Ok(GroupEvent::Records { partition, records, .. }) => {
                    self.turn(partition, records).await;
                }
                Err(ReadError::Gone { .. }) => self.site.counts.skipped.inc(),
                // The group pauses by itself; upkeep tells the health.
                Err(ReadError::Away | ReadError::NoPartition) => {}
            }
        }
        group.leave().await;
        Ok(())
    }

    async fn join(&self) -> Group {
        loop {
            let joined = Group::join(GroupConfig {
                bus: self.site.local.bus(),
                control: self.site.global.bus(),
                topic: topic::uplink(self.site.config.unit),
                group: GROUP.into(),
                node: self.site.config.node,
                clock: self.site.clock.clone(),
            });
            match joined.await {
                Ok(group) => return group,
                Err(error) => tracing::warn!(%error, "the uplink group cannot be joined"),
            }
            self.site.clock.sleep(JOIN_PAUSE).await;
        }
    }

    async fn turn(&self, partition: PartitionNo, records: Vec<Record>) {
        let Some(next) = records.last().map(|it| Offset(it.offset.0 + 1)) else { return };
        let start = self.site.clock.micros();
        let now = self.site.clock.wall();
        for record in &records {
            self.site.counts.uplink_age.observe(now.since(record.at).as_secs_f64());
        }
        let taken = |record: &Record| {
            let at = record.at;
            self.decode(record).into_iter().map(move |it| (at, it))
        };
        let inputs: Vec<(Wall, Input)> = records.iter().flat_map(taken).collect();
        let moves = self.devices.moves(&inputs);
        let acts = inputs.into_iter().map(|(_, it)| it).collect();
        tokio::join!(self.devices.act(moves), self.desk.act(acts));
        let turn = Duration::from_micros(self.site.clock.micros().saturating_sub(start));
        self.site.counts.turn.observe(turn.as_secs_f64());
        // Not by the group: it cannot be lent to a future that moves between threads.
        let uplink = topic::uplink(self.site.config.unit);
        let committed = self.site.local.commit(GROUP, uplink, (partition, next));
        if let Err(error) = committed.await {
            // The records come again, and their senders' numbers are known.
            tracing::warn!(%error, partition = partition.0, "a turn was not committed");
        }
    }

    fn decode(&self, record: &Record) -> Vec<Input> {
        let Ok(UplinkBatch { node, entries }) = UplinkBatch::decode(&record.value) else {
            self.site.counts.damaged.inc();
            return Vec::new();
        };
        for entry in &entries {
            match entry.act {
                Act::Join { .. } => self.site.counts.joins.inc(),
                Act::Leave => self.site.counts.leaves.inc(),
                Act::Like { count } => self.site.counts.likes.inc_by(count.into()),
                Act::Comment { .. } => {}
            }
        }
        entries.into_iter().map(|entry| Input::Uplink { node, entry }).collect()
    }
}
