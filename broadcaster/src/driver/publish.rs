//! One turn of the driver: tick, publish, pass on, commit.

use bus::{PartitionNo, Publish, PublishError, topic};
use proto::control::Fact;
use proto::id::RoomId;

use super::{BUS_MAX, Driver, GROUP, PAUSE};
use crate::owned::Owned;
use crate::press::Job;
use crate::room_keys::RoomKeys;

/// Facts sent to `control` in one turn.
const FACTS_MAX: usize = 64;
/// Facts that wait for `control`; beyond, the oldest are dropped, since newer heat replaces them.
/// Those about sealed gens are kept, of each room the newest.
const FACTS_WAITING_MAX: usize = 10_000;

/// How a publish to `sealed` went.
enum Sent {
    /// The record is there.
    Done,
    /// Try again later.
    Later,
    /// Another owns the partition.
    Fenced,
}

impl Driver {
    /// Does everything that is due. Nothing new is said in a partition before all it said earlier
    /// is on the bus.
    pub(super) async fn turn(&mut self) {
        self.send_jobs();
        if self.now().mono < self.paused {
            return;
        }
        self.tick();
        while self.publish_round().await {}
        if self.now().mono >= self.paused.max(self.unread) {
            self.tools.health.ok();
        }
        self.pass_on();
        self.send_facts().await;
        self.commit().await;
    }

    fn tick(&mut self) {
        // Jobs that find no place hold back the slots that would make more of them.
        if !self.jobs.is_empty() {
            return;
        }
        let now = self.now();
        let mut asked = Vec::new();
        for (&partition, owned) in &mut self.partitions {
            if owned.parcel.is_empty() && owned.next_tick() <= now.mono {
                let wants = owned.turn(now, &self.tools.counts);
                guard(&owned.parcel.jobs, &self.tools.keys);
                asked.push((partition, owned.term, wants));
            }
        }
        for (partition, term, wants) in asked {
            self.ask(partition, term, wants);
        }
    }

    /// Publishes the next record of every partition in one call; true if there may be more.
    async fn publish_round(&mut self) -> bool {
        let (partitions, records): (Vec<PartitionNo>, Vec<Publish>) = self
            .partitions
            .iter()
            .filter_map(|(&partition, owned)| Some((partition, sealed(partition, owned)?)))
            .unzip();
        if partitions.is_empty() {
            return false;
        }
        let publish = self.tools.bus.publish(records);
        let Ok(results) = tokio::time::timeout(BUS_MAX, publish).await else {
            self.pause("timeout");
            return false;
        };
        let mut is_going_on = true;
        for (partition, result) in partitions.into_iter().zip(results) {
            match self.judge(result.err()) {
                Sent::Done => self.pass_down(partition),
                Sent::Later => is_going_on = false,
                Sent::Fenced => self.lose(partition),
            }
        }
        is_going_on
    }

    fn judge(&mut self, error: Option<PublishError>) -> Sent {
        match error {
            None => Sent::Done,
            Some(PublishError::Busy) => {
                self.pause("busy");
                Sent::Later
            }
            Some(PublishError::Away) => {
                self.pause("away");
                Sent::Later
            }
            Some(PublishError::Fenced { .. }) => {
                self.tools.counts.publish_error("sealed", "fenced");
                Sent::Fenced
            }
            Some(error @ (PublishError::TooLarge { .. } | PublishError::NoPartition)) => {
                // Cannot be: records are cut to size, and the partition was just read from.
                tracing::error!(%error, "the bus refuses a record for ever");
                self.tools.counts.publish_error("sealed", "refused");
                Sent::Done
            }
        }
    }

    fn pause(&mut self, why: &str) {
        self.tools.counts.publish_error("sealed", why);
        self.tools.health.fail(format!("sealed takes no records: {why}"));
        self.paused = self.now().mono + PAUSE;
    }

