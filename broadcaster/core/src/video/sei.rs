//! What a room says as messages beside the picture: SEI of unregistered user data (ITU-T H.264,
//! annex D, payload type 5), which relays of live video pass on as they are.
//!
//! A message is [`UUID`], three bytes, and a piece of a text of JSON: its form (0: as it is, 1: gzip
//! of the whole), the piece's number from 0, and how many there are. Pieces of a text come in order
//! and with nothing between them.

use bytes::Bytes;
use proto::encoding::Encoding;

use super::nal;
use crate::pack::{compress, expand};

/// Marks our messages: `8f3b1c52-6d0e-4a7b-9c41-2b7d5e90a6f3`.
pub const UUID: [u8; 16] = [
    0x8F, 0x3B, 0x1C, 0x52, 0x6D, 0x0E, 0x4A, 0x7B, 0x9C, 0x41, 0x2B, 0x7D, 0x5E, 0x90, 0xA6, 0xF3,
];
/// Bytes of a text in one message: a frame with it stays far below what relays take, 1 MiB in the
/// strictest.
pub const PIECE_BYTES_MAX: usize = 32 * 1024;
/// Messages of one text, so 2 MiB at most: several times the longest flush, compressed.
pub const PIECES_MAX: usize = 64;

/// First byte of a unit with messages: nothing refers to it, type 6.
const SEI: u8 = 6;
/// Payload type of user data under a UUID.
const UNREGISTERED: u8 = 5;
/// Last byte of a unit: a one and zeros to the byte's end.
const TRAILING: u8 = 0x80;
/// Forms of a text.
const PLAIN: u8 = 0;
const GZIP: u8 = 1;
/// Shorter texts gain too little.
const GZIP_BYTES_MIN: usize = 1024;

/// A text as units with one message each, in order. None: it is longer than [`PIECES_MAX`] messages.
#[must_use]
pub fn units(json: &str) -> Option<Vec<Bytes>> {
    let (form, text) = if json.len() < GZIP_BYTES_MIN {
        (PLAIN, Bytes::copy_from_slice(json.as_bytes()))
    } else {
        (GZIP, compress(json.as_bytes(), Encoding::Gzip))
    };
    let pieces = text.chunks(PIECE_BYTES_MAX);
    let count = u8::try_from(pieces.len()).ok().filter(|&it| usize::from(it) <= PIECES_MAX)?;
    Some((0..count).zip(pieces).map(|(number, piece)| unit([form, number, count], piece)).collect())
}

fn unit(head: [u8; 3], piece: &[u8]) -> Bytes {
    let mut size = UUID.len() + head.len() + piece.len();
    let mut raw = Vec::with_capacity(size + size / 255 + 4);
    raw.push(UNREGISTERED);
    while size >= 255 {
        raw.push(255);
        size -= 255;
    }
    raw.push(u8::try_from(size).expect("less than 255 is left"));
    raw.extend_from_slice(&UUID);
    raw.extend_from_slice(&head);
    raw.extend_from_slice(piece);
    raw.push(TRAILING);
    let mut unit = vec![SEI];
    unit.extend_from_slice(&nal::escape(&raw));
    unit.into()
}

/// Puts texts together again from the units of a stream.
#[derive(Debug, Default)]
pub struct Reader {
    form: u8,
    bytes: Vec<u8>,
    /// The piece that must come next.
    number: u8,
}

impl Reader {
    /// Takes the next unit of a stream, of whatever kind; gives a text once it is complete. A text
    /// of which a piece is missing is left out.
    pub fn take(&mut self, unit: &[u8]) -> Option<String> {
        let message = message(unit)?;
        let [form, number, count, piece @ ..] = message.as_slice() else {
            return None;
        };
        if *number == 0 {
            *self = Self { form: *form, ..Self::default() };
        }
        if (*number, *form) != (self.number, self.form) || piece.len() > PIECE_BYTES_MAX {
            *self = Self::default();
            return None;
        }
        self.bytes.extend_from_slice(piece);
        self.number = self.number.saturating_add(1);
        if self.number < *count {
            return None;
        }
        let Self { form, bytes, .. } = std::mem::take(self);
        let text = if form == GZIP { expand(&bytes).ok()? } else { bytes };
        String::from_utf8(text).ok()
    }
}

