//! One immutable picture of the loads, with everybody's turns laid out.
//!
//! Only two kinds of number change after it was made, by atomic additions: the turns taken, and
//! the answers given per node. A node's answers count as load until its next report, across
//! snapshots, so that the next picture does not send everyone to a node that was empty when it
//! last spoke.

use std::ops::Range;
use std::sync::Arc;

use proto::time::{Mono, millis};

use crate::fleet::row::{ONE, State};
use crate::fleet::{Fleet, Ramp};
use crate::listener::Listener;
use crate::policy::Policy;
use crate::region::Region;
use crate::seat::{Ledger, Pace, Seat};
use crate::topology::{Line, Plane, Ring, Topology};
use crate::turns::Turns;

/// What part of its share a node begins with, of [`ONE`].
const RAMP_MIN: u64 = ONE / 20;
/// What part of a node's logins is used when its load means nothing any more, of [`ONE`].
const SPEED_MIN: u64 = ONE / 2;

/// Who gets the next viewers.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) topology: Arc<Topology>,
    /// By slot.
    pub(crate) seats: Box<[Seat]>,
    /// By plane.
    pub(crate) turns: Box<[Turns]>,
    ledgers: Box<[Ledger]>,
    nodes: usize,
    /// Nodes that are neither draining nor besieged.
    pub(crate) taking: usize,
    planned_at: Mono,
}

/// Lays out the turns as of `now`, counting the answers that `previous` gave.
///
/// Answers that `previous` gives between this and its replacement are not counted. A fleet and its
/// snapshots have one policy for life.
#[must_use]
pub fn plan(fleet: &Fleet, policy: &Policy, previous: &Snapshot, now: Mono) -> Snapshot {
    let same = previous.topology.shape == fleet.shape();
    let topology = if same {
        Arc::clone(&previous.topology)
    } else {
        let rings = previous.topology.planes.iter().flat_map(|it| &it.rings);
        let first_turn = rings.map(Ring::next).fold(policy.first_turn, u32::wrapping_add);
        Arc::new(Topology::of(fleet, policy, first_turn))
    };
    let pace = pace(fleet, policy, previous, now);

    let mut ledgers = previous.ledgers.clone().into_vec();
    ledgers.resize(fleet.rows().len(), Ledger::default());
    let mut taking = 0;
    for (slot, (row, ledger)) in fleet.rows().iter().zip(&mut ledgers).enumerate() {
        let given = previous.seats.get(slot).map_or(0, Seat::given);
        let grown = match row.state {
            State::Dead => {
                *ledger = Ledger::default();
                continue;
            }
            State::Growing => grown(fleet.ramp(slot), policy, now),
            State::Resting | State::Taking => ONE,
        };
        taking += usize::from(row.state != State::Resting);
        if pace.stale > 0 || !ledger.is_at_rest(row, given) {
            *ledger = pace.plan(row, grown, ledger, given);
        }
    }

    let lines = headroom(&topology.lines, fleet, policy);
    let planes = topology.planes.iter();
    let turns = planes.map(|it| Turns::lay_out(&shares(it, &ledgers, &lines, policy))).collect();
    Snapshot {
        turns,
        seats: ledgers.iter().map(Seat::of).collect(),
        ledgers: ledgers.into(),
        nodes: fleet.len(),
        taking,
        planned_at: now,
        topology,
    }
}

impl Snapshot {
    /// Answers that sent a viewer to the node of a slot since its last report, and how many more
    /// may be before the next plan.
    pub(crate) fn answers(&self, slot: usize) -> (u32, u32) {
        let (Some(ledger), Some(seat)) = (self.ledgers.get(slot), self.seats.get(slot)) else {
            return (0, 0);
        };
        (ledger.carried().saturating_add(seat.given()), seat.left())
    }

    /// When it was made.
    #[must_use]
    pub const fn planned_at(&self) -> Mono {
        self.planned_at
    }

    /// Nodes under lease.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Nodes under lease that are neither draining nor besieged.
    #[must_use]
    pub const fn taking(&self) -> usize {
        self.taking
    }

    /// The region of this name, for requests. The number holds for all later snapshots, too.
    #[must_use]
    pub fn region(&self, name: &str) -> Region {
        self.topology.regions.find(name).unwrap_or(Region::UNKNOWN)
    }