    /// A record is on `sealed`: the links may have it.
    fn pass_down(&mut self, partition: PartitionNo) {
        let Some(owned) = self.partitions.get_mut(&partition) else {
            return;
        };
        let Some(letter) = owned.parcel.records.pop_front() else {
            return;
        };
        kit::dying::pass("sealed", || letter.shows_gift());
        if let Some(value) = &letter.downlink {
            self.tools.downlink.send(partition, value);
            let is_heard = self.tools.live.is_heard() || self.tools.pushes.is_owned();
            if is_heard && let Some(clear) = self.tools.keys.clear(value) {
                self.tools.live.tell(&clear, self.tools.clock.wall());
                self.tools.pushes.tell(&clear);
            }
        }
        kit::dying::pass("downlink", || letter.shows_gift());
    }

    /// Passes on what follows from parcels that are published.
    fn pass_on(&mut self) {
        for owned in self.partitions.values_mut().filter(|it| it.parcel.records.is_empty()) {
            let parcel = std::mem::take(&mut owned.parcel);
            unguard(&parcel.jobs, &self.tools.keys);
            self.jobs.extend(parcel.jobs);
            for fact in parcel.facts {
                if matches!(fact, Fact::Sealed { .. }) && self.says.len() >= FACTS_WAITING_MAX {
                    let key = fact.key();
                    self.says.retain(|it| it.key() != key);
                }
                self.says.push_back(fact);
            }
            for id in parcel.done {
                owned.ledger.done(id);
            }
        }
        let mut excess = self.says.len().saturating_sub(FACTS_WAITING_MAX);
        if excess > 0 {
            self.says.retain(|it| {
                let gives_way = excess > 0 && !matches!(it, Fact::Sealed { .. });
                excess -= usize::from(gives_way);
                !gives_way
            });
        }
        self.send_jobs();
    }

    fn send_jobs(&mut self) {
        while let Ok(place) = self.tools.jobs.try_reserve() {
            let Some(job) = self.jobs.pop_front() else {
                return;
            };
            place.send(job);
        }
    }

    async fn send_facts(&mut self) {
        let count = self.says.len().min(FACTS_MAX);
        if count == 0 {
            return;
        }
        let records = self.says.iter().take(count).map(control).collect();
        let publish = self.tools.bus.publish(records);
        let results = tokio::time::timeout(BUS_MAX, publish).await.unwrap_or_default();
        let taken = results.iter().take_while(|it| it.is_ok()).count();
        self.says.drain(..taken);
        if taken < count {
            self.tools.counts.publish_error("control", "later");
        }
    }

    async fn commit(&mut self) {
        for (&partition, owned) in &mut self.partitions {
            let Some(next) = owned.ledger.due() else {
                continue;
            };
            let commit = self.tools.bus.commit(GROUP.into(), topic::accepted(), partition, next);
            match tokio::time::timeout(BUS_MAX, commit).await {
                Ok(Ok(())) => owned.ledger.commit(next),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a commit failed");
                    return;
                }
                Err(_) => return,
            }
        }
    }
}

/// Sealed gens are so before their first flush leaves.
fn guard(jobs: &[Job], keys: &RoomKeys) {
    for job in jobs {
        match job {
            Job::Opened { room, info } => keys.begin(room, info),
            Job::Release { room } => keys.release(room),
            Job::Adopt { .. }
            | Job::Seal { .. }
            | Job::Erase { .. }
            | Job::Ended { .. }
            | Job::Bases(_)
            | Job::Catalogue(_) => {}
        }
    }
}

/// The last flush of a sealed gen has left: what follows it may be open.
fn unguard(jobs: &[Job], keys: &RoomKeys) {
    for job in jobs {
        if let Job::Opened { room, info } = job
            && !info.is_sealed()
        {
            keys.unseal(room);
        }
    }
}

fn sealed(partition: PartitionNo, owned: &Owned) -> Option<Publish> {
    let value = owned.parcel.records.front()?.sealed.clone();
    let term = Some(owned.term);
    Some(Publish { topic: topic::sealed(), partition, term, key: None, value })
}

/// The room that a fact of this process is about.
pub(super) const fn of(fact: &Fact) -> Option<&RoomId> {
    if let Fact::Heat { room, .. } | Fact::Sealed { room, .. } = fact { Some(room) } else { None }
}

fn control(fact: &Fact) -> Publish {
    let topic = topic::control();
    let key = Some(fact.key().into());
    Publish { topic, partition: PartitionNo(0), term: None, key, value: fact.encode().into() }
}
