//! What one node may be sent before the next plan, and how that is kept from plan to plan.
//!
//! A seat is what answers touch: so many viewers, and how many came. The ledger is what the
//! planner keeps: logins are earned with time, up to a burst, and spent by answers; and an answer
//! is load until the node reports anew.

use std::sync::atomic::{AtomicU32, Ordering};

use proto::id::NodeId;

use crate::fleet::row::{ONE, PLACE_BITS, Row, State};

/// A login, where parts of one are counted.
const LOGIN: u64 = 1000;

/// What answers touch of a node.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    quota: u32,
    given: AtomicU32,
}

/// What the planner keeps of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ledger {
    /// Nobody's seat has a ledger of nobody.
    node: Option<NodeId>,
    report_no: u32,
    /// The report after which every plan comes to the same until there is an answer; 0: none.
    rest_no: u32,
    /// Logins earned and not spent, in thousandths.
    logins: u32,
    /// Answers since the last report, before this snapshot.
    carried: u32,
    /// What the seat begins with.
    quota: u32,
    /// The node's share.
    pub(crate) weight: u32,
}

/// What holds for all nodes of one plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Milliseconds since the last plan.
    pub(crate) elapsed_ms: u64,
    /// Logins that may be saved up, in milliseconds' worth.
    pub(crate) burst_ms: u64,
    /// Replicas, at least 1.
    pub(crate) replicas: u32,
    /// What part of a node's logins this replica may use, of [`ONE`] times [`ONE`].
    pub(crate) speed: u64,
    /// How far loads are past belief: 0 fresh, [`ONE`] meaningless.
    pub(crate) stale: u64,
    /// What being fully busy takes from a node's share, of [`ONE`].
    pub(crate) load_weight: u64,
}

impl Seat {
    /// The seat that a ledger says.
    pub(crate) const fn of(ledger: &Ledger) -> Self {
        Self { quota: ledger.quota, given: AtomicU32::new(0) }
    }

    /// Takes a place, if one is left.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        // Without the first look, refused answers would count up, and some day around.
        self.given.load(Ordering::Relaxed) < self.quota
            && self.given.fetch_add(1, Ordering::Relaxed) < self.quota
    }

    /// Places that are left.
    pub(crate) fn left(&self) -> u32 {
        self.quota - self.given()
    }

    /// Answers so far.
    #[inline]
    pub(crate) fn given(&self) -> u32 {
        self.given.load(Ordering::Relaxed).min(self.quota)
    }
}

impl Ledger {
    /// Answers since the last report, before this snapshot.
    pub(crate) const fn carried(&self) -> u32 {
        self.carried
    }

    /// Whether the next plan comes to the same: most nodes report twenty times less often than
    /// plans are made.
    #[inline]
    pub(crate) const fn is_at_rest(&self, row: &Row, given: u32) -> bool {
        self.rest_no == row.report_no && given == 0
    }
}

impl Pace {
    /// The ledger after the one of the plan before, since which `given` viewers were sent to the
    /// node. The node's part of its full share is `ramp` of [`ONE`].
    pub(crate) fn plan(&self, row: &Row, ramp: u64, before: &Ledger, given: u32) -> Ledger {
        // A login a second is a thousandth of one a millisecond.
        let rate = u64::from(row.rate);
        let plain = ramp == ONE && self.speed == ONE * ONE;
        let per_ms = if plain { rate } else { ((rate * ramp * self.speed) >> 30).max(1) };
        let logins_max = (per_ms * self.burst_ms).max(LOGIN);
        let (mut logins, mut carried) = (logins_max, 0);
        if before.node == Some(row.node) {
            let spent = u64::from(given) * LOGIN;
            let earned = u64::from(before.logins) + per_ms * self.elapsed_ms;
            logins = earned.saturating_sub(spent).min(logins_max);
            if before.report_no == row.report_no {
                carried = before.carried.saturating_add(given);
            }
        }
        let ledger = Ledger {
            node: Some(row.node),
            report_no: row.report_no,
            rest_no: 0,
            logins: u32::try_from(logins).unwrap_or(u32::MAX),
            carried,
            quota: 0,
            weight: 0,
        };
        if row.state == State::Resting {
            return ledger;
        }
        let (places, weight) = self.weigh(row, ramp, carried);
        let quota = u32::try_from(logins / LOGIN).unwrap_or(u32::MAX).min(places);
        let is_at_rest = logins == logins_max && ramp == ONE && self.stale == 0;
        Ledger {
            quota,
            weight: if quota == 0 { 0 } else { weight.max(1) },
            rest_no: if is_at_rest { row.report_no } else { 0 },
            ..ledger
        }
    }

    /// Places for viewers, and the share: logins a second, less where places are few, where it is
    /// busy, and while it is growing.
    fn weigh(&self, row: &Row, ramp: u64, carried: u32) -> (u32, u32) {
        let free = row.places.saturating_sub(carried);
        let capacity = u64::from(row.rate);
        let by_load = (u64::from(free) * row.per_place) >> PLACE_BITS;
        let by_load = (by_load * (ONE - ((u64::from(row.busy) * self.load_weight) >> 10))) >> 10;
        let weight = match self.stale {
            0 => by_load,
            stale => (by_load * (ONE - stale) + capacity * stale) >> 10,
        };
        let weight = if ramp == ONE { weight } else { (weight * ramp) >> 10 };
        let places = match self.replicas {
            _ if self.stale >= ONE => u32::MAX,
            // A division for each node would be a fifth of a plan.
            1 => free,
            it => free.div_ceil(it),
        };
        (places, u32::try_from(weight).expect("at most what a node can log in"))
    }
}