    /// The listener with this `host:port`, of any node under lease.
    #[must_use]
    pub fn find(&self, authority: &str) -> Option<&Listener> {
        self.topology.find(authority)
    }
}

fn pace(fleet: &Fleet, policy: &Policy, previous: &Snapshot, now: Mono) -> Pace {
    let age = millis(now.since(fleet.heard()));
    let (fresh, stale) = (u64::from(policy.fresh_ms_max), u64::from(policy.stale_ms_max));
    let past = age.saturating_sub(fresh) * ONE;
    let replicas = policy.replicas.max(1);
    let stale = past.checked_div(stale.saturating_sub(fresh)).unwrap_or(past).min(ONE);
    Pace {
        elapsed_ms: millis(now.since(previous.planned_at)),
        burst_ms: policy.burst_ms.into(),
        replicas,
        speed: ((ONE - (((ONE - SPEED_MIN) * stale) >> 10)) << 10) / u64::from(replicas),
        stale,
        load_weight: u64::from(policy.weights.load.min(1000)) * ONE / 1000,
    }
}

/// How far a node has grown, of [`ONE`].
fn grown(ramp: Ramp, policy: &Policy, now: Mono) -> u64 {
    let (since, ramp_ms) = match ramp {
        Ramp::Done => return ONE,
        Ramp::Start(since) => (since, policy.ramp_ms),
        Ramp::Siege(since) => (since, policy.siege_ramp_ms),
    };
    let part = millis(now.since(since)).saturating_mul(ONE).checked_div(ramp_ms.into());
    part.unwrap_or(ONE).clamp(RAMP_MIN, ONE)
}

/// What a node's share is multiplied with for its line, of [`ONE`].
fn headroom(lines: &[Line], fleet: &Fleet, policy: &Policy) -> Vec<u64> {
    let weight = u64::from(policy.weights.headroom.min(1000));
    let left = lines.iter().map(|line| {
        if line.egress_bps_max == 0 {
            return line.worth;
        }
        let users = line.users.iter();
        let used = users.map(|&(slot, part)| fleet.egress_bps(slot).saturating_mul(part) / ONE);
        let used = used.fold(0, u64::saturating_add);
        if used >= line.egress_bps_max {
            return 0;
        }
        let used = u128::from(used) * u128::from(ONE) / u128::from(line.egress_bps_max);
        let used = u64::try_from(used).expect("it is less than there is");
        ((ONE - used * weight / 1000) * line.worth) >> 10
    });
    left.collect()
}

/// The weights of a plane's entries, none above its multiple of the mean of its region and
/// carrier.
fn shares(plane: &Plane, ledgers: &[Ledger], lines: &[u64], policy: &Policy) -> Vec<u32> {
    let mut shares: Vec<u32> = plane.nodes.iter().map(|&it| ledgers[it as usize].weight).collect();
    // Where the policy lists no line, all are alike.
    if lines.len() > 1 {
        for (share, &line) in shares.iter_mut().zip(&plane.lines) {
            let left = lines[usize::from(line)];
            let part = (u64::from(*share) * left) >> 10;
            let least = (*share).min(1).min(u32::from(left > 0));
            *share = u32::try_from(part).expect("a part is not more than all").max(least);
        }
    }
    for Range { start, end } in plane.regional.iter().cloned() {
        level(&mut shares[start as usize..end as usize], policy.share_max.max(1));
    }
    shares
}

/// Lowers what is above a multiple of the mean.
fn level(shares: &mut [u32], multiple: u32) {
    /// Each round lowers the mean, and with it the bound, by less than the one before.
    const ROUNDS_MAX: usize = 4;
    for _ in 0..ROUNDS_MAX {
        let (mut total, mut takers, mut most) = (0_u64, 0_u64, 0);
        for &share in &*shares {
            total += u64::from(share);
            takers += u64::from(share > 0);
            most = most.max(share);
        }
        let share_max = total.div_ceil(takers.max(1)).saturating_mul(multiple.into());
        let share_max = u32::try_from(share_max).unwrap_or(u32::MAX);
        if most <= share_max {
            return;
        }
        shares.iter_mut().for_each(|it| *it = (*it).min(share_max));
    }
}
