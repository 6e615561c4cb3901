//! All addresses that one kind of client can use, in one order, so that every pool is an interval.
//!
//! The order is carrier, region, machine room, node. The pool of a region and carrier is an
//! interval of it, that of a carrier is, and so is everybody; a machine room within a pool is an
//! interval of that, and a node one entry. Whatever a decision must leave out are a few intervals.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use proto::address::Carrier;

use super::lists::Lists;
use crate::assign::TRANSPORTS;
use crate::region::Region;

/// Stands for "no ring".
pub(crate) const NO_RING: u32 = u32::MAX;
/// Carriers.
const CARRIERS: usize = Carrier::ALL.len();

/// A node with the addresses that it has on one carrier.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) carrier: Carrier,
    pub(super) region: Region,
    pub(super) machine_room: u32,
    pub(super) node: u32,
    pub(super) line: u16,
    pub(super) listener: u32,
    pub(super) spoken: Spoken,
}

/// How many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) slots: usize,
    pub(super) regions: usize,
}

/// Everything for one kind of client.
#[derive(Debug)]
pub(crate) struct Plane {
    pub(crate) entries: Box<[Entry]>,
    /// What entries speak; most speak the same.
    pub(crate) spoken: Box<[Spoken]>,
    /// By entry, its node and its line: what every plan reads.
    pub(crate) nodes: Box<[u32]>,
    pub(crate) lines: Box<[u16]>,
    /// Intervals of one region and carrier each, which cover all entries.
    pub(crate) regional: Box<[Range<u32>]>,
    pub(crate) segments: Box<[Segment]>,
    /// Everybody first.
    pub(crate) rings: Box<[Ring]>,
    /// By region and carrier.
    ways: Box<[Way]>,
    /// By carrier.
    wide: [u32; CARRIERS],
    /// Segments by machine room.
    pub(crate) by_room: Lists,
    /// Entries by node.
    pub(crate) by_node: Lists,
}

/// One node on one carrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) node: u32,
    pub(crate) segment: u32,
    /// The first one of its listeners in the topology's.
    pub(crate) listener: u32,
    /// Its place in [`Plane::spoken`].
    pub(crate) spoken: u32,
}

/// The entries of one machine room in one region and on one carrier.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) entries: Range<u32>,
    /// The BGP entries of the same machine room and region.
    pub(crate) bgp: Range<u32>,
}

/// Where the viewers of one region and carrier look first.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// The ring of this region and carrier.
    pub(crate) ring: u32,
    /// Its entries.
    pub(crate) entries: Range<u32>,
    /// Entries of this region and BGP.
    pub(crate) bgp: Range<u32>,
}

/// Entries that are taken in turns. Alone in its cache line, since every answer writes to it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Ring {
    pub(crate) entries: Range<u32>,
    turns: AtomicU32,
}

/// By transport, which of an entry's listeners speak it.
pub(crate) type Spoken = [Span; TRANSPORTS];

/// Consecutive listeners of an entry.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Span {
    pub(crate) start: u8,
    pub(crate) len: u8,
}

impl Candidate {
    pub(super) fn order(&self) -> (Carrier, Region, u32, u32) {
        (self.carrier, self.region, self.machine_room, self.node)
    }
}

