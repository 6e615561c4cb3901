//! Which nodes make up which pool: rebuilt only when a node joins, leaves or moves, and shared by
//! the snapshots in between.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use proto::address::Carrier;
use proto::id::NodeId;

use crate::assign::TRANSPORTS;
use crate::fleet::Fleet;
use crate::listener::Listener;

/// Stands for "no view".
pub(crate) const NO_VIEW: u32 = u32::MAX;
/// Sets of transports.
const MASKS: usize = 1 << TRANSPORTS;

/// Nodes, pools and views of one shape of the fleet.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    /// The fleet's shape this was built from.
    pub(crate) shape: u64,
    /// By id.
    pub(crate) nodes: Box<[Node]>,
    pub(crate) views: Box<[View]>,
    /// By (region, carrier).
    keys: Box<[(String, Carrier)]>,
    /// The pools of `keys`; behind them, where there are several, one of all nodes.
    pools: Box<[Pool]>,
    /// (node, listener), by authority.
    authorities: Box<[(u32, u32)]>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) listeners: Arc<[Listener]>,
    machine_room: u32,
}

/// A pool's view for every set of transports that a client may want.
#[derive(Debug)]
struct Pool([u32; MASKS]);

/// The nodes of a pool that speak at least one of some transports, by machine room, then id.
///
/// Two sets of transports that match the same nodes share a view, so there is one per pool as
/// long as all nodes listen alike.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) entries: Box<[Entry]>,
}

/// One node of a view.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) node: u32,
    pub(crate) machine_room: u32,
    /// All entries of the same view in the same machine room.
    pub(crate) roommates: Range<u32>,
    pub(crate) spoken: Spoken,
}

/// By transport, which of the node's listeners serve this pool.
pub(crate) type Spoken = [Span; TRANSPORTS];

/// Consecutive listeners of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) start: u8,
    pub(crate) len: u8,
}

impl Topology {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let mut machine_rooms = BTreeMap::new();
        let mut members: BTreeMap<(String, Carrier), Vec<Entry>> = BTreeMap::new();
        let mut everyone = Vec::new();
        let mut nodes = Vec::new();
        let mut authorities = Vec::new();
        for (node_no, member) in (0..).zip(fleet.live()) {
            let listeners = &member.listeners;
            let name = listeners.first().map_or("", |it| &it.address().machine_room);
            let next = u32::try_from(machine_rooms.len()).expect("at most one per node");
            let machine_room = *machine_rooms.entry(name.to_owned()).or_insert(next);
            let entry = |spoken| Entry { node: node_no, machine_room, roommates: 0..0, spoken };
            for carrier in carriers(listeners) {
                let key = (member.report.region.clone(), carrier);
                let spoken = spoken(listeners, |it| it == carrier);
                members.entry(key).or_default().push(entry(spoken));
            }
            everyone.push(entry(spoken(listeners, |_| true)));
            authorities.extend((0..).take(listeners.len()).map(|it| (node_no, it)));
            let id = member.report.node;
            nodes.push(Node { id, listeners: listeners.clone(), machine_room });
        }
        authorities.sort_by_key(|&(node, it): &(u32, u32)| {
            nodes[node as usize].listeners[it as usize].authority()
        });

