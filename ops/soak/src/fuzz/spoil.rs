//! Ways to spoil bytes.

use rand::RngExt;
use rand::rngs::SmallRng;

/// Numbers that break arithmetic on lengths and offsets.
const NUMBERS: [u32; 8] =
    [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 65_535, 65_537, 4 * 1024 * 1024 + 1];
/// Bytes of a frame made of nothing but chance.
const RANDOM_BYTES_MAX: usize = 512;
/// Changes to one vector.
const CHANGES_MAX: u32 = 6;
/// A spoiled vector grows to at most this.
const SPOILED_BYTES_MAX: usize = 256 * 1024;

/// One of the vectors, spoiled; now and then bytes of chance alone.
pub(crate) fn spoiled(vectors: &[Vec<u8>], rng: &mut SmallRng) -> Vec<u8> {
    if vectors.is_empty() || rng.random_ratio(1, 16) {
        let mut bytes = vec![0; rng.random_range(0..=RANDOM_BYTES_MAX)];
        rng.fill(&mut bytes[..]);
        return bytes;
    }
    let mut bytes = vectors[rng.random_range(0..vectors.len())].clone();
    for _ in 0..rng.random_range(0..=CHANGES_MAX) {
        let other = &vectors[rng.random_range(0..vectors.len())];
        change(&mut bytes, other, rng);
    }
    bytes.truncate(SPOILED_BYTES_MAX);
    if rng.random() {
        mend(&mut bytes);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], rng: &mut SmallRng) {
    if bytes.is_empty() {
        bytes.extend_from_slice(other);
        return;
    }
    let at = rng.random_range(0..bytes.len());
    match rng.random_range(0..7) {
        0 => bytes[at] ^= 1 << rng.random_range(0..8),
        1 => bytes[at] = rng.random(),
        2 => {
            let number = NUMBERS[rng.random_range(0..NUMBERS.len())].to_le_bytes();
            let end = (at + number.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        3 => bytes.truncate(at),
        4 => {
            let part = part(bytes, rng).to_vec();
            bytes.splice(at..at, part);
        }
        5 => {
            let part = part(other, rng).to_vec();
            let end = (at + part.len()).min(bytes.len());
            bytes.splice(at..end, part);
        }
        _ => {
            let end = rng.random_range(at..=bytes.len());
            bytes.drain(at..end);
        }
    }
}

fn part<'a>(bytes: &'a [u8], rng: &mut SmallRng) -> &'a [u8] {
    let start = rng.random_range(0..=bytes.len());
    let end = rng.random_range(start..=bytes.len());
    &bytes[start..end]
}

/// Puts the right checksum into what begins like a segment, so that what follows is looked at.
fn mend(bytes: &mut [u8]) {
    if bytes.len() > 8 && bytes.starts_with(b"DMS1") {
        let crc = crc32fast::hash(&bytes[8..]).to_le_bytes();
        bytes[4..8].copy_from_slice(&crc);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_seed_spoils_the_same_way_twice() {
        let vectors = [b"DMS1 a vector".to_vec(), b"another one".to_vec()];
        let spoil = |seed| {
            let mut rng = SmallRng::seed_from_u64(seed);
            (0..200).map(|_| spoiled(&vectors, &mut rng)).collect::<Vec<_>>()
        };

        assert_eq!(spoil(7), spoil(7));
        assert_ne!(spoil(7), spoil(8));
        let distinct: std::collections::BTreeSet<_> = spoil(7).into_iter().collect();
        assert!(distinct.len() > 100);
    }
}
