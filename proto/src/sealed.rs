//! A segment of a sealed room, as it lies in a store and on the CDN.
//!
//! ```text
//! "DMR1" | kid u8 | nonce[12] | AES-128-GCM(compressed segment), its tag of 16 bytes last
//! key             = the room's key of the segment's gen under the master `kid`
//! associated data = "DMR1" | kid u8 | path below the base, such as dm/1/room-1/3/full/17.bin
//! ```
//!
//! The path is part of what is proven, so a file cannot be passed off as another slot's, tier's,
//! gen's or room's. Compression comes before, since sealed bytes do not compress: what the opened
//! bytes are compressed with shows in how they begin ([`crate::encoding::Encoding::of`]), and the
//! file has no `Content-Encoding`. This module is the layout alone; whoever has a key has the cipher.

use crate::decode::DecodeError;

/// How a sealed file begins; no plain one does.
pub const MAGIC: &[u8; 4] = b"DMR1";
/// Bytes of a nonce (NIST SP 800-38D, 96 bits).
pub const NONCE_BYTES: usize = 12;
/// Bytes of the tag behind the sealed bytes.
pub const TAG_BYTES: usize = 16;
/// Bytes that a file has more than what was sealed.
pub const EXTRA_BYTES: usize = MAGIC.len() + 1 + NONCE_BYTES + TAG_BYTES;

/// The parts of a sealed file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SealedFile<'a> {
    /// The master whose key sealed it.
    pub kid: u8,
    /// Drawn for this file.
    pub nonce: [u8; NONCE_BYTES],
    /// Sealed bytes and tag.
    pub closed: &'a [u8],
}

/// Whether a file is sealed, whatever is in it.
#[must_use]
pub fn is_sealed(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

/// What is proven beside the sealed bytes.
#[must_use]
pub fn associated(kid: u8, path: &str) -> Vec<u8> {
    [MAGIC.as_slice(), &[kid], path.as_bytes()].concat()
}

impl<'a> SealedFile<'a> {
    /// Takes a file apart.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for what is not sealed, or too short to be.
    pub fn parse(file: &'a [u8]) -> Result<Self, DecodeError> {
        let rest = file.strip_prefix(MAGIC).ok_or(DecodeError::Malformed)?;
        let (&[kid], rest) = rest.split_first_chunk().ok_or(DecodeError::Malformed)?;
        let (&nonce, closed) = rest.split_first_chunk().ok_or(DecodeError::Malformed)?;
        if closed.len() < TAG_BYTES {
            return Err(DecodeError::Malformed);
        }
        Ok(Self { kid, nonce, closed })
    }

    /// Puts a file together.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        [MAGIC.as_slice(), &[self.kid], &self.nonce, self.closed].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_apart_as_it_was_put_together() {
        let file = SealedFile { kid: 7, nonce: [9; NONCE_BYTES], closed: &[1; TAG_BYTES + 3] };

        let bytes = file.write();

        assert_eq!(bytes.len(), EXTRA_BYTES + 3);
        assert!(is_sealed(&bytes));
        assert_eq!(SealedFile::parse(&bytes), Ok(file));
    }

    #[test]
    fn what_is_too_short_or_not_sealed_is_refused() {
        let bytes = SealedFile { kid: 0, nonce: [0; NONCE_BYTES], closed: &[0; TAG_BYTES] }.write();

        for length in 0..bytes.len() {
            assert_eq!(SealedFile::parse(&bytes[..length]), Err(DecodeError::Malformed));
        }
        assert_eq!(SealedFile::parse(&[0x1f; 64]), Err(DecodeError::Malformed));
    }
}
