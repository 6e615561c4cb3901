//! From a sealed slot to the bytes that are stored and served.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proto::decode::DecodeError;
use proto::head::Tier;
use proto::id::ItemId;
use proto::item::{Item, Placed, Repeat};
use proto::limits::SEGMENT_BYTES_MAX;
use proto::segment::{Header, Segment};

/// gzip's level: on segments, 6 saves 1 % at most and takes a third more time.
const LEVEL: u32 = 4;

/// The files of one segment, compressed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Packed {
    /// `.bin`: FlatBuffers columns, gzip.
    pub bin: Bytes,
    /// `.json`: the same for integrators, gzip.
    pub json: Bytes,
}

impl Packed {
    /// Packs a segment.
    #[must_use]
    pub fn of(segment: &Segment) -> Self {
        Self { bin: compress(&segment.encode()), json: compress(segment.to_json().as_bytes()) }
    }
}

/// Puts a slot's flushes together; `repeats` are what earlier slots must show again.
#[must_use]
pub fn pack(header: Header, flushes: Vec<Vec<Placed>>, repeats: Vec<Repeat>) -> Segment {
    let items = flushes.into_iter().flatten().collect();
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
    let mut hasher = crc32fast::Hasher::new();
    for item in items {
        let ItemId(id) = item.id;
        hasher.update(&id.to_le_bytes());
    }
    hasher.finalize()
}

/// gzip, the same bytes each time.
#[must_use]
pub fn compress(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(LEVEL));
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("writing into a Vec does not fail").into()
}

/// Undoes [`compress`], up to [`SEGMENT_BYTES_MAX`].
pub fn expand(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut expanded = Vec::new();
    let limit = SEGMENT_BYTES_MAX as u64 + 1;
    let read: io::Result<usize> = GzDecoder::new(bytes).take(limit).read_to_end(&mut expanded);
    match read {
        Ok(_) if expanded.len() > SEGMENT_BYTES_MAX => {
            Err(DecodeError::TooLarge { bytes: expanded.len(), max: SEGMENT_BYTES_MAX })
        }
        Ok(_) => Ok(expanded),
        Err(_) => Err(DecodeError::Malformed),
    }
}

#[cfg(test)]
pub(crate) mod tests;
