//! The picture of [`frame()`] as the video data of FLV and RTMP, a message beside it.
//!
//! Format: Adobe, "Video File Format Specification", version 10.1, annex E.4.3; the header as ISO/IEC
//! 14496-15, 5.2.4.1, has it. Each frame is a key frame, so whoever comes can begin at once.

use bytes::{BufMut, Bytes, BytesMut};

use super::frame;

/// A key frame, in H.264.
const KEY_FRAME: u8 = 0x17;
/// What follows that byte: the header or units, and a composition time of 0.
const HEADER: [u8; 4] = [0; 4];
const UNITS: [u8; 4] = [1, 0, 0, 0];

/// What comes before all frames: how they are to be decoded.
#[must_use]
pub fn header() -> Bytes {
    let [_, profile, constraints, level, ..] = frame::SPS;
    let mut body = BytesMut::with_capacity(32);
    body.put_u8(KEY_FRAME);
    body.put_slice(&HEADER);
    // Version 1, and lengths of four bytes.
    body.put_slice(&[1, profile, constraints, level, 0xFF]);
    // One set of each kind; three bits are set in the first count.
    body.put_u8(0xE1);
    put_set(&mut body, &frame::SPS);
    body.put_u8(1);
    put_set(&mut body, &frame::PPS);
    body.freeze()
}

fn put_set(body: &mut BytesMut, set: &[u8]) {
    body.put_u16(u16::try_from(set.len()).expect("sets have six bytes at most"));
    body.put_slice(set);
}

/// The frame with this number, and before it a unit with a message, if there is one to be said.
#[must_use]
pub fn frame(number: u64, message: Option<&Bytes>) -> Bytes {
    let mut body = BytesMut::with_capacity(32 + message.map_or(0, Bytes::len));
    body.put_u8(KEY_FRAME);
    body.put_slice(&UNITS);
    let slice: &[u8] = frame::slice(number);
    for unit in message.map(|it| &it[..]).into_iter().chain([slice]) {
        body.put_u32(u32::try_from(unit.len()).expect("a message is a piece of a text"));
        body.put_slice(unit);
    }
    body.freeze()
}

/// The units of a frame; none of a header, or of what is no frame.
pub fn units(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let units = body.strip_prefix(&[KEY_FRAME]).and_then(|it| it.strip_prefix(&UNITS[..1]));
    let mut rest = units.and_then(|it| it.get(3..)).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let unit;
        (unit, rest) = behind.split_at_checked(length)?;
        Some(unit)
    })
}

/// Times of frames: in milliseconds since the stream began, each later than the one before, and
/// wrapping after 49 days, as both formats have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    next_ms: u64,
}

impl Stamps {
    /// The stamp of a frame that is shown this long after the stream began.
    pub fn next(&mut self, since_ms: u64) -> u32 {
        let ms = since_ms.max(self.next_ms);
        self.next_ms = ms + 1;
        u32::try_from(ms & u64::from(u32::MAX)).expect("32 bits")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_header_holds_both_sets() {
        let header = header();

        assert_eq!(header[..5], [0x17, 0, 0, 0, 0]);
        assert_eq!(header[5..11], [1, 0x42, 0xC0, 0x0A, 0xFF, 0xE1]);
        assert_eq!(header[11..13], [0, 6]);
        assert_eq!(header[13..19], frame::SPS);
        assert_eq!(header[19..22], [1, 0, 4]);
        assert_eq!(header[22..], frame::PPS);
        assert_eq!(units(&header).count(), 0);
    }

    #[test]
    fn a_frame_has_its_message_before_its_slice() {
        let message = Bytes::from_static(b"\x06message");

        let (with, without) = (frame(7, Some(&message)), frame(8, None));

        assert_eq!(units(&with).collect::<Vec<_>>(), [&message[..], frame::slice(7)]);
        assert_eq!(units(&without).collect::<Vec<_>>(), [frame::slice(8)]);
        assert_eq!(with[..5], [0x17, 1, 0, 0, 0]);
    }

    #[test]
    fn stamps_rise_whatever_the_clock_does_and_wrap() {
        let mut stamps = Stamps::default();

        let of = [0, 0, 200, 150, 400, 1 << 32].map(|it| stamps.next(it));

        assert_eq!(of, [0, 1, 200, 201, 400, 0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(body: Vec<u8>) {
            let inner: usize = units(&body).map(<[u8]>::len).sum();

            prop_assert!(inner <= body.len());
        }
    }
}
