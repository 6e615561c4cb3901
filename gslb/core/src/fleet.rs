//! All nodes under lease, as a state machine fed with load reports.
//!
//! The newest report of a node counts, by (start, counter); an older or repeated one renews
//! nothing, so neither a replayed datagram nor a load table that nobody writes any more keeps a
//! dead node in the answers. No two machines' clocks are compared: a lease runs on the clock of
//! whoever hears the report.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use proto::id::NodeId;
use proto::limits::{ADDRESSES_MAX, REGION_NODES_MAX};
use proto::load::{LoadReport, Numbers, ReportView};
use proto::time::Mono;

use crate::listener::Listener;
use crate::region::{Region, Regions};
use lease::{Lease, Stamp};
use row::Row;

pub(crate) use lease::Ramp;
pub use look::{Look, Standing};

mod change;
mod lease;
mod look;
pub(crate) mod row;

/// Nodes that any configuration may allow: what turn arithmetic is proven for.
pub const NODES_MAX: usize = 1 << 15;
/// How long the newest (start, counter) of a silent node is remembered against replay.
///
/// Not for ever: a node whose clock was set back between two starts is heard again after this.
const MEMORY: Duration = Duration::from_secs(600);
/// Joined, draining, besieged and expired, once each for every node between two looks.
const OUTPUTS_PER_NODE: usize = 4;

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
    /// A value in its bytes is not allowed.
    #[error("the report holds a value that is not allowed")]
    Malformed,
    /// More addresses than [`ADDRESSES_MAX`].
    #[error("the report names too many addresses")]
    Addresses,
    /// [`Limits::nodes_max`] nodes are under lease.
    #[error("the fleet holds as many nodes as it may")]
    NodesMax,
    /// [`REGION_NODES_MAX`] nodes of its region are under lease: one more would not fit the
    /// region's value. Or it would be one region more than
    /// [`REGIONS_MAX`](crate::region::REGIONS_MAX).
    #[error("the region holds as many nodes as it may, or is one too many")]
    RegionMax,
}

/// What an operator is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Output {
    /// A node came under lease.
    Joined(NodeId),
    /// A node's lease expired.
    Expired(NodeId),
    /// A node takes no more viewers, because it drains.
    Draining(NodeId),
    /// A node takes no more viewers, because it is attacked.
    Besieged(NodeId),
}

/// All nodes under lease.
#[derive(Debug)]
pub struct Fleet {
    limits: Limits,
    regions: Regions,
    /// By region, its nodes under lease.
    lived_in: Vec<usize>,
    /// Places in `members` and `rows`.
    slots: BTreeMap<NodeId, u32>,
    members: Vec<Option<Member>>,
    /// What plans read: the numbers alone, side by side.
    rows: Vec<Row>,
    leases: Vec<Lease>,
    /// Slots of forgotten nodes.
    free: Vec<u32>,
    live: usize,
    /// Nodes under lease that are attacked.
    besieged: BTreeSet<NodeId>,
    /// Nodes under lease that drain.
    draining: BTreeSet<NodeId>,
    /// Rises when pools must be built anew: a node joined, expired, or changed its addresses.
    shape: u64,
    /// Rises with everything that a reader of the loads could notice.
    version: u64,
    /// The last time that reports could be heard.
    heard: Mono,
    /// Until then nobody knows who is new: the fleet itself is.
    settled: Mono,
    /// Nothing expires and nothing is forgotten before.
    due: Mono,
    /// At most [`OUTPUTS_PER_NODE`] for each of `nodes_max`; what exceeds it is not told.
    outputs: VecDeque<Output>,
}

