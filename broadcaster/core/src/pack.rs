//! From a sealed slot to the bytes that are stored and served.

mod compress;
pub mod train;

use bytes::Bytes;
use proto::encoding::Encoding;
pub use proto::encoding::expand;
use proto::head::Tier;
use proto::item::{Item, Placed, Repeat};
use proto::segment::{Header, Segment};

pub use compress::{Lexicon, compress};

/// How a house packs its slots.
#[derive(Clone, Debug, Default)]
pub struct Packing {
    /// How `.bin` and `.json` are compressed.
    pub encoding: Encoding,
    /// What `.zbin` is written with; without it there is none.
    pub lexicon: Option<Lexicon>,
}

/// The files of one segment, compressed. What seals a segment does it to these bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packed {
    /// `.bin`: FlatBuffers columns.
    pub bin: Bytes,
    /// `.json`: the same for integrators.
    pub json: Bytes,
    /// `.zbin`: as `.bin`, for those who have the dictionary.
    pub zbin: Option<Bytes>,
}

impl Packed {
    /// Packs a segment.
    #[must_use]
    pub fn of(segment: &Segment, packing: &Packing) -> Self {
        let columns = segment.encode();
        Self {
            bin: compress(&columns, packing.encoding),
            json: compress(segment.to_json().as_bytes(), packing.encoding),
            zbin: packing.lexicon.as_ref().map(|it| it.compress(&columns)),
        }
    }
}

/// Puts a slot's flushes together; `repeats` are what earlier slots must show again.
#[must_use]
pub fn pack(header: Header, flushes: Vec<Vec<Placed>>, repeats: Vec<Repeat>) -> Segment {
    let mut items = Vec::with_capacity(flushes.iter().map(Vec::len).sum());
    for mut flush in flushes {
        items.append(&mut flush);
    }
    Segment { header, items, repeats }
}

/// The lite tier of the same slot: protected items and the first `comments_max` comments of each
/// flush, with the places they have in the full one.
#[must_use]
pub fn lite(
    header: Header,
    flushes: &[Vec<Placed>],
    repeats: Vec<Repeat>,
    comments_max: usize,
) -> Segment {
    let mut items = Vec::new();
    for flush in flushes {
        let mut comments = 0;
        for placed in flush {
            let is_protected = placed.item.lane.is_protected();
            comments += usize::from(!is_protected);
            if is_protected || comments <= comments_max {
                items.push(placed.clone());
            }
        }
    }
    Segment { header: Header { tier: Tier::Lite, ..header }, items, repeats }
}

/// CRC-32 over the items' ids as little-endian u64, in order, as a seal carries it.
pub fn crc<'a>(items: impl IntoIterator<Item = &'a Item>) -> u32 {
    // At once: the checksum of eight bytes costs as much as that of a hundred.
    let bytes: Vec<u8> = items.into_iter().flat_map(|it| it.id.0.to_le_bytes()).collect();
    crc32fast::hash(&bytes)
}

#[cfg(test)]
pub(crate) mod tests;
