//! What the operator decides about who gets the next viewers.
//!
//! Every factor of a node's share is neutral at weight 0, so each can be turned off alone.

use std::collections::BTreeSet;

use proto::address::Carrier;
use proto::limits::WORD_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// Lines that a policy may list.
pub const LINES_MAX: usize = 4096;
/// gslb processes that may answer at the same time: with more, a node's part would be none.
pub const REPLICAS_MAX: u32 = 1000;
/// Longest ramp and longest stale age, in milliseconds: an hour.
pub const AGE_MS_MAX: u32 = 3_600_000;
/// Fully, where a weight is counted in thousandths.
const FULLY: u16 = 1000;

/// Who gets the next viewers. It belongs to a fleet for as long as that lives.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Policy {
    /// Pools in the order in which they are tried; one that is missing here is never tried. The
    /// default puts the carrier before the region: a viewer's packets cross the country within
    /// one carrier's network faster than they cross the street between two.
    pub pools: Vec<Pool>,
    /// How much the rest counts within a pool.
    pub weights: Weights,
    /// Machine rooms' lines that have a budget or a price; all others have none.
    pub lines: Vec<Line>,
    /// Turns of one node, in multiples of the mean of its region and carrier; 0 counts as 1.
    /// Lower it if a node that stands empty beside full ones gets more than it should.
    pub share_max: u32,
    /// gslb processes that answer at the same time, at most [`REPLICAS_MAX`]. Each hands out its
    /// part of what a node can take: too low a number lets a crowd in past the nodes' limits, too
    /// high a one refuses viewers early. Change it on all of them when one is added for good.
    pub replicas: u32,
    /// Milliseconds' worth of logins that a node may be sent at once. More evens out bursts, and
    /// exceeds the node's logins a second by as much.
    pub burst_ms: u32,
    /// Milliseconds in which a node that joined, restarted or came back grows from a twentieth to
    /// its full share. Raise it if nodes that just started answer slowly.
    pub ramp_ms: u32,
    /// The same for a node that was besieged.
    pub siege_ramp_ms: u32,
    /// Loads up to so many milliseconds old are believed. More than the collectors' `idle_ms`.
    pub fresh_ms_max: u32,
    /// From so many milliseconds on, loads mean nothing: viewers are spread evenly by capacity, at
    /// half of it. In between, the one turns into the other.
    pub stale_ms_max: u32,
    /// Number of the very first turn. Replicas with different ones do not march in step. Drawn by
    /// the process, not configured.
    #[serde(skip)]
    pub first_turn: u32,
}

/// Nodes among which a viewer's address is looked for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// The viewer's carrier in the viewer's region.
    Own,
    /// The viewer's carrier anywhere.
    Carrier,
    /// BGP in the viewer's region.
    RegionBgp,
    /// BGP anywhere.
    Bgp,
    /// Everything alive.
    Any,
}

/// What a node's share of its pool depends on besides its free places and its logins a second, in
/// thousandths: 0 not at all, 1000 fully.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Weights {
    /// What its machine room's line has left. A line without anything left gets no viewers,
    /// whatever this says.
    pub headroom: u16,
    /// How busy it is: its CPU, or the viewers who wait for their login. Below 1000, so that even
    /// the busiest keeps some turns: its report may be wrong.
    pub load: u16,
    /// What its line costs.
    pub cost: u16,
}

/// One carrier's line into a machine room.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Line {
    /// As the nodes' addresses name it.
    pub machine_room: String,
    /// Whose line.
    pub carrier: Carrier,
    /// Bits a second that may leave by it; 0: no budget. A node reports one figure for all its
    /// lines; it is shared out over them by these budgets.
    #[serde(default)]
    pub egress_bps_max: u64,
    /// Price of a bit, in hundredths of that of lines not listed; 0 counts as 1.
    #[serde(default = "ordinary")]
    pub cost: u32,
}

/// Price of a line that is not listed.
pub(crate) const ORDINARY: u32 = 100;

