//! Load reports read where they lie: most say nothing new but numbers, and those cost no copy.

use super::{columns, load, report};
use crate::codec::{check_length, record, refused, root, word};
use crate::decode::DecodeError;
use crate::generated as fb;
use crate::id::NodeId;
use crate::limits;
use crate::load::{Load, LoadReport};
use crate::time::Wall;

/// A [`LoadReport`] in its bytes.
///
/// Its structure is verified; whatever of it is neither a number nor equal to what is known
/// already is checked by [`ReportView::to_report`].
#[derive(Clone, Copy, Debug)]
pub struct ReportView<'a>(pub(super) fb::LoadReport<'a>);

/// A [`RegionLoads`](crate::load::RegionLoads) in its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RegionView<'a>(pub(super) fb::RegionLoads<'a>);

impl<'a> ReportView<'a> {
    /// A report as [`LoadReport::encode`] wrote it.
    ///
    /// # Errors
    ///
    /// Whatever is too long or is not of this structure.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        check_length(bytes, 1, limits::REPORT_BYTES_MAX)?;
        root::<fb::LoadReport<'_>>(bytes).map(Self)
    }

    /// The node that bytes name which are not verified yet, if they name one: who must have signed
    /// them.
    #[must_use]
    pub fn peek(bytes: &[u8]) -> Option<NodeId> {
        let table = usize::try_from(u32::from_le_bytes(*bytes.first_chunk()?)).ok()?;
        let distance = i32::from_le_bytes(*bytes.get(table..)?.first_chunk()?);
        let slots = table.checked_add_signed(isize::try_from(distance).ok()?.checked_neg()?)?;
        let slot = slots.checked_add(usize::from(fb::LoadReport::VT_NODE))?;
        let spot = u16::from_le_bytes(*bytes.get(slot..)?.first_chunk()?);
        if spot == 0 {
            // What is 0 is left out.
            return Some(NodeId(0));
        }
        let node = bytes.get(table.checked_add(usize::from(spot))?..)?.first_chunk()?;
        Some(NodeId(u32::from_le_bytes(*node)))
    }

    /// [`LoadReport::node`].
    #[must_use]
    pub fn node(self) -> NodeId {
        NodeId(self.0.node())
    }

    /// [`LoadReport::start`].
    #[must_use]
    pub fn start(self) -> Wall {
        Wall(self.0.start_ms())
    }

    /// [`LoadReport::counter`].
    #[must_use]
    pub fn counter(self) -> u64 {
        self.0.counter()
    }

    /// [`LoadReport::load`].
    #[must_use]
    pub fn load(self) -> Load {
        load(self.0)
    }

    /// The hosts of all its addresses, published and in reserve.
    pub fn hosts(self) -> impl Iterator<Item = &'a str> {
        self.0.hosts().into_iter().flatten()
    }

    /// Whether `known` differs from it in `counter`, `start` and `load` at most.
    #[must_use]
    pub fn repeats(self, known: &LoadReport) -> bool {
        let it = self.0;
        let mut addresses = known.addresses.iter().chain(&known.reserve);
        it.node() == known.node.0
            && it.unit() == known.unit.0
            && it.region() == known.region
            && usize::from(it.reserves()) == known.reserve.len()
            && columns(it).is_ok_and(|mut columns| {
                columns.all(|it| addresses.next().is_some_and(|known| it.is(known)))
                    && addresses.next().is_none()
            })
    }

    /// The report on its own.
    ///
    /// # Errors
    ///
    /// A value beyond [`crate::limits`] or outside its grammar.
    pub fn to_report(self) -> Result<LoadReport, DecodeError> {
        report(self.0)
    }
}

impl<'a> RegionView<'a> {
    /// A region's loads as [`RegionLoads::encode`](crate::load::RegionLoads::encode) or
    /// [`RegionLoads::pack`](crate::load::RegionLoads::pack) wrote them.
    ///
    /// # Errors
    ///
    /// Whatever is too long, is not of this structure, or holds too many nodes.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let it = record::<fb::RegionLoads<'_>>(bytes)?;
        if it.nodes().map_or(0, |it| it.len()) > limits::REGION_NODES_MAX {
            return refused("nodes");
        }
        Ok(Self(it))
    }

    /// [`RegionLoads::nodes`](crate::load::RegionLoads::nodes).
    pub fn nodes(self) -> impl Iterator<Item = ReportView<'a>> {
        self.0.nodes().into_iter().flatten().map(ReportView)
    }

    pub(super) fn region(self) -> Result<String, DecodeError> {
        word::text(self.0.region(), limits::WORD_BYTES_MAX, "region")
    }

    pub(super) fn at(self) -> Wall {
        Wall(self.0.at_ms())
    }
}
