//! Keys on the SM2 curve (GB/T 32918): how they are drawn, and which points are let in.

use sm2::{PublicKey, SecretKey};
use sm3::{Digest, Sm3};
use zeroize::Zeroizing;

/// An uncompressed point: the tag, then both coordinates.
const POINT_BYTES: usize = 65;
/// The tag of an uncompressed point.
const UNCOMPRESSED: u8 = 4;
/// One draw misses the range with a chance of 2^-32; all of them never.
const DRAWS_MAX: u8 = 8;

/// The secret key that belongs to a seed: `SM3(seed || n)`, the first that lies in 1..order.
///
/// `None` for no seed that anybody will meet.
pub(super) fn secret_from_seed(seed: &[u8; 32]) -> Option<SecretKey> {
    (0..DRAWS_MAX).find_map(|draw_no| {
        let mut hash = Sm3::new();
        hash.update(seed);
        hash.update([draw_no]);
        let candidate = Zeroizing::new(<[u8; 32]>::from(hash.finalize()));
        SecretKey::from_slice(candidate.as_slice()).ok()
    })
}

/// Reads a point as TLS and certificates carry it: uncompressed, on the curve, not the identity.
///
/// RFC 8998 knows only this form; compressed and hybrid ones are refused.
pub(super) fn public_from_point(bytes: &[u8]) -> Option<PublicKey> {
    if bytes.len() != POINT_BYTES || bytes.first() != Some(&UNCOMPRESSED) {
        return None;
    }
    PublicKey::from_sec1_bytes(bytes).ok()
}
