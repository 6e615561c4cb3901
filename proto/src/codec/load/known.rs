//! Reports beside the ones before them: where only numbers differ, only numbers are read.
//!
//! The rest is equal byte for byte to what was verified, so it needs no second verification.

use std::ops::Range;

use bytes::Bytes;

use super::{RegionView, ReportView, load_of};
use crate::generated as fb;
use crate::id::NodeId;
use crate::load::Load;
use crate::time::Wall;

const COUNTER_BYTES: usize = size_of::<u64>();
const LOAD_BYTES: usize = size_of::<fb::Load>();

/// What a node's report says that the one before did not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Numbers {
    /// Of both.
    pub node: NodeId,
    /// Of both.
    pub start: Wall,
    /// Counter of the report before.
    pub before: u64,
    /// Counter of this one.
    pub counter: u64,
    /// Load of this one.
    pub load: Load,
}

/// A report in its bytes, to compare the next one with.
#[derive(Debug)]
pub struct KnownReport {
    bytes: Vec<u8>,
    /// Nothing if the bytes are not as [`LoadReport::encode`](crate::load::LoadReport::encode)
    /// writes them: others may lie across each other.
    spots: Option<Spots>,
}

/// A region's loads in their bytes, to compare the next ones with.
#[derive(Debug)]
pub struct KnownRegion {
    bytes: Bytes,
    /// Nothing if there are no such bytes, or they are in another order than
    /// [`RegionLoads::pack`](crate::load::RegionLoads::pack) writes them in.
    layout: Option<Layout>,
}

#[derive(Debug)]
struct Layout {
    /// Where the time of packing is.
    at: usize,
    /// By place.
    reports: Vec<Spots>,
}

/// Where a report's numbers are, and what belongs to them.
#[derive(Clone, Copy, Debug)]
struct Spots {
    counter: usize,
    load: usize,
    node: NodeId,
    start: Wall,
    handshakes_per_s_max: u32,
}

impl KnownReport {
    /// Keeps the bytes of a report.
    #[must_use]
    pub fn new(report: ReportView<'_>, bytes: &[u8]) -> Self {
        let is_ours = report.to_report().is_ok_and(|it| it.encode() == bytes);
        let spots = Some(report).filter(|_| is_ours).and_then(Spots::of);
        Self { bytes: bytes.to_vec(), spots }
    }

    /// The report as it came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What `next` says that is new; nothing if more than numbers may be new.
    #[must_use]
    pub fn compare(&self, next: &[u8]) -> Option<Numbers> {
        let spots = self.spots?;
        is_same_but(&self.bytes, next, spots.ranges()).then_some(())?;
        spots.read(&self.bytes, next)
    }

    /// Keeps the bytes of a report that differs in numbers alone.
    pub fn renew(&mut self, next: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(next);
    }
}

impl KnownRegion {
    /// Keeps a region's bytes, and where the numbers of `region`, which was read from them, are.
    #[must_use]
    pub fn new(bytes: Bytes, region: Option<RegionView<'_>>) -> Self {
        Self { bytes, layout: region.and_then(Layout::of) }
    }

    /// The value as it came.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What `next` says that is new, by node; nothing if more than numbers may be new.
    #[must_use]
    pub fn compare<'a>(&'a self, next: &'a [u8]) -> Option<impl Iterator<Item = Numbers> + 'a> {
        let layout = self.layout.as_ref()?;
        is_same_but(&self.bytes, next, layout.ranges()).then_some(())?;
        let read = layout.reports.iter().filter_map(|it| it.read(&self.bytes, next));
        Some(read.filter(|it| it.counter != it.before))
    }

    /// Keeps the bytes of a value that differs in numbers alone.
    pub fn renew(&mut self, next: Bytes) {
        self.bytes = next;
    }
}

impl Layout {
    fn of(region: RegionView<'_>) -> Option<Self> {
        let at = spot(region.0._tab, fb::RegionLoads::VT_AT_MS)?;
        let reports = region.nodes().map(Spots::of).collect::<Option<_>>()?;
        Some(Self { at, reports })
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let at = self.at..self.at + size_of::<u64>();
        std::iter::once(at).chain(self.reports.iter().flat_map(|it| it.ranges()))
    }
}

impl Spots {
    fn of(report: ReportView<'_>) -> Option<Self> {
        let table = report.0._tab;
        Some(Self {
            counter: spot(table, fb::LoadReport::VT_COUNTER)?,
            load: spot(table, fb::LoadReport::VT_LOAD)?,
            node: report.node(),
            start: report.start(),
            handshakes_per_s_max: report.0.handshakes_per_s_max(),
        })
    }

    /// The bytes of the numbers, in order.
    fn ranges(self) -> [Range<usize>; 2] {
        let counter = self.counter..self.counter + COUNTER_BYTES;
        let load = self.load..self.load + LOAD_BYTES;
        if self.counter < self.load { [counter, load] } else { [load, counter] }
    }

    fn read(self, known: &[u8], next: &[u8]) -> Option<Numbers> {
        let counter =
            |bytes: &[u8]| Some(u64::from_le_bytes(*bytes.get(self.counter..)?.first_chunk()?));
        let load = fb::Load(*next.get(self.load..)?.first_chunk()?);
        Some(Numbers {
            node: self.node,
            start: self.start,
            before: counter(known)?,
            counter: counter(next)?,
            load: load_of(&load, self.handshakes_per_s_max),
        })
    }
}

/// Where a table holds a field; nothing if it leaves it out.
fn spot(table: flatbuffers::Table<'_>, field: flatbuffers::VOffsetT) -> Option<usize> {
    let distance = usize::from(table.vtable().get(field));
    (distance > 0).then(|| table.loc() + distance)
}

/// Whether both are alike outside of the ranges. Never, if these are not in order.
fn is_same_but(known: &[u8], next: &[u8], ranges: impl IntoIterator<Item = Range<usize>>) -> bool {
    let mut end = 0;
    let is_same = |from: usize, to: usize| {
        let (known, next) = (known.get(from..to), next.get(from..to));
        known.is_some() && known == next
    };
    known.len() == next.len()
        && ranges.into_iter().all(|it| is_same(std::mem::replace(&mut end, it.end), it.start))
        && is_same(end, known.len())
}
