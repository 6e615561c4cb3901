//! The usual viewer, straight through: a node of the own carrier whose turn it is, another one by
//! chance, and a BGP node in another machine room.
//!
//! Whatever is missing leads to the [`Search`](super::search::Search), which tries everything and
//! promises the same.

use std::ops::Range;

use super::search::{First, chance};
use super::{ADDRESSES_PER_ANSWER, Request, Wants};
use crate::policy::Pool;
use crate::snapshot::Snapshot;
use crate::topology::{Plane, Spoken};
use crate::turns::Turns;

/// How far the straight way leads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Usual {
    /// All the way: the entries of the first, the middle and the last address, and the turn's number.
    All([u32; ADDRESSES_PER_ANSWER], u32),
    /// The first one is chosen, and has taken the viewer.
    Only(First),
    /// Nowhere: so many of the first pools are known to be full.
    Nothing { full: usize },
}

impl Snapshot {
    /// Goes the straight way.
    #[inline]
    pub(super) fn usual(&self, plane: &Plane, turns: &Turns, request: &Request) -> Usual {
        let way = plane.way(request.region, request.carrier);
        let own = turns.stretch(&way.entries);
        if own.is_empty() || self.topology.order.first() != Some(&Pool::Own) {
            return Usual::Nothing { full: 0 };
        }
        let turn_no = plane.rings[way.ring as usize].take();
        let mut first = turns.turn(&own, turn_no);
        if !self.seat(plane, first) {
            match self.retake(plane, turns, &own, turn_no) {
                Some(other) => first = other,
                None => return Usual::Nothing { full: 1 },
            }
        }

        let entry = &plane.entries[first as usize];
        let only = Usual::Only(First { entry: first, turn_no });
        let [part, other_part] = chance(turn_no);
        let room = turns.stretch(&plane.segments[entry.segment as usize].bgp);
        let Some(last) = turns.outside(&turns.stretch(&way.bgp), &room, part) else {
            return only;
        };
        let taken = [entry.node, plane.entries[last as usize].node];
        let is_taken = |it: u32| taken.contains(&plane.entries[it as usize].node);
        let middle = turns.at(&own, other_part);
        if !is_taken(middle) {
            return Usual::All([first, middle, last], turn_no);
        }
        match third(turns, &way.entries, [first, last], other_part) {
            // A node may stand in both pools.
            Some(middle) if !is_taken(middle) => Usual::All([first, middle, last], turn_no),
            Some(_) | None => only,
        }
    }
}

/// An entry that is neither of two, by another chance. Few first chances meet one of the two, and
/// these are shared out over the others like all.
#[cold]
fn third(turns: &Turns, entries: &Range<u32>, others: [u32; 2], part: u32) -> Option<u32> {
    let [a, b] = others;
    let (low, high) = (a.min(b), a.max(b));
    let without = [low..low + 1, high..high + 1];
    turns.beside(entries, without.iter(), chance(part)[0])
}

/// From an entry's first listener, the one that the client likes best; where there are several
/// alike, by turns.
pub(super) fn best(spoken: &Spoken, wants: &Wants, turn_no: u32) -> u32 {
    for transport in wants.order() {
        let span = spoken[transport as usize];
        if span.len > 0 {
            // The low bits of a turn's number repeat with the node's own turns.
            let mixed = turn_no.wrapping_mul(0x9e37_79b9) >> 16;
            return u32::from(span.start) + ((mixed * u32::from(span.len)) >> 16);
        }
    }
    unreachable!("a plane holds entries that speak one of its transports")
}
