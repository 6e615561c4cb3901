//! The nodes for one viewer: the first by turns, the others by chance, apart from it.
//!
//! The others are drawn by chance and not by turns, so that the viewers of a node that dies
//! spread over all others instead of following each other to its neighbour.

use std::ops::Range;

use proto::address::Carrier;
use proto::limits::ADDRESSES_MAX;

use super::usual::best;
use super::{ADDRESSES_PER_ANSWER, Assignment, Request};
use crate::policy::Pool;
use crate::snapshot::Snapshot;
use crate::topology::{Entry, NO_RING, Plane, Spoken};
use crate::turns::Turns;

/// Turns tried in one pool before the next one.
///
/// A turn fails only when its node was filled since the snapshot was made, so eight failures in a
/// row mean that the pool is all but full; the next snapshot, 5 ms later, knows exactly.
const TURNS_MAX: u32 = 8;

/// Looks for nodes in one plane.
pub(super) struct Search<'a> {
    snapshot: &'a Snapshot,
    plane: &'a Plane,
    turns: &'a Turns,
    request: Request,
    /// The ring of the viewer's region and carrier.
    own: u32,
    /// The ring of the viewer's region and BGP.
    bgp: u32,
}

/// Whose turn it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) entry: u32,
    pub(super) turn_no: u32,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        plane: &'a Plane,
        turns: &'a Turns,
        request: &Request,
    ) -> Self {
        let own = plane.way(request.region, request.carrier).ring;
        let bgp = plane.way(request.region, Carrier::Bgp).ring;
        Self { snapshot, plane, turns, request: *request, own, bgp }
    }

    /// The entry whose turn it is, in the first pool where one has a place, but for so many that
    /// have none.
    pub(super) fn first(&self, full: usize) -> Option<First> {
        let order = self.snapshot.topology.order.iter().skip(full);
        order.copied().find_map(|pool| self.take(self.ring(pool)))
    }

    /// The entries of the middle and of the last address.
    ///
    /// The last is chosen first, since it has the stronger wish: to be BGP.
    pub(super) fn further(&self, first: First) -> [Option<u32>; ADDRESSES_PER_ANSWER - 1] {
        let First { entry: first, turn_no } = first;
        if self.plane.entries.len() == 1 {
            return [None, None];
        }
        let parts = chance(turn_no);
        let order = || self.snapshot.topology.order.iter().copied();
        let bgp_first = [Pool::RegionBgp, Pool::Bgp].into_iter().chain(order());
        let last = bgp_first.map(|it| self.ring(it)).find_map(|ring| {
            let away = self.away(ring, first, parts[0]);
            away.or_else(|| self.beside(ring, [first, first], parts[0]))
        });
        let Some(last) = last else {
            return [None, None];
        };
        let rings = || order().map(|it| self.ring(it));
        let same_room = self.machine_room(first) == self.machine_room(last);
        let away = rings().filter(|_| same_room).find_map(|it| self.away(it, first, parts[1]));
        let beside = || rings().find_map(|it| self.beside(it, [first, last], parts[1]));
        [away.or_else(beside), Some(last)]
    }

    /// The best listeners of fewer than three entries, and further ones of them: other transports
    /// first.
    pub(super) fn fill(&self, chosen: [Option<u32>; 3], turn_no: u32) -> Assignment<'a> {
        let wants = &self.request.wants;
        let listeners = &self.snapshot.topology.listeners;
        let mut assignment = Assignment::default();
        for &entry in chosen.iter().flatten() {
            let listener = self.entry(entry).listener + best(self.spoken(entry), wants, turn_no);
            assignment.push(&listeners[listener as usize]);
        }
        let best = |entry| wants.order().find(|&it| self.spoken(entry)[it as usize].len > 0);
        for round in 0..=ADDRESSES_PER_ANSWER {
            for transport in wants.order() {
                for &entry in chosen.iter().flatten() {
                    if round == 0 && best(entry) == Some(transport) {
                        continue;
                    }
                    let span = self.spoken(entry)[transport as usize];
                    let start = self.entry(entry).listener as usize + usize::from(span.start);
                    let alike = &listeners[start..start + usize::from(span.len)];
                    if let Some(listener) = alike.get(round.saturating_sub(1)) {
                        assignment.push(listener);
                    }
                }
            }
        }
        assignment
    }

    fn spoken(&self, entry: u32) -> &'a Spoken {
        &self.plane.spoken[self.entry(entry).spoken as usize]
    }

    fn ring(&self, pool: Pool) -> u32 {
        match pool {
            Pool::Own => self.own,
            Pool::Carrier => self.plane.wide(self.request.carrier),
            Pool::RegionBgp => self.bgp,
            Pool::Bgp => self.plane.wide(Carrier::Bgp),
            Pool::Any => 0,
        }
    }

    /// The next turn of a ring whose node has a place left.
    fn take(&self, ring: u32) -> Option<First> {
        let entries = self.entries(ring)?;
        let stretch = self.turns.stretch(entries);
        if stretch.is_empty() {
            return None;
        }
        let turn_no = self.plane.rings[ring as usize].take();
        let entry = self.turns.turn(&stretch, turn_no);
        let Self { snapshot, plane, turns, .. } = *self;
        let entry = match snapshot.seat(plane, entry) {
            true => entry,
            false => snapshot.retake(plane, turns, &stretch, turn_no)?,
        };
        Some(First { entry, turn_no })
    }

    /// An entry of a ring in another machine room.
    fn away(&self, ring: u32, from: u32, part: u32) -> Option<u32> {
        let entries = self.entries(ring)?;
        if self.snapshot.topology.machine_rooms < 2 {
            return None;
        }
        let segments = self.plane.by_room.list(self.machine_room(from)).iter();
        let room = segments.map(|&it| &self.plane.segments[it as usize].entries);
        self.turns.beside(entries, room, part)
    }

    /// An entry of a ring at another node than two others.
    fn beside(&self, ring: u32, others: [u32; 2], part: u32) -> Option<u32> {
        let entries = self.entries(ring)?;
        let [a, b] = others.map(|it| self.plane.by_node.list(self.node(it)));
        let b = if a == b { &[] } else { b };
        let mut without = [const { 0..0 }; 2 * ADDRESSES_MAX];
        let mut used = 0;
        for (place, &entry) in without.iter_mut().zip(a.iter().chain(b)) {
            *place = entry..entry + 1;
            used += 1;
        }
        let without = &mut without[..used];
        without.sort_unstable_by_key(|it| it.start);
        self.turns.beside(entries, without.iter(), part)
    }

    fn entries(&self, ring: u32) -> Option<&'a Range<u32>> {
        if ring == NO_RING { None } else { Some(&self.plane.rings[ring as usize].entries) }
    }

    fn entry(&self, entry: u32) -> &'a Entry {
        &self.plane.entries[entry as usize]
    }

    fn node(&self, entry: u32) -> u32 {
        self.entry(entry).node
    }

    fn machine_room(&self, entry: u32) -> u32 {
        self.snapshot.topology.rooms[self.node(entry) as usize]
    }
}

impl Snapshot {
    /// Takes a place at an entry's node.
    #[inline]
    pub(super) fn seat(&self, plane: &Plane, entry: u32) -> bool {
        self.seats[plane.entries[entry as usize].node as usize].take()
    }

    /// An entry with a place left by chance, since the one whose turn it was has none.
    #[cold]
    pub(super) fn retake(
        &self,
        plane: &Plane,
        turns: &Turns,
        stretch: &Range<u32>,
        turn_no: u32,
    ) -> Option<u32> {
        let mut part = turn_no;
        (1..TURNS_MAX).find_map(|_| {
            part = chance(part)[0];
            Some(turns.at(stretch, part)).filter(|&it| self.seat(plane, it))
        })
    }
}

/// Two parts of 2^32 that look independent of the turn and of each other.
pub(super) fn chance(turn_no: u32) -> [u32; 2] {
    let mut mixed = (u64::from(turn_no) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^= mixed >> 32;
    let low = u32::try_from(mixed & 0xffff_ffff).expect("32 bits");
    let high = u32::try_from(mixed >> 32).expect("32 bits");
    [high, low]
}
