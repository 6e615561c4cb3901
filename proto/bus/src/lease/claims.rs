//! Who holds which partition, as a state machine: one member's view of everybody's claims.
//!
//! The members share a log of claims (`control`) and nothing else. A claim names a partition and
//! a term; the highest term holds, as long as its holder renews it. A member claims what nobody
//! holds, up to its fair share, and gives up what exceeds it. A term carries its member's id in
//! the low bits, so no two members ever claim the same one: who publishes with a term is its only
//! owner, and the bus can tell a former owner from the present one.
//!
//! Besides, each member keeps renewing a *seat*, a claim on the partition behind the last: by it
//! the others count it, and by reading it back a member knows that it has read the log up to now.
//! Without that a member that was stopped would take the others for dead.
//!
//! Only monotonic time counts, each member's own: a claim is alive for [`LIFE`] after it was read,
//! and its holder stops somewhat less than that after it was sent, which is earlier.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proto::id::{NodeId, Term};
use proto::time::Mono;

use crate::PartitionNo;

/// How long the others respect a claim after they read it.
pub const LIFE: Duration = Duration::from_secs(2);
/// How long its holder relies on a claim after it was sent. Shorter, for the holder's timer may be
/// late.
const HOLD: Duration = Duration::from_millis(1900);
/// Time between two renewals.
pub const RENEW: Duration = Duration::from_millis(500);
/// A seat this old, read back, still shows that the log was read up to now.
const CAUGHT_UP: Duration = Duration::from_millis(1000);
/// Renewals of the seat that may be on their way.
const SEATS_SENT_MAX: usize = 8;
/// Low bits of a term: the member.
const NODE_BITS: u32 = 32;

/// What the machine is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Input {
    /// A claim was read from the log, in the log's order.
    Seen {
        /// The claim.
        claim: Claim,
        /// Who made it.
        node: NodeId,
    },
    /// A claim that this member made is in the log.
    Kept {
        /// The claim.
        claim: Claim,
        /// When the machine put it out.
        sent: Mono,
    },
    /// A claim that this member made may not be in the log.
    Failed {
        /// The claim.
        claim: Claim,
    },
    /// Give up everything.
    Leave,
}

/// A record of the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Claim {
    /// On which partition; the one behind the last is the seat.
    pub partition: PartitionNo,
    /// With which term.
    pub term: Term,
    /// False: it is given up, or has long expired.
    pub is_alive: bool,
}

/// What the machine wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// Append this claim to the log.
    Put(Claim),
    /// The partition is this member's from now on.
    Gained {
        /// Which.
        partition: PartitionNo,
        /// The term to publish with.
        term: Term,
    },
    /// It is no longer. Come from a fair-share hand-over, it may still be finished until the next
    /// output is taken.
    Lost {
        /// Which.
        partition: PartitionNo,
    },
}

/// The machine.
#[derive(Debug)]
pub struct Claims {
    node: NodeId,
    partitions: u32,
    /// Highest term seen, alive or not.
    newest: BTreeMap<PartitionNo, Term>,
    /// Live claims of others, and until when; at most one a partition.
    theirs: BTreeMap<PartitionNo, Mono>,
    /// Other members, and until when.
    seats: BTreeMap<NodeId, Mono>,
    mine: BTreeMap<PartitionNo, Mine>,
    seat: Seat,
    renew_at: Mono,
    is_leaving: bool,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct Mine {
    term: Term,
    until: Mono,
    /// It was read back: it is the highest.
    is_held: bool,
}

/// This member's own seat. Its term is only a number that rises.
#[derive(Debug, Default)]
struct Seat {
    no: u64,
    sent: VecDeque<(u64, Mono)>,
    /// When the newest renewal that was read back had been sent.
    read_back: Option<Mono>,
}

impl Claims {
    /// A member that has read nothing. The log so far is fed to it before the first
    /// [`Claims::tick`].
    #[must_use]
    pub fn new(node: NodeId, partitions: u32, now: Mono) -> Self {
        Self {
            node,
            partitions,
            newest: BTreeMap::new(),
            theirs: BTreeMap::new(),
            seats: BTreeMap::new(),
            mine: BTreeMap::new(),
            seat: Seat::default(),
            renew_at: now,
            is_leaving: false,
            outputs: VecDeque::new(),
        }
    }

    /// Takes note; what follows from it is decided by the next [`Claims::tick`].
    pub fn handle(&mut self, input: Input, now: Mono) {
        match input {
            Input::Seen { claim, node } if claim.partition.0 == self.partitions => {
                self.see_seat(claim, node, now);
            }
            Input::Seen { claim, node } if claim.partition.0 < self.partitions => {
                self.see_claim(claim, node, now);
            }
            Input::Seen { .. } => {}
            Input::Kept { claim, sent } => {
                if let Some(mine) = self.mine.get_mut(&claim.partition)
                    && mine.term == claim.term
                {
                    mine.until = mine.until.max(sent + HOLD);
                }
            }
            Input::Failed { claim } => {
                let mine = self.mine.get(&claim.partition);
                if mine.is_some_and(|it| it.term == claim.term && !it.is_held) {
                    self.mine.remove(&claim.partition);
                }
            }
            Input::Leave => self.leave(),
        }
    }