impl Plane {
    /// From candidates in their order.
    pub(super) fn build(candidates: &[&Candidate], size: Size, first_turn: u32) -> Self {
        let mut rings = vec![Ring::new(0..count(candidates.len()), first_turn)];
        let mut wide = [NO_RING; CARRIERS];
        for entries in intervals(candidates, |it| it.carrier) {
            let carrier = candidates[entries.start as usize].carrier;
            wide[carrier as usize] = count(rings.len());
            rings.push(Ring::new(entries, first_turn));
        }
        let regional = intervals(candidates, |it| (it.carrier, it.region));
        let mut ways = vec![Way::NONE; size.regions * CARRIERS].into_boxed_slice();
        for entries in &regional {
            let Candidate { carrier, region, .. } = *candidates[entries.start as usize];
            let way = &mut ways[region.index() * CARRIERS + carrier as usize];
            (way.ring, way.entries) = (count(rings.len()), entries.clone());
            rings.push(Ring::new(entries.clone(), first_turn));
        }
        for of_region in ways.chunks_mut(CARRIERS) {
            let bgp = of_region[Carrier::Bgp as usize].entries.clone();
            of_region.iter_mut().for_each(|it| it.bgp = bgp.clone());
        }

        let segments = segments(candidates);
        let mut spoken: Vec<Spoken> = candidates.iter().map(|it| it.spoken).collect();
        spoken.sort_unstable();
        spoken.dedup();
        let mut entries = Vec::with_capacity(candidates.len());
        for (number, segment) in (0..).zip(&segments) {
            let of_segment = &candidates[segment.entries.start as usize..][..segment.entries.len()];
            entries.extend(of_segment.iter().map(|it| Entry {
                node: it.node,
                segment: number,
                listener: it.listener,
                spoken: count(spoken.partition_point(|other| *other < it.spoken)),
            }));
        }
        let room = |it: &Segment| candidates[it.entries.start as usize].machine_room;
        let rooms = candidates.iter().map(|it| it.machine_room + 1).max().unwrap_or(0);
        Self {
            by_room: Lists::of(rooms as usize, segments.iter().map(room).zip(0..)),
            by_node: Lists::of(size.slots, candidates.iter().map(|it| it.node).zip(0..)),
            nodes: candidates.iter().map(|it| it.node).collect(),
            lines: candidates.iter().map(|it| it.line).collect(),
            entries: entries.into(),
            spoken: spoken.into(),
            regional: regional.into(),
            segments: segments.into(),
            rings: rings.into(),
            ways,
            wide,
        }
    }

    /// Where the viewers of a region and carrier look first.
    #[inline]
    pub(crate) fn way(&self, region: Region, carrier: Carrier) -> &Way {
        self.ways.get(region.index() * CARRIERS + carrier as usize).unwrap_or(&Way::NONE)
    }

    /// The ring of a carrier anywhere.
    pub(crate) fn wide(&self, carrier: Carrier) -> u32 {
        self.wide[carrier as usize]
    }
}

impl Way {
    const NONE: Self = Self { ring: NO_RING, entries: 0..0, bgp: 0..0 };
}

impl Ring {
    fn new(entries: Range<u32>, first_turn: u32) -> Self {
        Self { entries, turns: AtomicU32::new(first_turn) }
    }

    /// Takes the next turn: its number.
    #[inline]
    pub(crate) fn take(&self) -> u32 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// The number of the next turn.
    pub(crate) fn next(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }
}

/// The transports of an entry.
pub(super) fn mask_of(spoken: &Spoken) -> u8 {
    (0..TRANSPORTS).filter(|&it| spoken[it].len > 0).fold(0, |mask, it| mask | 1 << it)
}

/// The segments, with the BGP one of each.
fn segments(candidates: &[&Candidate]) -> Vec<Segment> {
    let place = |it: &Candidate| (it.region, it.machine_room);
    let entries = intervals(candidates, |it| (it.carrier, place(it)));
    let first = |it: &Range<u32>| candidates[it.start as usize];
    let is_bgp = |it: &&Range<u32>| first(it).carrier == Carrier::Bgp;
    // BGP comes first, so these are the first segments, by region and machine room.
    let bgp: Vec<_> = entries.iter().take_while(is_bgp).map(|it| place(first(it))).collect();
    let of_bgp = |it: &Range<u32>| match bgp.binary_search(&place(first(it))) {
        Ok(segment) => entries[segment].clone(),
        Err(_) => 0..0,
    };
    entries.iter().map(|it| Segment { entries: it.clone(), bgp: of_bgp(it) }).collect()
}

/// Where neighbours have the same key.
fn intervals<K: PartialEq>(
    candidates: &[&Candidate],
    key: impl Fn(&Candidate) -> K,
) -> Vec<Range<u32>> {
    let mut start = 0;
    let groups = candidates.chunk_by(|a, b| key(a) == key(b));
    let intervals = groups.map(|it| {
        let interval = start..start + count(it.len());
        start = interval.end;
        interval
    });
    intervals.collect()
}

fn count(entries: usize) -> u32 {
    u32::try_from(entries).expect("2^15 nodes have at most 2^19 addresses")
}
