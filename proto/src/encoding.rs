//! How stored files are compressed, and how a reader undoes it.
//!
//! A house writes all its slots with one [`Encoding`] and never asks a reader for another, so that
//! a file has one name and one content in every cache. Over HTTP its `Content-Encoding` is told;
//! whoever has only the bytes knows it by how they begin.

use std::io::Read;

use brotli_decompressor::BrotliDecoderParameter;
use brotli_decompressor::Decompressor as BrotliDecoder;
use flate2::bufread::GzDecoder;
use serde::{Deserialize, Serialize};
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::decode::DecodeError;
use crate::limits::SEGMENT_BYTES_MAX;

/// Largest window that is accepted of zstd, as a power of two: as large as what may come out.
const ZSTD_WINDOW_LOG_MAX: u32 = 22;
const _: () = assert!(1 << ZSTD_WINDOW_LOG_MAX == SEGMENT_BYTES_MAX);
/// Bytes that the brotli decoder reads at once.
const BROTLI_BUFFER_BYTES: usize = 4096;

/// The window that a br stream of ours says, as a power of two: [`Encoding::of`] knows it by that.
pub const BR_WINDOW_LOG: u8 = 22;
/// How the first byte of such a stream ends (RFC 7932, section 9.1).
const BR_START: u8 = 0b1011;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// RFC 1952. Every reader of HTTP understands it.
    #[default]
    Gzip,
    /// RFC 7932. Every browser understands it over HTTPS, few other readers do.
    Br,
    /// RFC 8878. Browsers of 2024 and later understand it over HTTPS, Safari of late 2025.
    Zstd,
}

impl Encoding {
    /// All.
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Br, Self::Zstd];

    /// The word in `Content-Encoding`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Br => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Of the word in `Content-Encoding`, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name))
    }

    /// By how the bytes of a file of ours begin; `None` if no encoding begins so. br has no mark,
    /// but ours begins with [`BR_WINDOW_LOG`], and neither gzip nor zstd begins like that.
    #[must_use]
    pub const fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [first, ..] if *first & 0x0f == BR_START => Some(Self::Br),
            _ => None,
        }
    }

    /// Undoes the compression, up to [`SEGMENT_BYTES_MAX`]. What would be more is noticed before
    /// more than that is kept; the decoders themselves take up to four times that.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn expand(self, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
        match self {
            Self::Gzip => read(GzDecoder::new(bytes)),
            Self::Br => {
                let mut decoder = BrotliDecoder::new(bytes, BROTLI_BUFFER_BYTES);
                decoder.set_parameter(BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
                read(decoder)
            }
            Self::Zstd => {
                read_zstd(ZstdDecoder::with_buffer(bytes).map_err(|_| DecodeError::Malformed)?)
            }
        }
    }
}

/// Undoes the compression of a file of ours, whichever it has, up to [`SEGMENT_BYTES_MAX`].
///
/// # Errors
/// [`DecodeError`].
pub fn expand(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    Encoding::of(bytes).ok_or(DecodeError::Malformed)?.expand(bytes)
}

/// Reads what a zstd decoder gives.
pub(crate) fn read_zstd(mut decoder: ZstdDecoder<'_, &[u8]>) -> Result<Vec<u8>, DecodeError> {
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|_| DecodeError::Malformed)?;
    read(decoder)
}

fn read(decoder: impl Read) -> Result<Vec<u8>, DecodeError> {
    let mut expanded = Vec::new();
    match decoder.take(SEGMENT_BYTES_MAX as u64 + 1).read_to_end(&mut expanded) {
        Ok(_) if expanded.len() > SEGMENT_BYTES_MAX => {
            Err(DecodeError::TooLarge { bytes: expanded.len(), max: SEGMENT_BYTES_MAX })
        }
        Ok(_) => Ok(expanded),
        Err(_) => Err(DecodeError::Malformed),
    }
}
