//! The hashes under the MACs, block by block, so that a key can be two prepared states.

use sm3::Sm3Core;
use sm3::digest::array::Array;
use sm3::digest::block_api::UpdateCore;
use sm3::digest::common::hazmat::SerializableState;
use zeroize::Zeroizing;

use super::MAC_BYTES;

/// A state between two blocks of `BLOCK` bytes; wiped when dropped.
pub(super) trait Hash<const BLOCK: usize>: Clone {
    /// Before the first block.
    fn start() -> Self;

    /// Goes on by whole blocks.
    fn absorb(&mut self, blocks: &[[u8; BLOCK]]);

    /// The first bytes of the state, as the hash puts them out.
    fn output(&self) -> [u8; MAC_BYTES];
}

/// SHA-256 (FIPS 180-4, start value of 5.3.3).
#[derive(Clone)]
pub(super) struct Sha256(Zeroizing<[u32; 8]>);

impl Hash<64> for Sha256 {
    fn start() -> Self {
        Self(Zeroizing::new([
            0x6a09_e667,
            0xbb67_ae85,
            0x3c6e_f372,
            0xa54f_f53a,
            0x510e_527f,
            0x9b05_688c,
            0x1f83_d9ab,
            0x5be0_cd19,
        ]))
    }

    #[inline]
    fn absorb(&mut self, blocks: &[[u8; 64]]) {
        sha2::block_api::compress256(&mut self.0, blocks);
    }

    #[inline]
    fn output(&self) -> [u8; MAC_BYTES] {
        let mut bytes = [0; MAC_BYTES];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(self.0.iter()) {
            *bytes = word.to_be_bytes();
        }
        bytes
    }
}

/// SHA-512/256 (FIPS 180-4, start value of 5.3.6.2).
#[derive(Clone)]
pub(super) struct Sha512_256(Zeroizing<[u64; 8]>);

impl Hash<128> for Sha512_256 {
    fn start() -> Self {
        Self(Zeroizing::new([
            0x2231_2194_fc2b_f72c,
            0x9f55_5fa3_c84c_64c2,
            0x2393_b86b_6f53_b151,
            0x9638_7719_5940_eabd,
            0x9628_3ee2_a88e_ffe3,
            0xbe5e_1e25_5386_3992,
            0x2b01_99fc_2c85_b8aa,
            0x0eb7_2ddc_81c5_2ca2,
        ]))
    }

    #[inline]
    fn absorb(&mut self, blocks: &[[u8; 128]]) {
        sha2::block_api::compress512(&mut self.0, blocks);
    }

    #[inline]
    fn output(&self) -> [u8; MAC_BYTES] {
        let mut bytes = [0; MAC_BYTES];
        for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(self.0.iter()) {
            *bytes = word.to_be_bytes();
        }
        bytes
    }
}

/// SM3 (GB/T 32905).
#[derive(Clone)]
pub(super) struct Sm3(Sm3Core);

impl Hash<64> for Sm3 {
    fn start() -> Self {
        Self(Sm3Core::default())
    }

    #[inline]
    fn absorb(&mut self, blocks: &[[u8; 64]]) {
        self.0.update_blocks(Array::cast_slice_from_core(blocks));
    }

    #[inline]
    fn output(&self) -> [u8; MAC_BYTES] {
        // The words of the state come first, little-endian; SM3 puts them out big-endian.
        let state = self.0.serialize();
        let mut bytes = [0; MAC_BYTES];
        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(state.as_chunks::<4>().0) {
            *bytes = u32::from_le_bytes(*word).to_be_bytes();
        }
        bytes
    }
}
