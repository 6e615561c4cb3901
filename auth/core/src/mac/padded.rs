//! Messages laid out as the hash takes them.

/// Bytes of a block of SHA-256 and SM3.
pub const BLOCK_BYTES: usize = 64;
/// Bytes that padding has at least: one that begins it, and the length.
pub const PADDING_BYTES_MIN: usize = 1 + 8;

/// A message that a hash of 64-byte blocks takes without a copy: behind it lies the padding of an
/// HMAC's inner hash.
#[derive(Clone, Copy, Debug)]
pub struct Padded<'a> {
    pub(super) blocks: &'a [[u8; BLOCK_BYTES]],
    bytes: usize,
}

impl<'a> Padded<'a> {
    /// The first `bytes` of `room`; what was behind them is overwritten.
    ///
    /// # Panics
    /// When the room has no [`PADDING_BYTES_MIN`] behind the message.
    #[inline(always)]
    pub fn new(room: &'a mut [[u8; BLOCK_BYTES]], bytes: usize) -> Self {
        let blocks = (bytes + PADDING_BYTES_MIN).div_ceil(BLOCK_BYTES);
        let room = &mut room[..blocks];
        room.as_flattened_mut()[bytes..].fill(0);
        Self::in_zeros(room, bytes)
    }

    /// The same where there are zeros behind them.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[inline(always)]
    pub(crate) fn in_zeros(room: &'a mut [[u8; BLOCK_BYTES]], bytes: usize) -> Self {
        let blocks = (bytes + PADDING_BYTES_MIN).div_ceil(BLOCK_BYTES);
        let room = &mut room[..blocks];
        let padding = &mut room.as_flattened_mut()[bytes..];
        padding[0] = 0x80;
        if let Some(length) = padding.last_chunk_mut() {
            // The key's block counts, too.
            *length = ((BLOCK_BYTES + bytes) as u64 * 8).to_be_bytes();
        }
        Self { blocks: room, bytes }
    }

    /// The message.
    #[must_use]
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        &self.blocks.as_flattened()[..self.bytes]
    }
}
