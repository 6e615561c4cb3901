//! Dictionaries: what slots have in common, so that a file need not say it again.
//!
//! A dictionary lies on the CDN under the first bytes of its SHA-256 and never changes. A reader
//! that has it asks for `.zbin` files instead of `.bin`: zstd frames (RFC 8878) that name the
//! dictionary by the number inside both.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zstd::dict::DecoderDictionary;
use zstd::stream::read::Decoder;

use crate::decode::DecodeError;
use crate::encoding::read_zstd;
use crate::limits::DICTIONARY_BYTES_MAX;

/// Bytes of an id.
const ID_BYTES: usize = 8;

/// Path of a dictionary below a segment base.
#[must_use]
pub fn dictionary_path(id: DictionaryId) -> String {
    format!("dm/1/dict/{id}")
}

/// Names a dictionary by its content: the first 8 bytes of its SHA-256, 16 hex digits as text.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DictionaryId([u8; ID_BYTES]);

impl DictionaryId {
    /// Of the bytes of a dictionary.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&Sha256::digest(bytes)[..ID_BYTES]);
        Self(id)
    }
}

impl fmt::Display for DictionaryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl FromStr for DictionaryId {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        let is_id = text.len() == 2 * ID_BYTES && text.bytes().all(is_digit);
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_id);
        let number = number.ok_or(DecodeError::Value { field: "dictionary id" })?;
        Ok(Self(number.to_be_bytes()))
    }
}

impl TryFrom<String> for DictionaryId {
    type Error = DecodeError;

    fn try_from(text: String) -> Result<Self, DecodeError> {
        text.parse()
    }
}

impl From<DictionaryId> for String {
    fn from(id: DictionaryId) -> Self {
        id.to_string()
    }
}

/// What a head says of the dictionary of its room's `.zbin` files.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct DictionaryInfo {
    /// Which.
    pub id: DictionaryId,
    /// How long it is; at most [`DICTIONARY_BYTES_MAX`].
    pub bytes: u32,
}

/// A dictionary, ready to read with. Clones share it.
#[derive(Clone)]
pub struct Dictionary {
    id: DictionaryId,
    bytes: Bytes,
    decoder: Arc<DecoderDictionary<'static>>,
}

impl Dictionary {
    /// Takes the bytes of a dictionary.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`]; [`DecodeError::Malformed`] for what is no zstd dictionary.
    pub fn new(bytes: Bytes) -> Result<Self, DecodeError> {
        if bytes.len() > DICTIONARY_BYTES_MAX {
            let max = DICTIONARY_BYTES_MAX;
            return Err(DecodeError::TooLarge { bytes: bytes.len(), max });
        }
        let decoder = DecoderDictionary::try_copy(&bytes).map_err(|_| DecodeError::Malformed)?;
        // What does not begin as a dictionary does is taken for raw content, which no frame names.
        if decoder.as_ddict().get_dict_id().is_none() {
            return Err(DecodeError::Malformed);
        }
        Ok(Self { id: DictionaryId::of(&bytes), bytes, decoder: Arc::new(decoder) })
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> DictionaryId {
        self.id
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What a head says of it.
    #[must_use]
    pub fn info(&self) -> DictionaryInfo {
        DictionaryInfo { id: self.id, bytes: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX) }
    }

    /// Undoes the compression of a `.zbin` file, up to [`crate::limits::SEGMENT_BYTES_MAX`].
    ///
    /// # Errors
    /// [`DecodeError`]; also for a file that was written with another dictionary.
    pub fn expand(&self, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let decoder = Decoder::with_prepared_dictionary(bytes, &self.decoder);
        read_zstd(decoder.map_err(|_| DecodeError::Malformed)?)
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({}, {} bytes)", self.id, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_in_no_other_spelling() {
        let id = DictionaryId::of(b"abc");

        // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
        assert_eq!(id.to_string(), "ba7816bf8f01cfea");
        assert_eq!("ba7816bf8f01cfea".parse(), Ok(id));
        for other in
            ["", "ba7816bf8f01cfe", "ba7816bf8f01cfeaa", "BA7816BF8F01CFEA", "+a7816bf8f01cfea"]
        {
            assert!(other.parse::<DictionaryId>().is_err(), "{other}");
        }
    }

    #[test]
    fn what_is_no_dictionary_is_refused() {
        let long = vec![0; DICTIONARY_BYTES_MAX + 1];

        let too_long = Dictionary::new(long.into()).map(|it| it.id());
        let other = Dictionary::new(Bytes::from_static(b"other")).map(|it| it.id());
        // The mark of a dictionary (RFC 8878, section 5), and nothing behind it.
        let mark = Bytes::from_static(&[0x37, 0xa4, 0x30, 0xec]);
        let cut = Dictionary::new(mark).map(|it| it.id());

        assert!(matches!(too_long, Err(DecodeError::TooLarge { .. })));
        assert_eq!([other, cut], [Err(DecodeError::Malformed); 2]);
    }
}