        let (keys, mut pools): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        if pools.len() > 1 {
            pools.push(everyone);
        }
        let mut views = Vec::new();
        let pools = pools.into_iter().map(|entries| Pool::build(entries, &mut views)).collect();
        Self {
            shape: fleet.shape(),
            nodes: nodes.into(),
            views: views.into(),
            keys: keys.into(),
            pools,
            authorities: authorities.into(),
        }
    }

    /// The view of (region, carrier) for clients that speak the transports of `mask`.
    pub(crate) fn view(&self, region: &str, carrier: Carrier, mask: u8) -> u32 {
        let key = (region, carrier);
        let found = self.keys.binary_search_by(|it| (it.0.as_str(), it.1).cmp(&key));
        found.map_or(NO_VIEW, |it| self.pools[it].0[usize::from(mask)])
    }

    /// The view of all nodes, for clients that speak the transports of `mask`.
    pub(crate) fn everywhere(&self, mask: u8) -> u32 {
        self.pools.last().map_or(NO_VIEW, |it| it.0[usize::from(mask)])
    }

    /// The listener with this `host:port`.
    pub(crate) fn find(&self, authority: &str) -> Option<&Listener> {
        let of = |&(node, it): &(u32, u32)| &self.nodes[node as usize].listeners[it as usize];
        let found = self.authorities.binary_search_by(|it| of(it).authority().cmp(authority));
        found.ok().map(|it| of(&self.authorities[it]))
    }

    /// The entries of a view that stand in the machine room of `node`.
    pub(crate) fn roommates(&self, view: u32, node: u32) -> Range<u32> {
        let machine_room = self.nodes[node as usize].machine_room;
        let entries = &self.views[view as usize].entries;
        let found = entries.binary_search_by_key(&machine_room, |it| it.machine_room);
        found.map_or(0..0, |it| entries[it].roommates.clone())
    }

    /// The entry of `node` in a view, as a range of one or none.
    pub(crate) fn entry(&self, view: u32, node: u32) -> Range<u32> {
        let machine_room = self.nodes[node as usize].machine_room;
        let entries = &self.views[view as usize].entries;
        let key = (machine_room, node);
        match entries.binary_search_by_key(&key, |it| (it.machine_room, it.node)) {
            Ok(it) => {
                let it = u32::try_from(it).expect("a view has at most as many entries as nodes");
                it..it + 1
            }
            Err(_) => 0..0,
        }
    }
}

impl Pool {
    /// Sorts the entries and makes a view of each distinct set that some client would see.
    fn build(mut entries: Vec<Entry>, views: &mut Vec<View>) -> Self {
        entries.sort_by_key(|it| (it.machine_room, it.node));
        let mut offers: Vec<u8> = entries.iter().map(|it| mask_of(&it.spoken)).collect();
        offers.sort_unstable();
        offers.dedup();

        let mut seen = BTreeMap::new();
        let mut pool = Self([NO_VIEW; MASKS]);
        for (mask, view) in (0u8..).zip(&mut pool.0) {
            let matched: Vec<u8> = offers.iter().copied().filter(|it| it & mask != 0).collect();
            if matched.is_empty() {
                continue;
            }
            *view = *seen.entry(matched).or_insert_with(|| {
                let speakers = entries.iter().filter(|it| mask_of(&it.spoken) & mask != 0);
                views.push(View::new(speakers.cloned().collect()));
                u32::try_from(views.len() - 1).expect("at most 63 views for each pool")
            });
        }
        pool
    }
}

impl View {
    fn new(mut entries: Box<[Entry]>) -> Self {
        let mut start = 0;
        for room in entries.chunk_by_mut(|a, b| a.machine_room == b.machine_room) {
            let end = start + u32::try_from(room.len()).expect("at most as many as nodes");
            room.iter_mut().for_each(|it| it.roommates = start..end);
            start = end;
        }
        Self { entries }
    }
}

/// The carriers of a node's listeners, which are sorted by carrier.
fn carriers(listeners: &[Listener]) -> impl Iterator<Item = Carrier> {
    let groups = listeners.chunk_by(|a, b| a.address().carrier == b.address().carrier);
    groups.map(|it| it[0].address().carrier)
}

/// By transport, the listeners of the first carrier that `serves`; BGP comes first.
fn spoken(listeners: &[Listener], serves: impl Fn(Carrier) -> bool) -> Spoken {
    let mut spoken = Spoken::default();
    let mut start = 0;
    let kind = |it: &Listener| (it.address().carrier, it.address().transport);
    for group in listeners.chunk_by(|a, b| kind(a) == kind(b)) {
        let (carrier, transport) = kind(&group[0]);
        let len = u8::try_from(group.len()).expect("a report has at most 16 addresses");
        let span = &mut spoken[transport as usize];
        if serves(carrier) && span.len == 0 {
            *span = Span { start, len };
        }
        start += len;
    }
    spoken
}

fn mask_of(spoken: &Spoken) -> u8 {
    (0..TRANSPORTS).filter(|&it| spoken[it].len > 0).fold(0, |mask, it| mask | 1 << it)
}
