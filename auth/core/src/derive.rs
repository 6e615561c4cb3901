//! From a master to the keys of an epoch, a link and a unit, and from an address to its link id.
//!
//! Everything here is HKDF with SHA-256, whatever MAC the epoch selects for its tokens.

use std::fmt;

use hkdf::Hkdf;
use proto::id::{AppId, UnitId};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::mac::Alg;

/// What a token names its link with: the hash of the address it was assigned for.
pub type LinkId = [u8; 16];

/// 32 secret bytes, wiped when dropped.
pub type SecretBytes = Zeroizing<[u8; 32]>;

/// The link id of `host:port` (IPv6 in brackets), as [`proto::address::Address::authority`] gives it.
#[must_use]
pub fn link_id(authority: &str) -> LinkId {
    let mut hash = Sha256::new();
    hash.update(b"dm-link/v1\0");
    hash.update(authority.as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    id
}

/// `K_e`: what auth and gslb hold of an epoch. `Debug` prints nothing of it.
#[derive(Clone)]
pub struct EpochKey(Hkdf<Sha256>);

impl EpochKey {
    /// `HKDF-Extract(salt = R_e, ikm = master)`.
    #[must_use]
    pub fn extract(random: &[u8; 32], master: &[u8; 32]) -> Self {
        Self(Hkdf::new(Some(random), master))
    }

    /// `K_(e,link)`: what one link holds for one app.
    #[must_use]
    pub fn token_key(&self, app: AppId, alg: Alg, epoch: u32, link: &LinkId) -> SecretBytes {
        let app = app.0.to_be_bytes();
        let alg = [alg.code()];
        let epoch = epoch.to_be_bytes();
        self.expand(&[b"dm-tok/v1", &app, &alg, &epoch, link])
    }

    /// What seals resume tickets in a unit.
    #[must_use]
    pub fn resume_key(&self, unit: UnitId) -> SecretBytes {
        self.expand(&[b"dm-resume/v1", &unit.0.to_be_bytes()])
    }

    fn expand(&self, purpose: &[&[u8]]) -> SecretBytes {
        let mut key = Zeroizing::new([0; 32]);
        self.0
            .expand_multi_info(purpose, key.as_mut_slice())
            .expect("32 bytes are fewer than the 255 hashes that HKDF can give");
        key
    }
}

impl fmt::Debug for EpochKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EpochKey(…)")
    }
}

/// Reads 32 bytes from 64 hexadecimal digits; `None` for anything else.
#[must_use]
pub fn from_hex(text: &str) -> Option<SecretBytes> {
    let mut key = Zeroizing::new([0; 32]);
    hex::decode_to_slice(text, key.as_mut_slice()).ok()?;
    Some(key)
}

/// 32 bytes as hexadecimal digits.
#[must_use]
pub fn to_hex(key: &[u8; 32]) -> String {
    hex::encode(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The intermediate values of the protocol page's vector.
    #[test]
    fn derivation_gives_the_printed_values() {
        let master: [u8; 32] = std::array::from_fn(|it| u8::try_from(it).unwrap());
        let random: [u8; 32] = std::array::from_fn(|it| 0xa0 + u8::try_from(it).unwrap());

        let link = link_id("link-07.example:443");
        let (epoch_key, _) = Hkdf::<Sha256>::extract(Some(&random), &master);
        let key = EpochKey::extract(&random, &master).token_key(
            AppId(1),
            Alg::HmacSha256,
            2_975_000,
            &link,
        );

        assert_eq!(hex::encode(link), "ec306b5a6cdbde599c15d5f45e41440b");
        assert_eq!(
            hex::encode(epoch_key),
            "417e7502c38837c356dc6d3f1c84cfac0efea0e929628cb89ce52f74716620ad"
        );
        assert_eq!(
            to_hex(&key),
            "020bb57b93052c3d040613e9dac6af8dcc12cab8a2743a38c30bf94f7ed3db16"
        );
    }

    #[test]
    fn every_input_changes_the_key() {
        let epoch_key = EpochKey::extract(&[1; 32], &[2; 32]);
        let key = |app, alg, epoch, link| *epoch_key.token_key(AppId(app), alg, epoch, &[link; 16]);
        let base = key(1, Alg::HmacSha256, 7, 9);

        assert_ne!(base, key(2, Alg::HmacSha256, 7, 9));
        assert_ne!(base, key(1, Alg::HmacSm3, 7, 9));
        assert_ne!(base, key(1, Alg::HmacSha256, 8, 9));
        assert_ne!(base, key(1, Alg::HmacSha256, 7, 8));
        assert_ne!(*epoch_key.resume_key(UnitId(1)), *epoch_key.resume_key(UnitId(2)));
    }

    #[test]
    fn only_64_digits_are_a_key() {
        assert_eq!(from_hex(&"0a".repeat(32)).as_deref(), Some(&[10; 32]));
        for bad in [String::new(), "0a".repeat(31), "0a".repeat(33), "0g".repeat(32)] {
            assert!(from_hex(&bad).is_none(), "{bad}");
        }
    }
}
