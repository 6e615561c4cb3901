//! Ownership of numbered things by claims on `control`: at most one live owner each.
//!
//! [`Group`](crate::group::Group) shares out the partitions of a topic with it; the chatservers
//! their journal. The decisions are in [`claims`]; this is the loop that carries them to the log.

pub mod claims;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kit::clock::Clock;
use proto::control::{Fact, LeaseFact};
use proto::id::{NodeId, Term};
use proto::time::{Mono, Wall};

use self::claims::{Claim, Claims, Input, LIFE, Output};
use crate::reads::Reads;
use crate::tail::Tailed;
use crate::{At, Bus, Offset, PartitionNo, Publish, ReadError, Record, topic};

/// Records of `control` that are handled between two decisions.
const RECORDS_MAX: usize = 500;
/// Longest time for an append to `control`.
const PUBLISH_MAX: Duration = Duration::from_secs(1);
/// When a claim expires that was given up: before any clock.
const GIVEN_UP: Wall = Wall(0);
/// How long the log is waited for when it seems to hold more than it gives.
const BACKLOG_WAIT: Duration = Duration::from_millis(200);

/// Who wants what.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// The bus that has `control`.
    pub control: Arc<dyn Bus>,
    /// What is shared out: a topic's name, or any other word.
    pub name: Arc<str>,
    /// How many there are to hold.
    pub partitions: u32,
    /// This member; no two live ones share an id.
    pub node: NodeId,
    /// Time.
    pub clock: Clock,
}

/// A change of ownership.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseEvent {
    /// The partition is this member's.
    Gained {
        /// Which.
        partition: PartitionNo,
        /// The term to publish with; no other member ever has it.
        term: Term,
    },
    /// It no longer is: another may have it.
    Lost {
        /// Which.
        partition: PartitionNo,
    },
}

/// A member. It renews its claims while [`Lease::next`] is awaited, and loses them about two
/// seconds after that stops. Dropped without [`Lease::leave`], the others wait as long.
pub struct Lease {
    config: LeaseConfig,
    claims: Claims,
    reads: Reads,
    /// Claims to append once the append before has ended.
    puts: Vec<Claim>,
    appending: Option<BoxFuture<'static, Appended>>,
}

struct Appended {
    sent: Mono,
    claims: Vec<(Claim, bool)>,
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { config, claims, .. } = self;
        f.debug_struct("Lease").field("config", config).field("claims", claims).finish()
    }
}

impl Lease {
    /// Reads what others have claimed so far.
    ///
    /// # Errors
    /// When `control` cannot be read.
    pub async fn join(config: LeaseConfig) -> Result<Self, ReadError> {
        let LeaseConfig { control, partitions, node, clock, .. } = &config;
        let claims = Claims::new(*node, *partitions, clock.mono());
        let reads = Reads::new(Arc::clone(control), topic::control());
        let mut lease = Self { claims, reads, puts: vec![], appending: None, config };
        lease.read_backlog().await?;
        Ok(lease)
    }

    /// Waits for the next change, and renews meanwhile.
    ///
    /// Cancelling it loses nothing. While `control` is away it waits on, and the claims lapse.
    pub async fn next(&mut self) -> LeaseEvent {
        loop {
            self.claims.tick(self.config.clock.mono());
            if let Some(event) = self.take_outputs() {
                return event;
            }
            self.append();
            let deadline = self.claims.deadline();
            tokio::select! {
                appended = ended(&mut self.appending) => self.note(&appended),
                tailed = self.reads.next(RECORDS_MAX) => match tailed {
                    Ok(Tailed::Records(records)) => self.see(&records, GIVEN_UP),
                    Ok(Tailed::Skipped { .. }) => {}
                    Err(error) => tracing::debug!(%error, "control cannot be read"),
                },
                () = until(&self.config.clock, deadline) => {}
            }
        }
    }

    /// What this member holds, with the terms.
    #[must_use]
    pub fn held(&self) -> Vec<(PartitionNo, Term)> {
        self.claims.held().collect()
    }

    /// Gives everything up, so that others need not wait for it to expire. Two seconds at most.
    pub async fn leave(mut self) {
        if let Some(appending) = self.appending.take() {
            appending.await;
        }
        self.claims.handle(Input::Leave, self.config.clock.mono());
        self.puts.clear();
        while self.take_outputs().is_some() {}
        self.append();
        ended(&mut self.appending).await;
    }

    async fn read_backlog(&mut self) -> Result<(), ReadError> {
        let control = topic::control();
        let bus = Arc::clone(&self.config.control);
        let partition = PartitionNo(0);
        let mut next = bus.locate(control.clone(), partition, At::Oldest).await?;
        let end = bus.locate(control.clone(), partition, At::End).await?;
        while next < end {
            // The last records may have been compacted away; then an empty answer is the end.
            let read = bus.read(control.clone(), partition, next, RECORDS_MAX, BACKLOG_WAIT);
            let records = read.await?;
            let Some(last) = records.last() else { break };
            next = Offset(last.offset.0 + 1);
            self.see(&records, self.config.clock.wall());
        }
        self.reads.begin(partition, next);
        Ok(())
    }

    /// Feeds records to the machine. Claims that expired by `past` are dead: for the backlog that
    /// is now, for later ones 0, so that the writer's wall clock plays no part.
    fn see(&mut self, records: &[Record], past: Wall) {
        let now = self.config.clock.mono();
        let prefix = format!("lease:{}:", self.config.name);
        for record in records {
            if !record.key.as_ref().is_some_and(|it| it.starts_with(&prefix)) {
                continue;
            }
            let Ok(Fact::Lease(fact)) = Fact::decode(&record.value) else { continue };
            let is_alive = fact.expires > past;
            let partition = PartitionNo(fact.partition);
            let claim = Claim { partition, term: fact.term, is_alive };
            self.claims.handle(Input::Seen { claim, node: fact.node }, now);
        }
    }

