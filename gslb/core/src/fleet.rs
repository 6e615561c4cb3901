//! All nodes under lease, as a state machine fed with load reports.
//!
//! The newest report of a node counts, by (start, counter); an older or repeated one renews
//! nothing, so neither a replayed datagram nor a load table that nobody writes any more keeps a
//! dead node in the answers. No two machines' clocks are compared: a lease runs on the clock of
//! whoever hears the report.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proto::id::NodeId;
use proto::limits::{ADDRESSES_MAX, REGION_NODES_MAX};
use proto::load::{Load, LoadReport, RegionLoads};
use proto::time::{Mono, Wall};

use crate::listener::Listener;

/// Nodes that any configuration may allow: what turn arithmetic is proven for.
pub const NODES_MAX: usize = 1 << 15;
/// How long the newest (start, counter) of a silent node is remembered against replay.
///
/// Not for ever: a node whose clock was set back between two starts is heard again after this.
const MEMORY: Duration = Duration::from_secs(600);

/// What bounds a fleet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// How long a report holds.
    pub lease: Duration,
    /// Nodes remembered, those whose lease expired included; at most [`NODES_MAX`].
    ///
    /// A node costs about 1 KiB.
    pub nodes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lease: Duration::from_millis(300), nodes_max: 20_000 }
    }
}

/// What became of a report that counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Heard {
    /// The node had no lease and has one now.
    Joined,
    /// The node's lease was extended.
    Renewed,
}

/// Why a report does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Not newer than what is known of this node.
    #[error("the report is not newer than the last one")]
    Replayed,
    /// More addresses than [`ADDRESSES_MAX`].
    #[error("the report names too many addresses")]
    Addresses,
    /// [`Limits::nodes_max`] nodes are under lease.
    #[error("the fleet holds as many nodes as it may")]
    NodesMax,
    /// [`REGION_NODES_MAX`] nodes of its region are under lease: one more would not fit the
    /// region's value.
    #[error("the region holds as many nodes as it may")]
    RegionMax,
}

/// What an operator is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// A node came under lease.
    Joined(NodeId),
    /// A node's lease expired.
    Expired(NodeId),
}

/// All nodes under lease.
#[derive(Debug)]
pub struct Fleet {
    limits: Limits,
    members: BTreeMap<NodeId, Member>,
    /// Rises when pools must be built anew: a node joined, expired, or changed its addresses.
    shape: u64,
    /// Rises with everything that a reader of the loads could notice.
    version: u64,
    /// At most one joining and one expiry for each of `nodes_max`; what exceeds it is not told.
    outputs: VecDeque<Output>,
}

/// One node. Its lease holds while `live`; afterwards only the stamp is of use.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) report: LoadReport,
    pub(crate) listeners: Arc<[Listener]>,
    pub(crate) expires: Mono,
    live: bool,
}

/// A report's place in its node's history.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Stamp {
    start: Wall,
    counter: u64,
}

impl Default for Fleet {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Fleet {
    /// A fleet of no nodes.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { nodes_max: limits.nodes_max.min(NODES_MAX), ..limits };
        Self { limits, members: BTreeMap::new(), shape: 0, version: 0, outputs: VecDeque::new() }
    }

    /// Hears a report, whose sender has been authenticated.
    pub fn handle(&mut self, report: LoadReport, now: Mono) -> Result<Heard, Refusal> {
        if report.addresses.len() > ADDRESSES_MAX {
            return Err(Refusal::Addresses);
        }
        let node = report.node;
        let known = self.members.get(&node);
        if known.is_some_and(|it| Stamp::of(&report) <= it.stamp()) {
            return Err(Refusal::Replayed);
        }
        let moves = known.is_none_or(|it| !it.live || it.report.region != report.region);
        if moves && self.is_region_full(&report.region) {
            return Err(Refusal::RegionMax);
        }
        if known.is_none() && self.members.len() >= self.limits.nodes_max && !self.forget_one() {
            return Err(Refusal::NodesMax);
        }

        let expires = now + self.limits.lease;
        self.version += 1;
        if let Some(member) = self.members.get_mut(&node).filter(|it| it.live) {
            let readdressed = member.report.addresses != report.addresses;
            if readdressed {
                member.listeners = Listener::prepare(&report.addresses);
            }
            self.shape += u64::from(moves || readdressed);
            member.report = report;
            member.expires = expires;
            return Ok(Heard::Renewed);
        }
        let listeners = Listener::prepare(&report.addresses);
        self.members.insert(node, Member { report, listeners, expires, live: true });
        self.shape += 1;
        self.tell(Output::Joined(node));
        Ok(Heard::Joined)
    }

    /// Ends the leases that expired at or before `now`.
    pub fn tick(&mut self, now: Mono) {
        let mut expired = Vec::new();
        self.members.retain(|&node, member| {
            if member.live && member.expires <= now {
                member.live = false;
                expired.push(node);
            }
            member.live || now.since(member.expires) < MEMORY
        });
        for node in expired {
            self.shape += 1;
            self.version += 1;
            self.tell(Output::Expired(node));
        }
    }

    /// The next thing to tell an operator.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the next lease expires unless it is renewed. Looks at every node.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        self.live().map(|it| it.expires).min()
    }

    /// Nodes under lease.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live().count()
    }

    /// Whether no node is under lease.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live().next().is_none()
    }

    /// Rises with every report that counts and every lease that expires.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// One value per region, those included of which no node is left under lease: what a
    /// collector writes to the load table.
    #[must_use]
    pub fn pack(&self, at: Wall) -> Vec<RegionLoads> {
        let mut regions: BTreeMap<&str, Vec<LoadReport>> = BTreeMap::new();
        for member in self.members.values() {
            let nodes = regions.entry(&member.report.region).or_default();
            if member.live {
                nodes.push(member.report.clone());
            }
        }
        let packed = regions.into_iter();
        packed.map(|(region, nodes)| RegionLoads { region: region.to_owned(), at, nodes }).collect()
    }

    /// The nodes under lease, by id.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|it| it.live)
    }

    pub(crate) const fn shape(&self) -> u64 {
        self.shape
    }

    fn is_region_full(&self, region: &str) -> bool {
        self.live().filter(|it| it.report.region == region).count() >= REGION_NODES_MAX
    }

    /// Makes room by forgetting the node that has been silent longest, if one is.
    fn forget_one(&mut self) -> bool {
        let silent = self.members.iter().filter(|(_, it)| !it.live);
        let Some(node) = silent.min_by_key(|(_, it)| it.expires).map(|(&node, _)| node) else {
            return false;
        };
        self.members.remove(&node);
        true
    }

    fn tell(&mut self, output: Output) {
        if self.outputs.len() < 2 * self.limits.nodes_max {
            self.outputs.push_back(output);
        }
    }
}

impl Member {
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::of(&self.report)
    }

    /// Places for viewers as the last report has them; none if the node takes no viewers.
    pub(crate) fn places(&self, now: Mono) -> u32 {
        let Load { sessions, sessions_max, handshakes, accept_queue, .. } = self.report.load;
        if self.takes_viewers(now) {
            let used = sessions.saturating_add(handshakes).saturating_add(accept_queue);
            sessions_max.saturating_sub(used)
        } else {
            0
        }
    }

    pub(crate) fn takes_viewers(&self, now: Mono) -> bool {
        let Load { draining, besieged, .. } = self.report.load;
        now < self.expires && !draining && !besieged && !self.listeners.is_empty()
    }
}

impl Stamp {
    const fn of(report: &LoadReport) -> Self {
        Self { start: report.start, counter: report.counter }
    }
}
