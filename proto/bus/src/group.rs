//! Reading with ownership: each partition has one reader at a time, which commits what it has done.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kit::clock::Clock;
use proto::id::{NodeId, Term};

use crate::lease::{Lease, LeaseConfig, LeaseEvent};
use crate::reads::Reads;
use crate::tail::Tailed;
use crate::{At, Bus, Offset, PartitionNo, ReadError, Record, Topic};

/// Pause after the committed place could not be found.
const LOCATE_PAUSE: Duration = Duration::from_millis(100);

/// Who reads what.
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// The bus that has the topic.
    pub bus: Arc<dyn Bus>,
    /// The bus that has `control`, where ownership is settled.
    pub control: Arc<dyn Bus>,
    /// What is read.
    pub topic: Topic,
    /// Under which name it is committed.
    pub group: Arc<str>,
    /// This member; no two live members of the group share an id.
    pub node: NodeId,
    /// Time.
    pub clock: Clock,
}

/// What happened to a member.
#[derive(Clone, Debug)]
pub enum GroupEvent {
    /// The partition is this member's: its records follow, from `committed` on.
    Gained {
        /// Which.
        partition: PartitionNo,
        /// The term to publish with; no other member ever has it.
        term: Term,
        /// What was committed last; the oldest record if nothing was.
        committed: Offset,
    },
    /// It no longer is: forget what is not committed. When it was given up for a new member's
    /// sake, it is passed on at the next call of [`Group::next`].
    Lost {
        /// Which.
        partition: PartitionNo,
    },
    /// Records of a partition that this member holds, at least one, in order.
    Records {
        /// Which.
        partition: PartitionNo,
        /// As it was gained.
        term: Term,
        /// They.
        records: Vec<Record>,
    },
}

/// A member of a group.
///
/// It holds its partitions while [`Group::next`] is called: a member that does not call it for
/// two seconds loses them, and hears that first when it calls again.
pub struct Group {
    config: GroupConfig,
    lease: Lease,
    held: BTreeMap<PartitionNo, Term>,
    locating: BTreeMap<PartitionNo, BoxFuture<'static, Offset>>,
    reads: Reads,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { config, held, .. } = self;
        f.debug_struct("Group").field("config", config).field("held", held).finish()
    }
}

impl Group {
    /// Becomes a member, without any partition yet.
    ///
    /// # Errors
    /// When `control` cannot be read.
    pub async fn join(config: GroupConfig) -> Result<Self, ReadError> {
        let lease = Lease::join(LeaseConfig {
            control: Arc::clone(&config.control),
            name: Arc::clone(&config.topic.name),
            partitions: config.topic.partitions,
            node: config.node,
            clock: config.clock.clone(),
        });
        let lease = lease.await?;
        let reads = Reads::new(Arc::clone(&config.bus), config.topic.clone());
        Ok(Self { config, lease, held: BTreeMap::new(), locating: BTreeMap::new(), reads })
    }

    /// Waits for the next event, at most `records_max` records, and renews the claims meanwhile.
    ///
    /// Cancelling it loses nothing.
    ///
    /// # Errors
    /// [`ReadError::Away`] while the bus is away: report it and call again; it pauses by itself.
    /// [`ReadError::Gone`] when records were lost before they were read; it goes on behind them.
    pub async fn next(&mut self, records_max: usize) -> Result<GroupEvent, ReadError> {
        loop {
            tokio::select! {
                // Ownership first: whoever was stopped must not go on with old records.
                biased;
                event = self.lease.next() => {
                    if let Some(event) = self.change(event) {
                        return Ok(event);
                    }
                }
                (partition, committed) = located(&mut self.locating) => {
                    let Some(&term) = self.held.get(&partition) else { continue };
                    self.reads.begin(partition, committed);
                    return Ok(GroupEvent::Gained { partition, term, committed });
                }
                tailed = self.reads.next(records_max) => match tailed? {
                    Tailed::Records(records) => {
                        let Some(partition) = records.first().map(|it| it.partition) else {
                            continue;
                        };
                        let Some(&term) = self.held.get(&partition) else { continue };
                        return Ok(GroupEvent::Records { partition, term, records });
                    }
                    Tailed::Skipped { oldest, .. } => return Err(ReadError::Gone { oldest }),
                }
            }
        }
    }

    /// Says that all work before `next` is done and need not be given to anyone again.
    ///
    /// # Errors
    /// When the bus did not take it; it may be repeated.
    pub async fn commit(&self, partition: PartitionNo, next: Offset) -> Result<(), ReadError> {
        let GroupConfig { bus, topic, group, .. } = &self.config;
        bus.commit(Arc::clone(group), topic.clone(), partition, next).await
    }

    /// The partitions this member was told it holds, with the terms.
    #[must_use]
    pub fn held(&self) -> Vec<(PartitionNo, Term)> {
        self.held.iter().map(|(&partition, &term)| (partition, term)).collect()
    }

    /// Gives up all partitions at once, after the last commit.
    pub async fn leave(self) {
        self.lease.leave().await;
    }

    /// Takes note of a change. A partition is announced once its committed place is known.
    fn change(&mut self, event: LeaseEvent) -> Option<GroupEvent> {
        match event {
            LeaseEvent::Gained { partition, term } => {
                self.held.insert(partition, term);
                self.locating.insert(partition, self.locate(partition));
                None
            }
            LeaseEvent::Lost { partition } => {
                self.held.remove(&partition);
                self.reads.end(partition);
                let is_announced = self.locating.remove(&partition).is_none();
                is_announced.then_some(GroupEvent::Lost { partition })
            }
        }
    }

    /// Tries until it is known, or until the partition is lost.
    fn locate(&self, partition: PartitionNo) -> BoxFuture<'static, Offset> {
        let GroupConfig { bus, topic, group, .. } = self.config.clone();
        async move {
            loop {
                let committed = At::Committed(Arc::clone(&group));
                match bus.locate(topic.clone(), partition, committed).await {
                    Ok(offset) => return offset,
                    Err(error) => {
                        tracing::warn!(%error, topic = %topic.name, "no committed place");
                    }
                }
                tokio::time::sleep(LOCATE_PAUSE).await;
            }
        }
        .boxed()
    }
}

/// Waits for the first place that is found; for ever when none is sought.
async fn located(
    locating: &mut BTreeMap<PartitionNo, BoxFuture<'static, Offset>>,
) -> (PartitionNo, Offset) {
    let found = poll_fn(|cx| {
        let found = locating.iter_mut().find_map(|(&partition, seek)| match seek.poll_unpin(cx) {
            Poll::Ready(offset) => Some((partition, offset)),
            Poll::Pending => None,
        });
        found.map_or(Poll::Pending, Poll::Ready)
    });
    let (partition, offset) = found.await;
    locating.remove(&partition);
    (partition, offset)
}
