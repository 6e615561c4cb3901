//! `u32 length, big-endian | frame`.

use bytes::Bytes;

use super::{Decoder, Found, Step};

const LENGTH_BYTES: usize = 4;

impl Decoder {
    pub(super) fn stream(&self, bytes: &[u8]) -> Step {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
            return Step::More;
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.frame_bytes_max as usize {
            return Step::Over(Found::TooLarge);
        }
        match rest.get(..length) {
            Some(frame) => {
                Step::Found(LENGTH_BYTES + length, Found::Frame(Bytes::copy_from_slice(frame)))
            }
            None => Step::More,
        }
    }
}

#[cfg(test)]
mod tests {
    use link_core::framing::Framing;

    use super::*;

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let bytes = [&b"\0\0\0\x02ab"[..], b"\0\0\0\0", b"\0\0\0\x03cde"].concat();
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::new(Framing::Stream, 8);
            let mut found = Vec::new();

            decoder.feed(&bytes[..cut], &mut found);
            decoder.feed(&bytes[cut..], &mut found);

            let expected = [&b"ab"[..], b"", b"cde"].map(|it| Found::Frame(Bytes::from_static(it)));
            assert_eq!(found, expected, "cut at {cut}");
            assert!(decoder.partial.is_none());
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_bytes_come() {
        let mut decoder = Decoder::new(Framing::Stream, 8);
        let mut found = Vec::new();

        decoder.feed(b"\0\0\0\x09", &mut found);
        assert_eq!(found, [Found::TooLarge]);

        decoder.allow(9);
        found.clear();
        decoder.feed(b"\0\0\0\x09", &mut found);
        assert_eq!(found, []);
        decoder.feed(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", &mut found);
        assert_eq!(found.last(), Some(&Found::TooLarge));
    }
}
