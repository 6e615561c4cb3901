//! FLV with script data only: each flush is a tag, and there is neither sound nor picture.
//!
//! Format: Adobe, "Video File Format Specification", version 10.1, annex E; values in AMF0
//! ("Action Message Format -- AMF 0", 2007).

use bytes::{BufMut, Bytes, BytesMut};

/// Name of the script tags.
pub const NAME: &str = "onBarrage";
/// Bytes of a tag besides its data.
const TAG_BYTES: usize = 15;
/// Type of a tag with script data.
const SCRIPT: u8 = 18;
/// A tag's data length has 24 bits.
const DATA_MAX: usize = (1 << 24) - 1;

/// Bytes of a string.
const STRING_MAX: usize = u16::MAX as usize;

/// AMF0 markers.
const NUMBER: u8 = 0;
const STRING: u8 = 2;
const OBJECT: u8 = 3;
const STRICT_ARRAY: u8 = 10;
const OBJECT_END: [u8; 3] = [0, 0, 9];

/// The file's first bytes: version 1, neither audio nor video, and the length of no tag before.
pub const HEADER: [u8; 13] = *b"FLV\x01\0\0\0\0\x09\0\0\0\0";

/// A tag [`NAME`] with an object of two: `at_ms`, a number, the server's time of the flush; and
/// `json`, an array of strings that make the text together. They are short ones, of 64 KiB at most,
/// since players that are much used read long strings wrongly.
/// `ms` is the stream's own time and wraps after 49 days, as the format has it. None:
/// the text is longer than a tag may be.
#[must_use]
pub fn tag(ms: u64, at_ms: u64, json: &str) -> Option<Bytes> {
    let mut data = BytesMut::with_capacity(json.len() + 64);
    data.put_u8(STRING);
    key(&mut data, NAME);
    data.put_u8(OBJECT);
    key(&mut data, "at_ms");
    data.put_u8(NUMBER);
    #[expect(clippy::cast_precision_loss, reason = "milliseconds stay below 2^53 for ages")]
    data.put_f64(at_ms as f64);
    key(&mut data, "json");
    let pieces = pieces(json);
    data.put_u8(STRICT_ARRAY);
    data.put_u32(u32::try_from(pieces.len()).ok()?);
    for piece in pieces {
        data.put_u8(STRING);
        data.put_u16(u16::try_from(piece.len()).ok()?);
        data.put_slice(piece.as_bytes());
    }
    data.put_slice(&OBJECT_END);
    if data.len() > DATA_MAX {
        return None;
    }
    let length = u32::try_from(data.len()).ok()?;
    let [high, time @ ..] = u32::try_from(ms & u64::from(u32::MAX)).ok()?.to_be_bytes();

    let mut tag = BytesMut::with_capacity(TAG_BYTES + data.len());
    tag.put_u8(SCRIPT);
    tag.put_uint(length.into(), 3);
    tag.put_slice(&time);
    tag.put_u8(high);
    tag.put_uint(0, 3);
    tag.put_slice(&data);
    tag.put_u32(length + 11);
    Some(tag.freeze())
}

/// The text in pieces of [`STRING_MAX`] bytes at most, cut between letters.
fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let piece;
        (piece, text) = text.split_at(text.floor_char_boundary(STRING_MAX));
        pieces.push(piece);
    }
    pieces
}

fn key(data: &mut BytesMut, name: &'static str) {
    data.put_u16(u16::try_from(name.len()).expect("names are short"));
    data.put_slice(name.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_says_its_time_and_length_where_players_look() {
        let tag = tag(0x0102_0304, 5, "{}").unwrap();

        let length = tag.len() - TAG_BYTES;
        assert_eq!(tag[0], SCRIPT);
        assert_eq!(tag[1..4], [0, 0, u8::try_from(length).unwrap()]);
        assert_eq!(tag[4..8], [2, 3, 4, 1], "the high byte comes last");
        assert_eq!(tag[11..23], *b"\x02\0\x09onBarrage");
        let back = u32::try_from(length + 11).unwrap().to_be_bytes();
        assert_eq!(tag[tag.len() - 4..], back);
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        let text = "é".repeat(40_000);

        let pieces = pieces(&text);

        assert_eq!(pieces.iter().map(|it| it.len()).collect::<Vec<_>>(), [65_534, 14_466]);
        assert_eq!(pieces.concat(), text);
    }

    #[test]
    fn what_no_tag_can_hold_is_none() {
        assert_eq!(tag(0, 0, &"x".repeat(DATA_MAX)), None);
    }
}
