//! Training of dictionaries on slots that were shown.

use bytes::Bytes;
use proto::dictionary::Dictionary;
use proto::encoding::Encoding;
use proto::limits::DICTIONARY_BYTES_MAX;

use super::{Lexicon, compress};

/// Slots that training needs at least, those held out included. With fewer, zstd finds nothing or
/// learns them by heart.
pub const SAMPLES_MIN: usize = 100;
/// Bytes of slots that are learned from at most: zstd needs ten times that in memory.
pub const SAMPLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a dictionary: a viewer of 20 items a slot has them back after 40 slots. Fourteen times
/// as many make a slot 3 % smaller, half as many 1 % larger.
const BYTES_MAX: usize = 8 * 1024;
const _: () = assert!(BYTES_MAX <= DICTIONARY_BYTES_MAX);
/// A tenth of what is learned from, at most: a longer one repeats slots instead of what they share.
const SHARE: usize = 10;
/// zstd makes none below this.
const BYTES_MIN: usize = 1024;
/// Every so-manieth slot is held out.
const HELD_OUT: usize = 5;

/// Bytes of the slots that were held out.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Saving {
    /// How many slots.
    pub slots: usize,
    /// As `.bin` of the house's encoding.
    pub without: usize,
    /// With the dictionary.
    pub with: usize,
}

impl Saving {
    /// Bytes saved, in percent of what they are without.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * (1.0 - self.with as f64 / (self.without.max(1)) as f64)
    }
}

/// A dictionary, and what it is worth.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The dictionary.
    pub dictionary: Dictionary,
    /// On slots that it was not learned from.
    pub saving: Saving,
}

/// Why there is no dictionary.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// Too little to learn from.
    #[error("{slots} slots are too few to learn from: it takes {SAMPLES_MIN} with items")]
    TooFew {
        /// Slots given.
        slots: usize,
    },
    /// Nothing in common, or too little content.
    #[error("the slots have too little in common, or hold too little, to learn from")]
    NothingLearned,
    /// It would not pay.
    #[error("it would save nothing: the slots held out take {} bytes without it, {} with it", .0.without, .0.with)]
    SavesNothing(Saving),
}

/// Trains a dictionary on uncompressed segments ([`proto::segment::Segment::encode`]), and measures
/// it on every fifth of them, which it does not learn from, against `encoding`.
///
/// # Errors
/// [`TrainError`].
pub fn train<S: AsRef<[u8]>>(segments: &[S], encoding: Encoding) -> Result<Trained, TrainError> {
    if segments.len() < SAMPLES_MIN {
        return Err(TrainError::TooFew { slots: segments.len() });
    }
    let is_held_out = |number: usize| number.is_multiple_of(HELD_OUT);
    let numbered = || segments.iter().enumerate();
    let learned: Vec<&[u8]> =
        numbered().filter(|it| !is_held_out(it.0)).map(|it| it.1.as_ref()).collect();
    let bytes: usize = learned.iter().map(|it| it.len()).sum();
    let bytes_max = (bytes / SHARE).clamp(BYTES_MIN, BYTES_MAX);
    let trained = zstd::dict::from_samples(&learned, bytes_max);
    let dictionary = trained.ok().and_then(|it| Dictionary::new(Bytes::from(it)).ok());
    let lexicon = Lexicon::new(dictionary.ok_or(TrainError::NothingLearned)?);

    let mut saving = Saving::default();
    for (_, segment) in numbered().filter(|it| is_held_out(it.0)) {
        saving.slots += 1;
        saving.without += compress(segment.as_ref(), encoding).len();
        saving.with += lexicon.compress(segment.as_ref()).len();
    }
    if saving.with >= saving.without {
        return Err(TrainError::SavesNothing(saving));
    }
    Ok(Trained { dictionary: lexicon.dictionary().clone(), saving })
}
