//! How a frame's FlatBuffer is compressed.
//!
//! A room's frames are the same for everybody in it and hold nothing that only one viewer may
//! know, so what their length tells of their content is told to nobody new.

use std::borrow::Cow;
use std::cell::RefCell;

use bytes::Bytes;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::decode::DecodeError;
use crate::limits::DOWNLINK_FRAME_BYTES_MAX;

/// Flag bit 0: the FlatBuffer is compressed.
const COMPRESSED: u8 = 1;
/// Bytes of `kind | flags`.
const HEAD_BYTES: usize = 2;
/// How much larger than its bytes a FlatBuffer is expected to be; one that is larger still costs
/// another allocation.
const EXPANSION: usize = 3;

/// What a link may do to the frames of rooms, as far as the client can undo it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Codec {
    /// Frames as they are. Every client understands it.
    #[default]
    Identity,
    /// Raw DEFLATE (RFC 1951, without any header): frames that gain by it are compressed, each by
    /// itself.
    Deflate,
}

impl Codec {
    /// All, those that save the most first.
    pub const ALL: [Self; 2] = [Self::Deflate, Self::Identity];

    /// The word in Hello and Welcome.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Deflate => "deflate",
        }
    }

    /// The first of a client's codecs that is known here; [`Codec::Identity`] if none is.
    #[must_use]
    pub fn first_of(names: &[String]) -> Self {
        let known = |name: &String| Self::ALL.into_iter().find(|it| it.name() == name);
        names.iter().find_map(known).unwrap_or_default()
    }
}

thread_local! {
    /// To allocate one for each frame costs as much again as to compress the frame, and more.
    static DEFLATER: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), false));
}

/// The same frame with its FlatBuffer compressed; nothing, if that makes it no smaller.
///
/// Each thread that calls it keeps a third of a megabyte for it from then on.
#[must_use]
pub fn deflate(frame: &[u8]) -> Option<Bytes> {
    let ([kind, flags], table) = frame.split_first_chunk::<HEAD_BYTES>()?;
    let mut packed = Vec::with_capacity(frame.len());
    packed.extend_from_slice(&[*kind, flags | COMPRESSED]);
    let status = DEFLATER.with_borrow_mut(|it| {
        it.reset();
        // It writes into what was allocated, and no further.
        it.compress_vec(table, &mut packed, FlushCompress::Finish)
    });
    let is_smaller = matches!(status, Ok(Status::StreamEnd)) && packed.len() < frame.len();
    is_smaller.then(|| packed.into())
}

/// The frame as it was before [`deflate`]; one that is not compressed stays what it is.
///
/// # Errors
/// [`DecodeError::TooLarge`] for what would be larger than any frame, noticed before more than that
/// is allocated; [`DecodeError::Malformed`] for what is cut off, damaged, or followed by something.
pub fn expand(frame: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
    match frame.split_first_chunk::<HEAD_BYTES>() {
        Some(([kind, flags], packed)) if flags & COMPRESSED != 0 => {
            inflate([*kind, flags & !COMPRESSED], packed).map(Cow::Owned)
        }
        Some(_) | None => Ok(Cow::Borrowed(frame)),
    }
}