    /// Acts on whatever came due at or before `now`, and on what was handled since.
    pub fn tick(&mut self, now: Mono) {
        self.theirs.retain(|_, until| *until > now);
        self.seats.retain(|_, until| *until > now);
        let expired = self.mine.iter().filter(|(_, it)| it.until <= now).map(|(&no, _)| no);
        for partition in expired.collect::<Vec<_>>() {
            self.lose(partition);
        }
        if self.is_leaving {
            return;
        }
        if self.seat.read_back.is_some_and(|sent| now.since(sent) < CAUGHT_UP) {
            self.share(now);
        }
        if self.renew_at <= now {
            self.renew(now);
        }
    }

    /// The next output, if any.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to tick next.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let theirs = self.theirs.values().copied();
        let mine = self.mine.values().map(|it| it.until);
        let renew = (!self.is_leaving).then_some(self.renew_at);
        theirs.chain(self.seats.values().copied()).chain(mine).chain(renew).min()
    }

    /// What this member holds, with the terms.
    pub fn held(&self) -> impl Iterator<Item = (PartitionNo, Term)> {
        self.mine.iter().filter(|(_, it)| it.is_held).map(|(&no, it)| (no, it.term))
    }

    fn see_seat(&mut self, claim: Claim, node: NodeId, now: Mono) {
        if node != self.node {
            if claim.is_alive {
                self.seats.insert(node, now + LIFE);
            } else {
                self.seats.remove(&node);
            }
            return;
        }
        self.seat.no = self.seat.no.max(claim.term.0);
        if let Some(&(_, sent)) = self.seat.sent.iter().find(|(no, _)| *no == claim.term.0) {
            self.seat.read_back = Some(sent);
        }
    }

    fn see_claim(&mut self, claim: Claim, node: NodeId, now: Mono) {
        let Claim { partition, term, is_alive } = claim;
        let newest = self.newest.entry(partition).or_default();
        if term < *newest {
            return;
        }
        *newest = term;
        self.theirs.remove(&partition);
        match self.mine.get_mut(&partition) {
            Some(mine) if mine.term == term && is_alive && !mine.is_held => {
                mine.is_held = true;
                self.outputs.push_back(Output::Gained { partition, term });
            }
            // Of another member, or of another life of this one.
            Some(mine) if mine.term < term => self.lose(partition),
            // A renewal, or older than a claim that is on its way.
            Some(_) | None => {}
        }
        if node != self.node && is_alive {
            self.theirs.insert(partition, now + LIFE);
        }
    }

    /// Brings this member to its fair share of the partitions.
    fn share(&mut self, now: Mono) {
        let fair = self.partitions.div_ceil(self.members()) as usize;
        let order = self.order();
        let mut extra = self.held().count().saturating_sub(fair);
        for &partition in order.iter().rev() {
            let held = self.mine.get(&partition).filter(|it| it.is_held);
            if let Some(term) = held.map(|it| it.term)
                && extra > 0
            {
                extra -= 1;
                self.lose(partition);
                self.put(Claim { partition, term, is_alive: false });
            }
        }
        for partition in order {
            let is_free =
                !self.theirs.contains_key(&partition) && !self.mine.contains_key(&partition);
            if is_free && self.mine.len() < fair {
                self.claim(partition, now);
            }
        }
    }

    fn members(&self) -> u32 {
        u32::try_from(self.seats.len() + 1).unwrap_or(u32::MAX)
    }

    /// The partitions as this member prefers them: each begins elsewhere, so that two that claim
    /// at the same time seldom want the same.
    fn order(&self) -> Vec<PartitionNo> {
        let rank = self.seats.keys().filter(|&&it| it < self.node).count();
        let rank = u64::try_from(rank).unwrap_or_default();
        let first = rank * u64::from(self.partitions) / u64::from(self.members());
        let first = u32::try_from(first).unwrap_or_default();
        (first..self.partitions).chain(0..first).map(PartitionNo).collect()
    }

    fn claim(&mut self, partition: PartitionNo, now: Mono) {
        let newest = self.newest.get(&partition).copied().unwrap_or_default();
        let round = (newest.0 >> NODE_BITS) + 1;
        let term = Term((round << NODE_BITS) | u64::from(self.node.0));
        self.mine.insert(partition, Mine { term, until: now + HOLD, is_held: false });
        self.put(Claim { partition, term, is_alive: true });
    }

    fn renew(&mut self, now: Mono) {
        self.renew_at = now + RENEW;
        self.seat.no += 1;
        self.seat.sent.push_back((self.seat.no, now));
        if self.seat.sent.len() > SEATS_SENT_MAX {
            self.seat.sent.pop_front();
        }
        let held: Vec<_> = self.held().collect();
        for (partition, term) in held {
            self.put(Claim { partition, term, is_alive: true });
        }
        self.put(self.seat_claim(true));
    }

    fn leave(&mut self) {
        self.is_leaving = true;
        for (partition, mine) in std::mem::take(&mut self.mine) {
            self.put(Claim { partition, term: mine.term, is_alive: false });
        }
        self.put(self.seat_claim(false));
    }

    fn seat_claim(&self, is_alive: bool) -> Claim {
        Claim { partition: PartitionNo(self.partitions), term: Term(self.seat.no), is_alive }
    }

    fn lose(&mut self, partition: PartitionNo) {
        if self.mine.remove(&partition).is_some_and(|it| it.is_held) {
            self.outputs.push_back(Output::Lost { partition });
        }
    }

    fn put(&mut self, claim: Claim) {
        self.outputs.push_back(Output::Put(claim));
    }
}

#[cfg(test)]
mod tests;