/// What follows the UUID in the first of our messages in a unit.
fn message(unit: &[u8]) -> Option<Vec<u8>> {
    let (&head, rest) = unit.split_first()?;
    if head & 0x1F != SEI {
        return None;
    }
    let raw = nal::unescape(rest);
    let mut rest = raw.as_slice();
    while rest.len() > 1 {
        let (kind, size);
        (kind, rest) = varied(rest)?;
        (size, rest) = varied(rest)?;
        let (payload, behind) = rest.split_at_checked(size)?;
        if kind == usize::from(UNREGISTERED)
            && let Some(message) = payload.strip_prefix(&UUID)
        {
            return Some(message.to_vec());
        }
        rest = behind;
    }
    None
}

/// A number in as many bytes as it takes: each 255 adds itself, and another one ends it.
fn varied(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let full = bytes.iter().take_while(|&&it| it == 255).count();
    let (&last, rest) = bytes.get(full..)?.split_first()?;
    Some((full * 255 + usize::from(last), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(units: &[Bytes]) -> Vec<String> {
        let mut reader = Reader::default();
        units.iter().filter_map(|it| reader.take(it)).collect()
    }

    /// A text that gzip makes no shorter than `bytes`.
    fn noise(bytes: usize) -> String {
        let mut state = 7_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b' ' + u8::try_from(state >> 26).unwrap())
        };
        (0..bytes * 2).map(|_| next()).collect()
    }

    #[test]
    fn a_message_stands_where_decoders_look_for_it() {
        let unit = &units("{}").unwrap()[0];

        assert_eq!(unit[..3], [6, 5, 21]);
        assert_eq!(unit[3..19], UUID);
        assert_eq!(nal::unescape(&unit[19..]), [PLAIN, 0, 1, b'{', b'}', TRAILING]);
    }

    #[test]
    fn a_long_text_is_compressed_and_comes_in_pieces() {
        let (long, longer) = ("x".repeat(5_000), noise(3 * PIECE_BYTES_MAX));

        let one = units(&long).unwrap();
        let many = units(&longer).unwrap();

        assert_eq!((one.len(), many.len() > 3), (1, true));
        assert!(one[0].len() < 200, "{}", one[0].len());
        assert_eq!(read(&[one, many].concat()), [long, longer]);
    }

    #[test]
    fn a_text_that_lost_a_piece_is_left_out_and_the_next_is_read() {
        let mut units = units(&noise(3 * PIECE_BYTES_MAX)).unwrap();
        units.remove(1);
        units.extend(super::units("{}").unwrap());

        assert_eq!(read(&units), ["{}"]);
    }

    #[test]
    fn others_messages_in_the_same_unit_are_passed_over() {
        let ours = &units("{}").unwrap()[0];
        let mut unit = vec![SEI, 1, 2, 7, 7, UNREGISTERED, 16];
        unit.extend([9; 16]);
        unit.extend_from_slice(&ours[1..]);

        assert_eq!(read(&[unit.into()]), ["{}"]);
    }

    #[test]
    fn what_no_messages_can_hold_is_none() {
        assert_eq!(units(&noise((PIECES_MAX + 1) * PIECE_BYTES_MAX)), None);
    }

    proptest! {
        #[test]
        fn any_text_comes_back_and_never_looks_like_a_start_code(text in "\\PC{0,2000}|[\0-\u{3}]{1,900}") {
            prop_assume!(!text.is_empty());
            let units = units(&text).unwrap();

            let is_code = |it: &[u8]| it[..2] == [0, 0] && it[2] < 3;
            prop_assert!(!units.iter().any(|it| it.windows(3).any(is_code)));
            prop_assert_eq!(read(&units), [text]);
        }

        #[test]
        fn any_bytes_are_taken(units in proptest::collection::vec(any::<Vec<u8>>(), 0..20)) {
            let mut reader = Reader::default();
            for unit in units {
                reader.take(&[&[SEI][..], &unit].concat());
            }
        }
    }
}
