//! Compression of what is stored, and how much work each encoding is given.
//!
//! The levels were chosen on slots of 10, 20 and 100 recorded comments, with each format's own
//! library in C.

use std::fmt;
use std::sync::Arc;

use brotli::BrotliCompress;
use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor as Deflater};
use proto::dictionary::{Dictionary, DictionaryInfo};
use proto::encoding::{BR_WINDOW_LOG, Encoding};
use zstd::bulk::Compressor;
use zstd::dict::EncoderDictionary;

/// gzip's level: 4 is a hundredth larger and takes a sixth less time, 9 saves nothing.
const GZIP_LEVEL: i32 = 6;
/// 4 is 4 % larger, 7 is 1 % smaller and takes up to twice the time; 9 takes twenty times.
const BR_QUALITY: i32 = 5;
/// 3 is up to 7 % larger, 9 is 1 % smaller and takes twice to three times the time. Without a
/// dictionary gzip as libdeflate writes it is smaller and quicker.
const ZSTD_LEVEL: i32 = 6;
/// 3 is 7 % larger, 9 is 2 % smaller and takes about twice the time.
const LEXICON_LEVEL: i32 = 6;

/// Compresses, the same bytes each time.
#[must_use]
pub fn compress(bytes: &[u8], encoding: Encoding) -> Bytes {
    match encoding {
        Encoding::Gzip => gzip(bytes),
        Encoding::Br => br(bytes),
        Encoding::Zstd => zstd(Compressor::new(ZSTD_LEVEL), bytes),
    }
}

/// By libdeflate, which has the whole file before it: half of zlib's time and 3 % fewer bytes.
fn gzip(bytes: &[u8]) -> Bytes {
    let level = CompressionLvl::new(GZIP_LEVEL).expect("levels go from 0 to 12");
    let mut deflater = Deflater::new(level);
    let mut into = vec![0; deflater.gzip_compress_bound(bytes.len())];
    let written = deflater.gzip_compress(bytes, &mut into);
    into.truncate(written.expect("the bound is enough for any bytes"));
    into.into()
}

fn br(mut bytes: &[u8]) -> Bytes {
    let params = BrotliEncoderParams {
        quality: BR_QUALITY,
        lgwin: BR_WINDOW_LOG.into(),
        size_hint: bytes.len(),
        ..BrotliEncoderParams::default()
    };
    let mut into = Vec::with_capacity(bytes.len() / 4);
    let written = BrotliCompress(&mut bytes, &mut into, &params);
    written.expect("reading from memory and writing into a Vec does not fail");
    into.into()
}

fn zstd(compressor: std::io::Result<Compressor<'_>>, bytes: &[u8]) -> Bytes {
    let compressed = compressor.and_then(|mut it| it.compress(bytes));
    compressed.expect("zstd fails only without memory").into()
}

/// A dictionary, ready to write with. Clones share it.
#[derive(Clone)]
pub struct Lexicon {
    dictionary: Dictionary,
    encoder: Arc<EncoderDictionary<'static>>,
}

impl Lexicon {
    /// Makes it ready.
    #[must_use]
    pub fn new(dictionary: Dictionary) -> Self {
        let encoder = Arc::new(EncoderDictionary::copy(dictionary.bytes(), LEXICON_LEVEL));
        Self { dictionary, encoder }
    }

    /// The dictionary.
    #[must_use]
    pub const fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// What a head says of it.
    #[must_use]
    pub fn info(&self) -> DictionaryInfo {
        self.dictionary.info()
    }

    /// zstd with the dictionary, the same bytes each time; [`Dictionary::expand`] undoes it.
    #[must_use]
    pub fn compress(&self, bytes: &[u8]) -> Bytes {
        zstd(Compressor::with_prepared_dictionary(&self.encoder), bytes)
    }
}

impl fmt::Debug for Lexicon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lexicon").field(&self.dictionary).finish()
    }
}
