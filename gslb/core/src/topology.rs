//! Which nodes make up which pool: rebuilt only when a node joins, leaves or moves, and shared by
//! the snapshots in between.

mod lines;
mod lists;
mod plane;

use std::collections::BTreeMap;

use crate::assign::TRANSPORTS;
use crate::fleet::Fleet;
use crate::listener::Listener;
use crate::policy::{Policy, Pool};
use crate::region::Regions;

pub(crate) use lines::Line;
use plane::{Candidate, mask_of};
pub(crate) use plane::{Entry, NO_RING, Plane, Ring, Spoken};

/// Sets of transports.
const MASKS: usize = 1 << TRANSPORTS;
/// Stands for "no plane".
pub(crate) const NO_PLANE: u8 = u8::MAX;

/// Nodes and pools of one shape of the fleet.
#[derive(Debug)]
pub(crate) struct Topology {
    /// The fleet's shape this was built from.
    pub(crate) shape: u64,
    /// By slot, the machine room; 0 in empty slots.
    pub(crate) rooms: Box<[u32]>,
    /// Of all nodes: one array, so that an answer needs no look at the node.
    pub(crate) listeners: Box<[Listener]>,
    pub(crate) planes: Box<[Plane]>,
    /// By the set of transports that a client may want, the plane of published addresses.
    pub(crate) published: [u8; MASKS],
    /// The same for the reserve.
    pub(crate) reserve: [u8; MASKS],
    pub(crate) regions: Regions,
    /// Pools in the order in which they are tried.
    pub(crate) order: Box<[Pool]>,
    pub(crate) lines: Box<[Line]>,
    /// Machine rooms in all.
    pub(crate) machine_rooms: u32,
    /// Listeners, by authority.
    authorities: Box<[u32]>,
}

/// Which of a node's addresses.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Published,
    Reserve,
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            shape: 0,
            rooms: Box::default(),
            listeners: Box::default(),
            planes: Box::default(),
            published: [NO_PLANE; MASKS],
            reserve: [NO_PLANE; MASKS],
            regions: Regions::default(),
            order: Box::default(),
            lines: Box::default(),
            machine_rooms: 0,
            authorities: Box::default(),
        }
    }
}

impl Topology {
    /// `first_turn` is where everybody's turns begin.
    pub(crate) fn of(fleet: &Fleet, policy: &Policy, first_turn: u32) -> Self {
        let mut machine_rooms = BTreeMap::new();
        let mut rooms = vec![0; fleet.rows().len()].into_boxed_slice();
        let mut listeners: Vec<Listener> = Vec::new();
        let mut starts = vec![0; fleet.rows().len()];
        for (slot, member) in fleet.live() {
            let name = member.listeners.first().map_or("", |it| &it.address().machine_room);
            let next = count(machine_rooms.len());
            rooms[slot as usize] = *machine_rooms.entry(name.to_owned()).or_insert(next);
            starts[slot as usize] = count(listeners.len());
            listeners.extend_from_slice(&member.listeners);
        }
        let mut authorities: Vec<u32> = (0..count(listeners.len())).collect();
        authorities.sort_by(|&a, &b| {
            let [a, b] = [a, b].map(|it| listeners[it as usize].authority());
            a.cmp(b)
        });

        let (lines, index) = lines::of(fleet, policy);
        let mut planes = Vec::new();
        let mut of_kind = |kind| {
            let candidates = candidates(fleet, &rooms, &starts, &index, kind);
            let size = plane::Size { slots: rooms.len(), regions: fleet.regions().len() };
            by_mask(&candidates, size, first_turn, &mut planes)
        };
        Self {
            shape: fleet.shape(),
            published: of_kind(Kind::Published),
            reserve: of_kind(Kind::Reserve),
            planes: planes.into(),
            regions: fleet.regions().clone(),
            order: policy.pools.clone().into(),
            lines,
            machine_rooms: count(machine_rooms.len()),
            authorities: authorities.into(),
            listeners: listeners.into(),
            rooms,
        }
    }

    /// The listener with this `host:port`.
    pub(crate) fn find(&self, authority: &str) -> Option<&Listener> {
        let of = |it: u32| &self.listeners[it as usize];
        let found = self.authorities.binary_search_by(|&it| of(it).authority().cmp(authority));
        found.ok().map(|it| of(self.authorities[it]))
    }
}

/// Every node once for each carrier that its addresses of this kind are on.
fn candidates(
    fleet: &Fleet,
    rooms: &[u32],
    starts: &[u32],
    lines: &lines::Index,
    kind: Kind,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (slot, member) in fleet.live() {
        let published = member.report.addresses.len();
        let listeners = match kind {
            Kind::Published => 0..published,
            Kind::Reserve => published..member.listeners.len(),
        };
        let mut start = starts[slot as usize] + count(listeners.start);
        let of_kind = &member.listeners[listeners];
        for group in of_kind.chunk_by(|a, b| a.address().carrier == b.address().carrier) {
            let address = group[0].address();
            candidates.push(Candidate {
                carrier: address.carrier,
                region: member.region,
                machine_room: rooms[slot as usize],
                node: slot,
                line: lines.find(&address.machine_room, address.carrier),
                listener: start,
                spoken: spoken(group),
            });
            start += count(group.len());
        }
    }
    candidates.sort_by_key(Candidate::order);
    candidates
}

/// A plane for each distinct set of candidates that some client would see, by what it speaks.
fn by_mask(
    candidates: &[Candidate],
    size: plane::Size,
    first_turn: u32,
    planes: &mut Vec<Plane>,
) -> [u8; MASKS] {
    let mut offers: Vec<u8> = candidates.iter().map(|it| mask_of(&it.spoken)).collect();
    offers.sort_unstable();
    offers.dedup();

    let mut seen = BTreeMap::new();
    let mut by_mask = [NO_PLANE; MASKS];
    for (mask, plane) in (0u8..).zip(&mut by_mask) {
        let matched: Vec<u8> = offers.iter().copied().filter(|it| it & mask != 0).collect();
        if matched.is_empty() {
            continue;
        }
        *plane = *seen.entry(matched).or_insert_with(|| {
            let speakers = candidates.iter().filter(|it| mask_of(&it.spoken) & mask != 0);
            planes.push(Plane::build(&speakers.collect::<Vec<_>>(), size, first_turn));
            u8::try_from(planes.len() - 1).expect("at most 63 planes for each of two kinds")
        });
    }
    by_mask
}

/// By transport, where in `group` those are that speak it.
fn spoken(group: &[Listener]) -> Spoken {
    let mut spoken = Spoken::default();
    let mut start = 0;
    let alike = |a: &Listener, b: &Listener| a.address().transport == b.address().transport;
    for listeners in group.chunk_by(alike) {
        let span = &mut spoken[listeners[0].address().transport as usize];
        span.start = start;
        span.len = u8::try_from(listeners.len()).expect("a report has at most 16 addresses");
        start += span.len;
    }
    spoken
}

fn count(things: usize) -> u32 {
    u32::try_from(things).expect("2^15 nodes have at most 2^19 addresses")
}