    /// Takes outputs up to the next event; claims wait in `puts`.
    fn take_outputs(&mut self) -> Option<LeaseEvent> {
        while let Some(output) = self.claims.poll() {
            match output {
                Output::Put(claim) => self.puts.push(claim),
                Output::Gained { partition, term } => {
                    return Some(LeaseEvent::Gained { partition, term });
                }
                Output::Lost { partition } => return Some(LeaseEvent::Lost { partition }),
            }
        }
        None
    }

    /// Begins to append the waiting claims, unless an append is in progress.
    fn append(&mut self) {
        if self.appending.is_some() || self.puts.is_empty() {
            return;
        }
        let claims = std::mem::take(&mut self.puts);
        let sent = self.config.clock.mono();
        let expires = self.config.clock.wall() + LIFE;
        let records = claims.iter().map(|&claim| self.publish(claim, expires)).collect();
        let bus = Arc::clone(&self.config.control);
        self.appending = Some(
            async move {
                let results = tokio::time::timeout(PUBLISH_MAX, bus.publish(records)).await;
                let results = results.unwrap_or_default().into_iter().map(|it| it.is_ok());
                let results = results.chain(std::iter::repeat(false));
                Appended { sent, claims: claims.into_iter().zip(results).collect() }
            }
            .boxed(),
        );
    }

    fn publish(&self, claim: Claim, expires: Wall) -> Publish {
        let fact = Fact::Lease(LeaseFact {
            topic: self.config.name.as_ref().to_owned(),
            partition: claim.partition.0,
            node: self.config.node,
            term: claim.term,
            expires: if claim.is_alive { expires } else { GIVEN_UP },
        });
        Publish {
            topic: topic::control(),
            partition: PartitionNo(0),
            term: None,
            key: Some(fact.key().into()),
            value: fact.encode().into(),
        }
    }

    fn note(&mut self, appended: &Appended) {
        let now = self.config.clock.mono();
        let Appended { sent, claims } = appended;
        for &(claim, is_kept) in claims {
            let input =
                if is_kept { Input::Kept { claim, sent: *sent } } else { Input::Failed { claim } };
            self.claims.handle(input, now);
        }
    }
}

/// Waits for the append in progress; for ever when there is none.
async fn ended(appending: &mut Option<BoxFuture<'static, Appended>>) -> Appended {
    match appending {
        Some(append) => {
            let appended = append.await;
            *appending = None;
            appended
        }
        None => std::future::pending().await,
    }
}

async fn until(clock: &Clock, deadline: Option<Mono>) {
    match deadline {
        Some(deadline) => clock.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;

    use super::*;
    use crate::fault::{Fault, FaultyBus};
    use crate::memory::{Limits, MemoryBus};

    #[tokio::test]
    async fn a_member_that_vanished_is_followed_when_its_claims_expire() {
        let clock = Clock::system();
        let bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), Limits::default());
        let mut first = member(&bus, &clock, 1).await;
        gain(&mut first, 4).await;
        let mut second = member(&bus, &clock, 2).await;
        let vanished = clock.mono();
        drop(first);

        gain(&mut second, 4).await;

        let took = clock.mono().since(vanished);
        assert!(took > LIFE / 2, "{took:?}: the claims were alive");
        assert!(took < LIFE * 3, "{took:?}");
    }

    #[tokio::test]
    async fn a_member_that_is_cut_off_loses_before_the_other_gains() {
        let clock = Clock::system();
        let bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), Limits::default());
        let switch = FaultyBus::new(Arc::clone(&bus));
        let cut: Arc<dyn Bus> = Arc::<FaultyBus>::clone(&switch);
        let mut first = member(&cut, &clock, 1).await;
        gain(&mut first, 4).await;
        let mut second = member(&bus, &clock, 2).await;

        switch.set(Fault::Silent);
        let lost = async {
            for _ in 0..4 {
                assert!(matches!(first.next().await, LeaseEvent::Lost { .. }));
            }
            clock.micros()
        };
        let gained = async {
            let LeaseEvent::Gained { .. } = second.next().await else { panic!("nothing to lose") };
            clock.micros()
        };
        let (lost, gained) = join(lost, gained).await;

        assert!(lost <= gained, "lost at {lost} µs, gained at {gained} µs");
    }

    #[tokio::test]
    async fn what_was_left_is_free_for_whoever_joins_later() {
        let clock = Clock::system();
        let bus: Arc<dyn Bus> = MemoryBus::new(clock.clone(), Limits::default());
        let mut first = member(&bus, &clock, 1).await;
        gain(&mut first, 4).await;
        first.leave().await;
        let left = clock.mono();

        let mut second = member(&bus, &clock, 2).await;
        gain(&mut second, 4).await;

        assert!(clock.mono().since(left) < LIFE / 2);
    }

    async fn member(bus: &Arc<dyn Bus>, clock: &Clock, node: u32) -> Lease {
        let config = LeaseConfig {
            control: Arc::clone(bus),
            name: "journal".into(),
            partitions: 4,
            node: NodeId(node),
            clock: clock.clone(),
        };
        Lease::join(config).await.unwrap()
    }

    async fn gain(lease: &mut Lease, count: usize) {
        for _ in 0..count {
            assert!(matches!(lease.next().await, LeaseEvent::Gained { .. }));
        }
        assert_eq!(lease.held().len(), count);
    }
}