/// Why a policy cannot work.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// Nobody would ever be sent anywhere, or a pool is tried twice.
    #[error("pools: there must be at least one, and each once")]
    Pools,
    /// A weight of more than fully.
    #[error("weights.{name}: {value} thousandths are more than {FULLY}")]
    Weight {
        /// Which.
        name: &'static str,
        /// What it is.
        value: u16,
    },
    /// More than [`LINES_MAX`].
    #[error("lines: there are more than {LINES_MAX}")]
    Lines,
    /// A machine room has two budgets on one carrier, or a name that no address can have.
    #[error("lines: {machine_room:?} is listed twice for a carrier, or is too long a name")]
    Line {
        /// Which.
        machine_room: String,
    },
    /// Not 1 to [`REPLICAS_MAX`].
    #[error("replicas: {0} is not 1 to {REPLICAS_MAX}")]
    Replicas(u32),
    /// A time of zero, or one beyond [`AGE_MS_MAX`].
    #[error("{name}: {value} ms is not 1 to {AGE_MS_MAX}")]
    Time {
        /// Which.
        name: &'static str,
        /// What it is.
        value: u32,
    },
    /// Loads would mean nothing before they stopped being believed.
    #[error("stale_ms_max: it must be more than fresh_ms_max")]
    Ages,
}

impl Policy {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// Names the value.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut pools = BTreeSet::new();
        if self.pools.is_empty() || !self.pools.iter().all(|it| pools.insert(*it as u8)) {
            return Err(Invalid::Pools);
        }
        let Weights { headroom, load, cost } = self.weights;
        for (name, value) in [("headroom", headroom), ("load", load), ("cost", cost)] {
            if value > FULLY {
                return Err(Invalid::Weight { name, value });
            }
        }
        if self.lines.len() > LINES_MAX {
            return Err(Invalid::Lines);
        }
        let mut lines = BTreeSet::new();
        for Line { machine_room, carrier, .. } in &self.lines {
            if machine_room.len() > WORD_BYTES_MAX || !lines.insert((machine_room, carrier)) {
                return Err(Invalid::Line { machine_room: machine_room.clone() });
            }
        }
        if !(1..=REPLICAS_MAX).contains(&self.replicas) {
            return Err(Invalid::Replicas(self.replicas));
        }
        for (name, value) in [
            ("burst_ms", self.burst_ms),
            ("ramp_ms", self.ramp_ms),
            ("siege_ramp_ms", self.siege_ramp_ms),
            ("fresh_ms_max", self.fresh_ms_max),
            ("stale_ms_max", self.stale_ms_max),
        ] {
            if !(1..=AGE_MS_MAX).contains(&value) {
                return Err(Invalid::Time { name, value });
            }
        }
        if self.fresh_ms_max >= self.stale_ms_max {
            return Err(Invalid::Ages);
        }
        Ok(())
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            pools: vec![Pool::Own, Pool::Carrier, Pool::RegionBgp, Pool::Bgp, Pool::Any],
            weights: Weights::default(),
            lines: Vec::new(),
            share_max: 4,
            replicas: 1,
            burst_ms: 50,
            ramp_ms: 10_000,
            siege_ramp_ms: 60_000,
            fresh_ms_max: 300,
            stale_ms_max: 10_000,
            first_turn: 0,
        }
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self { headroom: 1000, load: 950, cost: 500 }
    }
}

const fn ordinary() -> u32 {
    ORDINARY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_work() {
        assert_eq!(Policy::default().check(), Ok(()));
    }

    #[test]
    fn what_cannot_work_is_named() {
        let check = |expected: Invalid, change: fn(&mut Policy)| {
            let mut policy = Policy::default();
            change(&mut policy);
            assert_eq!(policy.check(), Err(expected));
        };
        let time = |name, value| Invalid::Time { name, value };

        check(Invalid::Pools, |it| it.pools.clear());
        check(Invalid::Pools, |it| it.pools = vec![Pool::Bgp, Pool::Any, Pool::Bgp]);
        check(Invalid::Weight { name: "load", value: 1001 }, |it| it.weights.load = 1001);
        check(Invalid::Lines, |it| it.lines = vec![line("a"); LINES_MAX + 1]);
        check(Invalid::Line { machine_room: "a".to_owned() }, |it| {
            it.lines = vec![line("a"), line("b"), line("a")];
        });
        check(Invalid::Replicas(0), |it| it.replicas = 0);
        check(Invalid::Replicas(1001), |it| it.replicas = 1001);
        check(time("burst_ms", 0), |it| it.burst_ms = 0);
        check(time("siege_ramp_ms", 3_600_001), |it| it.siege_ramp_ms = 3_600_001);
        check(Invalid::Ages, |it| it.stale_ms_max = it.fresh_ms_max);
    }

    fn line(machine_room: &str) -> Line {
        Line {
            machine_room: machine_room.to_owned(),
            carrier: Carrier::Telecom,
            egress_bps_max: 0,
            cost: ORDINARY,
        }
    }
}