fn inflate(head: [u8; HEAD_BYTES], packed: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let max = DOWNLINK_FRAME_BYTES_MAX;
    let expected = HEAD_BYTES + packed.len().saturating_mul(EXPANSION);
    // One more than is allowed, to see that there is more.
    let mut frame = Vec::with_capacity(expected.min(max + 1));
    frame.extend_from_slice(&head);
    let mut inflater = Decompress::new(false);
    let mut rest = packed;
    loop {
        if frame.len() == frame.capacity() {
            frame.reserve_exact(frame.len().min(max + 1 - frame.len()));
        }
        let before = (inflater.total_in(), inflater.total_out());
        let status = inflater.decompress_vec(rest, &mut frame, FlushDecompress::None);
        let read = usize::try_from(inflater.total_in() - before.0).unwrap_or(usize::MAX);
        rest = rest.get(read..).unwrap_or_default();
        if frame.len() > max {
            return Err(DecodeError::TooLarge { bytes: frame.len(), max });
        }
        match status {
            Ok(Status::StreamEnd) if rest.is_empty() => return Ok(frame),
            // It wants more room, or another turn.
            Ok(Status::Ok | Status::BufError)
                if before != (inflater.total_in(), inflater.total_out()) => {}
            // It wants more bytes, or has not wanted them all.
            Ok(Status::Ok | Status::BufError | Status::StreamEnd) | Err(_) => {
                return Err(DecodeError::Malformed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_repeats_becomes_smaller_and_what_does_not_stays() {
        let frame = [&[132, 0][..], &b"comment ".repeat(100)].concat();

        let packed = deflate(&frame).unwrap();

        assert_eq!(packed[..2], [132, 1]);
        assert!(packed.len() < frame.len() / 10, "{}", packed.len());
        assert_eq!(expand(&packed).as_deref(), Ok(&frame[..]));
        assert_eq!(deflate(&[132, 0, 1, 2, 3]), None);
        assert_eq!([deflate(&[]), deflate(&[132]), deflate(&[132, 0])], [None, None, None]);
    }

    #[test]
    fn a_frame_as_long_as_is_allowed_passes_and_a_longer_one_is_refused() {
        let max = DOWNLINK_FRAME_BYTES_MAX;
        let packed = |bytes| {
            let mut frame = vec![0; bytes];
            frame[0] = 132;
            deflate(&frame).unwrap()
        };

        assert_eq!(expand(&packed(max)).map(|it| it.len()), Ok(max));
        let too_large = DecodeError::TooLarge { bytes: max + 1, max };
        assert_eq!(expand(&packed(max + 1)), Err(too_large));
        assert_eq!(expand(&packed(100 * max)), Err(too_large));
    }

    #[test]
    fn what_is_cut_off_or_followed_by_something_is_refused() {
        let frame = [&[132, 0][..], &b"comment ".repeat(1000)].concat();
        let packed = deflate(&frame).unwrap();

        for length in 2..packed.len() {
            assert_eq!(expand(&packed[..length]), Err(DecodeError::Malformed), "{length}");
        }
        assert_eq!(expand(&[&packed[..], b"x"].concat()), Err(DecodeError::Malformed));
    }

    #[test]
    fn the_first_codec_that_is_known_is_taken() {
        let first = |names: &[&str]| {
            Codec::first_of(&names.iter().copied().map(str::to_owned).collect::<Vec<_>>())
        };

        assert_eq!(first(&["zstd", "deflate", "identity"]), Codec::Deflate);
        assert_eq!(first(&["identity", "deflate"]), Codec::Identity);
        assert_eq!([first(&["zstd"]), first(&[])], [Codec::Identity, Codec::Identity]);
    }

    proptest! {
        #[test]
        fn a_frame_comes_back_as_it_was(
            words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8), 0..8),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..2000),
        ) {
            let mut frame = vec![132, 0];
            if !words.is_empty() {
                order.iter().for_each(|it| frame.extend_from_slice(it.get::<Vec<u8>>(&words)));
            }

            if let Some(packed) = deflate(&frame) {
                prop_assert!(packed.len() < frame.len());
                prop_assert_eq!(expand(&packed), Ok(Cow::Borrowed(&frame[..])));
            }
            prop_assert_eq!(expand(&frame), Ok(Cow::Borrowed(&frame[..])));
        }

        #[test]
        fn made_up_bytes_expand_to_no_more_than_a_frame(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let packed = [&[132, 1][..], &bytes].concat();

            if let Ok(frame) = expand(&packed) {
                prop_assert!(frame.len() <= DOWNLINK_FRAME_BYTES_MAX);
                prop_assert_eq!(&frame[..2], &[132, 0]);
            }
        }
    }
}
