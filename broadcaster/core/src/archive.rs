//! Sealed slots as records of a file that only grows, and recordings as minutes of media time.
//!
//! A file is [`MAGIC`] and then records: `length of the body u32 | CRC-32 (IEEE) of the body u32 |
//! body`, numbers little-endian; the body is a segment of the full tier without its repeats,
//! compressed with zstd. A file that ends amid a record was being written when that stopped: what is before is
//! good.

pub mod minutes;

use proto::decode::DecodeError;
use proto::encoding::Encoding;
use proto::limits::SEGMENT_BYTES_MAX;
use proto::segment::{Header, Segment};
use proto::time::Wall;

use crate::pack::{compress, expand};

/// What a file begins with.
pub const MAGIC: [u8; 4] = *b"DMA1";
/// Bytes before a record's body.
pub const HEADING_BYTES: usize = 8;

/// What stands before a record's body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Heading {
    /// Bytes of the body; at most [`SEGMENT_BYTES_MAX`].
    pub bytes: usize,
    crc: u32,
}

impl Heading {
    /// Reads what stands before a body; `None` if no record begins so.
    #[must_use]
    pub fn parse(bytes: [u8; HEADING_BYTES]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = bytes;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        let crc = u32::from_le_bytes([e, f, g, h]);
        (1..=SEGMENT_BYTES_MAX).contains(&length).then_some(Self { bytes: length, crc })
    }

    /// Whether these are the bytes that were written.
    #[must_use]
    pub fn matches(self, body: &[u8]) -> bool {
        body.len() == self.bytes && crc32fast::hash(body) == self.crc
    }
}

/// A slot as a record. Its repeats stand in earlier records, so they are left out.
///
/// `None` for what is larger than a segment may be.
#[must_use]
pub fn record(segment: &Segment) -> Option<Vec<u8>> {
    let header = Header { bases: Vec::new(), ..segment.header.clone() };
    let kept = Segment { header, items: segment.items.clone(), repeats: Vec::new() };
    let body = compress(&kept.encode(), Encoding::Zstd);
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= SEGMENT_BYTES_MAX)?;
    let mut record = Vec::with_capacity(HEADING_BYTES + body.len());
    record.extend_from_slice(&length.to_le_bytes());
    record.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    record.extend_from_slice(&body);
    Some(record)
}

/// The segment in a record's body.
///
/// # Errors
/// When it holds none.
pub fn open(body: &[u8]) -> Result<Segment, DecodeError> {
    Segment::decode(&expand(body)?)
}

/// When a segment's slot began.
#[must_use]
pub fn slot_start(header: &Header) -> Wall {
    let passed_ms = header.slot.0.saturating_mul(header.interval_ms.into());
    Wall(header.epoch_ms.0.saturating_add(passed_ms))
}

#[cfg(test)]
mod tests {
    use proto::id::Gen;
    use proto::item::{Lane, Repeat};

    use super::*;
    use crate::pack::tests::{header, placed};

    #[test]
    fn a_record_is_read_as_it_was_written_but_for_what_is_repeated() {
        let items = vec![placed(2, Lane::Comment), placed(3, Lane::HighGift)];
        let repeats = vec![Repeat { gen_no: Gen(1), placed: placed(1, Lane::HighGift) }];
        let segment = Segment { header: header(), items, repeats };

        let record = record(&segment).unwrap();
        let (heading, body) = record.split_at(HEADING_BYTES);
        let heading = Heading::parse(heading.try_into().unwrap()).unwrap();

        assert!(heading.matches(body));
        assert_eq!(open(body), Ok(Segment { repeats: Vec::new(), ..segment }));
    }

    #[test]
    fn what_was_changed_or_cut_is_noticed() {
        let segment = Segment { header: header(), items: Vec::new(), repeats: Vec::new() };
        let record = record(&segment).unwrap();
        let (heading, body) = record.split_at(HEADING_BYTES);
        let heading = Heading::parse(heading.try_into().unwrap()).unwrap();

        let mut changed = body.to_vec();
        changed[3] ^= 1;

        assert!(!heading.matches(&changed));
        assert!(!heading.matches(&body[1..]));
        assert_eq!(Heading::parse([0; HEADING_BYTES]), None);
        assert_eq!(Heading::parse([0xFF; HEADING_BYTES]), None);
    }
}