/// One node: what changes seldom. Its load is in its [`Row`].
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) report: LoadReport,
    pub(crate) region: Region,
    /// The published ones, then the reserve.
    pub(crate) listeners: Arc<[Listener]>,
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
        Self {
            limits,
            regions: Regions::default(),
            lived_in: Vec::new(),
            slots: BTreeMap::new(),
            members: Vec::new(),
            rows: Vec::new(),
            leases: Vec::new(),
            free: Vec::new(),
            live: 0,
            besieged: BTreeSet::new(),
            draining: BTreeSet::new(),
            shape: 0,
            version: 0,
            heard: Mono::default(),
            settled: Mono::default(),
            due: Mono(u64::MAX),
            outputs: VecDeque::new(),
        }
    }

    /// Hears a report in its bytes, whose sender has been authenticated.
    ///
    /// Most reports tell other numbers than the one before and nothing else: those cost no copy.
    pub fn hear(&mut self, report: ReportView<'_>, now: Mono) -> Result<Heard, Refusal> {
        let stamp = Stamp { start: report.start(), counter: report.counter() };
        let slot = self.slots.get(&report.node()).copied();
        let known = slot.and_then(|it| Some((it, self.member(it)?)));
        if known.is_some_and(|(_, it)| stamp <= Stamp::of(&it.report)) {
            return Err(Refusal::Replayed);
        }
        let repeated = known
            .filter(|(slot, it)| self.rows[*slot as usize].is_live() && report.repeats(&it.report));
        if let Some((slot, _)) = repeated {
            let past = self.past(slot, stamp.start, now);
            self.renew(slot, (stamp, report.load()), past, now);
            return Ok(Heard::Renewed);
        }
        self.handle(report.to_report().map_err(|_| Refusal::Malformed)?, now)
    }

    /// Hears a report that differs in numbers alone from one that was heard.
    ///
    /// Nothing if that one is not the node's last, or holds no lease any more: then the report must
    /// be heard as a whole.
    pub fn renew_numbers(&mut self, numbers: Numbers, now: Mono) -> Option<Result<Heard, Refusal>> {
        let Numbers { node, start, before, counter, load } = numbers;
        let slot = *self.slots.get(&node)?;
        let last = Stamp::of(&self.member(slot)?.report);
        if last != (Stamp { start, counter: before }) || !self.rows[slot as usize].is_live() {
            return None;
        }
        let stamp = Stamp { start, counter };
        if stamp <= last {
            return Some(Err(Refusal::Replayed));
        }
        let past = self.past(slot, start, now);
        self.renew(slot, (stamp, load), past, now);
        Some(Ok(Heard::Renewed))
    }

    /// Hears a report, whose sender has been authenticated.
    pub fn handle(&mut self, report: LoadReport, now: Mono) -> Result<Heard, Refusal> {
        if report.addresses.len() + report.reserve.len() > ADDRESSES_MAX {
            return Err(Refusal::Addresses);
        }
        let (stamp, load) = (Stamp::of(&report), report.load);
        let slot = self.slots.get(&report.node).copied();
        let before = slot.and_then(|it| Some((self.member(it)?, self.rows[it as usize])));
        if before.is_some_and(|(it, _)| stamp <= Stamp::of(&it.report)) {
            return Err(Refusal::Replayed);
        }
        let lived = before.filter(|(_, row)| row.is_live()).map(|(it, _)| it.region);
        let region = self.regions.number(&report.region).ok_or(Refusal::RegionMax)?;
        let moves = lived != Some(region);
        if moves && self.lived_in.get(region.index()).is_some_and(|it| *it >= REGION_NODES_MAX) {
            return Err(Refusal::RegionMax);
        }
        let slot = slot.or_else(|| self.slot()).ok_or(Refusal::NodesMax)?;

        if self.live == 0 {
            self.settled = now + self.limits.lease;
        }
        let past = self.past(slot, stamp.start, now);
        if moves {
            self.leave(lived);
            self.enter(region);
        }
        if lived.is_none() {
            self.tell(Output::Joined(report.node));
        }
        self.settle(slot, report, region);
        self.renew(slot, (stamp, load), past, now);
        Ok(if lived.is_none() { Heard::Joined } else { Heard::Renewed })
    }

    /// Ends the leases that expired at or before `now`.
    ///
    /// Whoever hears reports from somebody else, such as a load table, calls this only while that
    /// speaks, and [`Fleet::resume`] when it speaks again: leases do not run while nobody can be
    /// heard, and plans grow cautious instead.
    pub fn tick(&mut self, now: Mono) {
        self.heard = self.heard.max(now);
        if now < self.due {
            return;
        }
        self.due = Mono(u64::MAX);
        for slot in 0..self.rows.len() {
            let Lease { expires, .. } = self.leases[slot];
            if self.rows[slot].is_live() {
                if now < expires {
                    self.due = self.due.min(expires);
                    continue;
                }
                self.expire(slot);
            }
            if now.since(expires) >= MEMORY {
                self.forget(slot);
            } else if self.members[slot].is_some() {
                self.due = self.due.min(expires + MEMORY);
            }
        }
    }

    /// Reports can be heard again after a silence that was no node's own: leases run on from here.
    pub fn resume(&mut self, now: Mono) {
        let silence = now.since(self.heard);
        self.heard = self.heard.max(now);
        self.due = self.due.min(now);
        let leases = self.leases.iter_mut().zip(&self.rows);
        leases
            .filter(|(_, row)| row.is_live())
            .for_each(|(it, _)| it.expires = it.expires + silence);
    }

    /// The next thing to tell an operator.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the next lease expires unless it is renewed. Looks at every node.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        let leases = self.rows.iter().zip(&self.leases);
        leases.filter(|(row, _)| row.is_live()).map(|(_, it)| it.expires).min()
    }

    /// Nodes under lease.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether no node is under lease.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Nodes under lease that are attacked.
    #[must_use]
    pub const fn besieged(&self) -> &BTreeSet<NodeId> {
        &self.besieged
    }

    /// Nodes under lease that drain.
    #[must_use]
    pub const fn draining(&self) -> &BTreeSet<NodeId> {
        &self.draining
    }

    /// The last report of a node.
    pub(crate) fn report(&self, node: NodeId) -> Option<&LoadReport> {
        let slot = self.slots.get(&node)?;
        self.member(*slot).map(|it| &it.report)
    }

    /// Rises with every report that counts and every lease that expires.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The nodes under lease of every region by name, those regions included of which no node is
    /// left: what a collector writes to the load table.
    pub fn by_region(&self) -> impl Iterator<Item = (&str, Vec<NodeId>)> {
        let mut nodes = vec![Vec::new(); self.regions.len()];
        for (_, member) in self.live() {
            nodes[member.region.index()].push(member.report.node);
        }
        self.regions.iter().map(move |(name, it)| (name, mem::take(&mut nodes[it.index()])))
    }

    /// The nodes under lease by id, with their slots.
    pub(crate) fn live(&self) -> impl Iterator<Item = (u32, &Member)> {
        let slots = self.slots.values().filter(|&&it| self.rows[it as usize].is_live());
        slots.filter_map(|&it| Some((it, self.member(it)?)))
    }

    /// By slot; those of dead and forgotten nodes are not live.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Since when the node of a slot grows.
    pub(crate) fn ramp(&self, slot: usize) -> Ramp {
        self.leases[slot].ramp
    }

    /// Bits a second out of the node of a slot.
    pub(crate) fn egress_bps(&self, slot: u32) -> u64 {
        self.member(slot).map_or(0, |it| it.report.load.egress_bps)
    }

    pub(crate) const fn regions(&self) -> &Regions {
        &self.regions
    }

    pub(crate) const fn shape(&self) -> u64 {
        self.shape
    }

    /// The last time that reports could be heard.
    pub(crate) const fn heard(&self) -> Mono {
        self.heard
    }

    fn member(&self, slot: u32) -> Option<&Member> {
        self.members[slot as usize].as_ref()
    }
}
