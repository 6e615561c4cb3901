//! What the operator decides about who gets the next viewers.
//!
//! Every factor of a node's share is neutral at weight 0, so each can be turned off alone.

use proto::address::Carrier;
use serde::{Deserialize, Serialize};

/// Lines that a policy may list.
pub const LINES_MAX: usize = 4096;

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
    /// gslb processes that answer at the same time. Each hands out its part of what a node can
    /// take: too low a number lets a crowd in past the nodes' limits, too high a one refuses
    /// viewers early.
    pub replicas: u32,
    /// Milliseconds' worth of logins that a node may be sent at once. More evens out bursts, and
    /// exceeds the node's logins a second by as much.
    pub burst_ms: u32,
    /// Milliseconds in which a node that joined, restarted or came back grows to its full share.
    pub ramp_ms: u32,
    /// The same for a node that was besieged.
    pub siege_ramp_ms: u32,
    /// Loads up to so many milliseconds old are believed.
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
