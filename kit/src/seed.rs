//! Where randomness comes from: the operating system, once, at the root.
//!
//! The root calls [`fresh`] (or takes a seed from the command line, to repeat a run) and derives
//! one seed for each part by name. Parts build their generators from that, so a run can be
//! repeated. Keys and nonces are not derived from seeds: they come from [`random_bytes`].

use std::io;

use rand::TryRng;
use rand::rngs::SysRng;

/// Bytes from the operating system, fit for keys.
///
/// # Errors
/// When the operating system gives none; then nothing secret may be made.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A seed nobody can guess, for the root.
///
/// # Errors
/// As [`random_bytes`].
pub fn fresh() -> io::Result<u64> {
    random_bytes().map(u64::from_le_bytes)
}

/// The seed of the part `name`: the same for the same root and name, in every release.
#[must_use]
pub fn derive(root: u64, name: &str) -> u64 {
    name.bytes().fold(mix(root), |seed, byte| mix(seed ^ u64::from(byte)))
}

/// SplitMix64's step: every bit of the input changes about half of the output's.
const fn mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_one_root_differ_and_repeat() {
        assert_eq!(derive(7, "link"), derive(7, "link"));
        assert_ne!(derive(7, "link"), derive(7, "gslb"));
        assert_ne!(derive(7, "link"), derive(8, "link"));
        assert_ne!(derive(7, "ab"), derive(7, "ba"));
        assert_ne!(derive(7, ""), 7);
    }

    #[test]
    fn a_derived_seed_never_changes_between_releases() {
        assert_eq!(derive(0, ""), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn the_system_does_not_repeat_itself() {
        assert_ne!(random_bytes::<32>().unwrap(), random_bytes::<32>().unwrap());
        assert_ne!(fresh().unwrap(), fresh().unwrap());
    }
}
