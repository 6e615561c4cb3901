//! The hashes under the MACs, block by block, so that a key can be two prepared states.

use sm3::Sm3Core;
use sm3::digest::array::Array;
use sm3::digest::block_api::UpdateCore;
use sm3::digest::common::hazmat::SerializableState;
use zeroize::Zeroize;

use super::Digest;

/// A state between two blocks of `BLOCK` bytes.
pub(super) trait Hash<const BLOCK: usize>: Clone + Zeroize {
    /// Before the first block.
    fn start() -> Self;

    /// Goes on by whole blocks.
    fn absorb(&mut self, blocks: &[[u8; BLOCK]]);

    /// The first words of the state: the hash.
    fn digest(&self) -> Digest;
}

/// SHA-256 (FIPS 180-4, start value of 5.3.3).
#[derive(Clone, Zeroize)]
pub(super) struct Sha256([u32; 8]);

impl Hash<64> for Sha256 {
    fn start() -> Self {
        Self([
            0x6a09_e667,
            0xbb67_ae85,
            0x3c6e_f372,
            0xa54f_f53a,
            0x510e_527f,
            0x9b05_688c,
            0x1f83_d9ab,
            0x5be0_cd19,
        ])
    }

    #[inline(always)]
    fn absorb(&mut self, blocks: &[[u8; 64]]) {
        sha2::block_api::compress256(&mut self.0, blocks);
    }

    #[inline(always)]
    fn digest(&self) -> Digest {
        self.0
    }
}

/// SHA-512/256 (FIPS 180-4, start value of 5.3.6.2).
#[derive(Clone, Zeroize)]
pub(super) struct Sha512_256([u64; 8]);

impl Hash<128> for Sha512_256 {
    fn start() -> Self {
        Self([
            0x2231_2194_fc2b_f72c,
            0x9f55_5fa3_c84c_64c2,
            0x2393_b86b_6f53_b151,
            0x9638_7719_5940_eabd,
            0x9628_3ee2_a88e_ffe3,
            0xbe5e_1e25_5386_3992,
            0x2b01_99fc_2c85_b8aa,
            0x0eb7_2ddc_81c5_2ca2,
        ])
    }

    #[inline(always)]
    fn absorb(&mut self, blocks: &[[u8; 128]]) {
        sha2::block_api::compress512(&mut self.0, blocks);
    }

    #[inline(always)]
    fn digest(&self) -> Digest {
        #[expect(clippy::cast_possible_truncation, reason = "the upper half is the word before")]
        let half = |at: usize| (self.0[at / 2] >> (32 * (1 - at % 2))) as u32;
        std::array::from_fn(half)
    }
}

/// SM3 (GB/T 32905).
#[derive(Clone)]
pub(super) struct Sm3(Sm3Core);

impl Zeroize for Sm3 {
    fn zeroize(&mut self) {
        // What is replaced wipes itself.
        self.0 = Sm3Core::default();
    }
}

impl Hash<64> for Sm3 {
    fn start() -> Self {
        Self(Sm3Core::default())
    }

    #[inline(always)]
    fn absorb(&mut self, blocks: &[[u8; 64]]) {
        self.0.update_blocks(Array::cast_slice_from_core(blocks));
    }

    #[inline(always)]
    fn digest(&self) -> Digest {
        // The words of the state come first, little-endian.
        let state = self.0.serialize();
        let words = state.as_chunks().0;
        std::array::from_fn(|at| u32::from_le_bytes(words[at]))
    }
}
