//! A region's value around reports as they came: a FlatBuffer may lie within another, since all
//! that it holds is found by distance.

use bytes::{BufMut, Bytes, BytesMut};

use crate::time::Wall;

/// What numbers of 64 bits are aligned to, and so every report.
const ALIGNMENT: usize = 8;
/// Where the table of slots begins.
const SLOTS: usize = 4;
/// The slots: their bytes, the table's bytes, then where in the table `region`, `at_ms` and `nodes`
/// are.
const SLOTS_OF_REGION: [u16; 5] = [10, 20, 4, 8, 16];
/// Where the table begins.
const TABLE: usize = 16;
/// Where the region's name begins: behind the table.
const NAME: usize = TABLE + 20;
/// Bytes of a length or a distance.
const WORD: usize = 4;

/// The same value as that of the reports decoded, without decoding them.
pub(super) fn pack(region: &str, at: Wall, reports: &[&[u8]]) -> Bytes {
    let list = (NAME + WORD + region.len() + 1).next_multiple_of(WORD);
    let first = (list + WORD + reports.len() * WORD).next_multiple_of(ALIGNMENT);
    let bodies: usize = reports.iter().map(|it| it.len().next_multiple_of(ALIGNMENT)).sum();
    let mut b = BytesMut::with_capacity(first + bodies);

    b.put_u32_le(word(TABLE));
    SLOTS_OF_REGION.iter().for_each(|it| b.put_u16_le(*it));
    b.resize(TABLE, 0);
    b.put_u32_le(word(TABLE - SLOTS));
    b.put_u32_le(word(NAME - b.len()));
    b.put_u64_le(at.0);
    b.put_u32_le(word(list - b.len()));

    b.put_u32_le(word(region.len()));
    b.put_slice(region.as_bytes());
    b.resize(list, 0);

    b.put_u32_le(word(reports.len()));
    let mut body = first;
    for report in reports {
        let root = report.first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
        b.put_u32_le(word(body - b.len()).saturating_add(root));
        body += report.len().next_multiple_of(ALIGNMENT);
    }
    for report in reports {
        b.resize(b.len().next_multiple_of(ALIGNMENT), 0);
        b.put_slice(report);
    }
    b.freeze()
}

/// A length or a distance. One that does not fit is refused by whoever reads it.
fn word(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
