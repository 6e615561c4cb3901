//! One immutable picture of the loads, with everybody's turns laid out.
//!
//! Only two kinds of number change after it was made, by atomic additions: the turns taken, and
//! the answers given per node. A node's answers count as load until its next report, across
//! snapshots, so that the next picture does not send everyone to a node that was empty when it
//! last spoke.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proto::id::NodeId;
use proto::time::Mono;

use crate::fleet::{Fleet, Member, Stamp};
use crate::listener::Listener;
use crate::topology::{Topology, View};
use crate::turns::{Turns, WEIGHT_MAX};

/// What the operator decides about turns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Policy {
    /// Turns of one node, in multiples of the mean of its view; 0 counts as 1.
    ///
    /// A node that just started is empty: without this bound it would get most of the logins of
    /// a pool that is nearly full, more a second than it can shake hands with.
    pub share_max: u32,
    /// Number of the very first turn. Replicas with different ones do not march in step.
    pub first_turn: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { share_max: 4, first_turn: 0 }
    }
}

/// Who gets the next viewers.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) topology: Arc<Topology>,
    /// By node, as in the topology.
    pub(crate) seats: Box<[Seat]>,
    /// By view, as in the topology.
    pub(crate) turns: Box<[Turns]>,
    /// Nodes that are neither draining nor besieged.
    pub(crate) taking: usize,
    planned_at: Mono,
}

/// What one node has left.
#[derive(Debug)]
pub(crate) struct Seat {
    stamp: Stamp,
    /// Places at the last report.
    places: u32,
    /// Answers since the last report.
    given: AtomicU32,
}

/// Lays out the turns as of `now`, counting the answers that `previous` gave.
///
/// Answers that `previous` gives between this and its replacement are not counted.
#[must_use]
pub fn plan(fleet: &Fleet, policy: &Policy, previous: &Snapshot, now: Mono) -> Snapshot {
    let same = previous.topology.shape == fleet.shape();
    let topology = if same { previous.topology.clone() } else { Arc::new(Topology::of(fleet)) };

    let mut seats = Vec::with_capacity(topology.nodes.len());
    let mut weights = Vec::with_capacity(topology.nodes.len());
    let mut taking = 0;
    for (node_no, member) in fleet.live().enumerate() {
        let before = match same {
            true => previous.seats.get(node_no),
            false => previous.seat(member.report.node),
        };
        let seat = Seat::of(member, before, now);
        weights.push(seat.weight(member));
        seats.push(seat);
        taking += usize::from(member.takes_viewers(now));
    }

    let first_turn = previous.turns.iter().map(Turns::taken).fold(0, u32::wrapping_add);
    let views = topology.views.iter().enumerate();
    let turns = views.map(|(view_no, view)| {
        let first = match previous.turns.get(view_no) {
            Some(before) if same => before.taken(),
            Some(_) => first_turn,
            None => policy.first_turn,
        };
        Turns::share_out(&shares(view, &weights, policy), first)
    });
    Snapshot { turns: turns.collect(), seats: seats.into(), taking, planned_at: now, topology }
}

impl Snapshot {
    /// When it was made.
    #[must_use]
    pub const fn planned_at(&self) -> Mono {
        self.planned_at
    }

    /// Nodes under lease.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.topology.nodes.len()
    }

    /// Nodes under lease that are neither draining nor besieged.
    #[must_use]
    pub const fn taking(&self) -> usize {
        self.taking
    }

    /// The listener with this `host:port`, of any node under lease.
    #[must_use]
    pub fn find(&self, authority: &str) -> Option<&Listener> {
        self.topology.find(authority)
    }

    fn seat(&self, node: NodeId) -> Option<&Seat> {
        let found = self.topology.nodes.binary_search_by_key(&node, |it| it.id);
        self.seats.get(found.ok()?)
    }
}

impl Seat {
    fn of(member: &Member, before: Option<&Self>, now: Mono) -> Self {
        let stamp = member.stamp();
        let given = before.filter(|it| it.stamp == stamp).map_or(0, Self::given);
        Self { stamp, places: member.places(now), given: AtomicU32::new(given) }
    }

    /// Takes a place, if one is left.
    pub(crate) fn take(&self) -> bool {
        let left = self.given() < self.places;
        if left {
            self.given.fetch_add(1, Ordering::Relaxed);
        }
        left
    }

    fn given(&self) -> u32 {
        self.given.load(Ordering::Relaxed)
    }

    /// Places left, less where the CPU is busy; at least 1 while there are any.
    fn weight(&self, member: &Member) -> u32 {
        /// Even the busiest node keeps a twentieth of its turns: its report may be wrong.
        const CPU_PERMILLE_MAX: u16 = 950;
        let left = self.places.saturating_sub(self.given()).min(WEIGHT_MAX);
        let idle = u64::from(1000 - member.report.load.cpu_permille.min(CPU_PERMILLE_MAX));
        let weight = u64::from(left) * idle / 1000;
        u32::try_from(weight).unwrap_or(WEIGHT_MAX).max(left.min(1))
    }
}

/// The weights of a view's nodes, none above its multiple of the mean.
fn shares(view: &View, weights: &[u32], policy: &Policy) -> Vec<u32> {
    /// Each round lowers the mean, and with it the bound, by less than the one before.
    const ROUNDS_MAX: usize = 4;
    let of = |node: u32| weights[node as usize];
    let mut shares: Vec<u32> = view.entries.iter().map(|it| of(it.node)).collect();
    let takers = shares.iter().filter(|&&it| it > 0).count().max(1) as u64;
    for _ in 0..ROUNDS_MAX {
        let total: u64 = shares.iter().copied().map(u64::from).sum();
        let share_max = total.div_ceil(takers) * u64::from(policy.share_max.max(1));
        let above = shares.iter_mut().filter(|it| u64::from(**it) > share_max);
        let lowered = above.map(|it| *it = u32::try_from(share_max).unwrap_or(*it)).count();
        if lowered == 0 {
            break;
        }
    }
    shares
}
