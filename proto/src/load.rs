//! What a link node reports about itself, and a region's reports as one packed value.

use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::id::{NodeId, UnitId};
use crate::time::Wall;

pub use crate::codec::{KnownRegion, KnownReport, Numbers, RegionView, ReportView};

/// One link node's load: an authenticated datagram, on change at most every 5 ms, else every 100 ms.
///
/// On the wire: the FlatBuffer, then `HMAC-SHA-256(node secret, FlatBuffer)`, 32 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// From.
    pub node: NodeId,
    /// Slice it belongs to.
    pub unit: UnitId,
    /// Where it stands.
    pub region: String,
    /// Rises with every report; `start` decides first.
    pub counter: u64,
    /// When the process started: a restart begins a new count.
    pub start: Wall,
    /// Where viewers connect.
    pub addresses: Vec<Address>,
    /// Where viewers of besieged nodes connect, told to nobody else. Together with `addresses` at
    /// most [`crate::limits::ADDRESSES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserve: Vec<Address>,
    /// What it carries.
    pub load: Load,
}

/// What a node carries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Sessions now.
    pub sessions: u32,
    /// Sessions it takes at most.
    pub sessions_max: u32,
    /// Connections before login.
    pub handshakes: u32,
    /// Logins a second, lately.
    pub handshakes_per_s: u32,
    /// Logins a second that it can do; 0: not stated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handshakes_per_s_max: u32,
    /// Bits a second out, lately.
    pub egress_bps: u64,
    /// CPU in thousandths of what it may use.
    pub cpu_permille: u16,
    /// Connections not yet accepted. The link nodes here take connections as they come, or close
    /// them, and say 0: what little waits in the kernel is not asked for.
    pub accept_queue: u32,
    /// It finishes and leaves: no new viewers.
    pub draining: bool,
    /// It is attacked: no new viewers, move the old ones.
    pub besieged: bool,
}

/// What the load table holds for a region: every live node's report, packed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegionLoads {
    /// Which.
    pub region: String,
    /// When it was packed; the newer of two values counts.
    pub at: Wall,
    /// The nodes under lease.
    pub nodes: Vec<LoadReport>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(it: &u32) -> bool {
    *it == 0
}
