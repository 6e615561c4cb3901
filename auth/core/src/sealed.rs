//! Keys on disk, sealed: what a stolen disk or a backup shows is useless without the secret.
//!
//! ```text
//! "dms1" | nonce[12] | AES-256-GCM(plain)                       what is written
//! key  = HKDF-SHA-256(salt = "dm-sealed/v1", ikm = secret, info = purpose, 32)
//! associated data = "dms1" | purpose
//! ```
//!
//! A purpose is a constant of the code, such as `auth masters`; what was sealed for one does not
//! open for another, whoever renames a file. One secret may seal 2³² times before two random
//! nonces are likely enough to meet that NIST SP 800-38D forbids it; files are sealed a few times
//! a day.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::secret::Secret;

/// Bytes of the nonce that sealing takes.
pub const NONCE_BYTES: usize = 12;
/// Bytes of the shortest secret that is not worth guessing; who reads a configuration checks it.
pub const SECRET_BYTES_MIN: usize = 32;

const MAGIC: &[u8; 4] = b"dms1";
const SALT: &[u8] = b"dm-sealed/v1";

/// Why something does not open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SealError {
    /// It does not begin as sealed bytes do, or is cut off.
    #[error("it is not sealed")]
    NotSealed,
    /// Sealed with another secret or for another purpose, or changed.
    #[error("the seal does not open: another secret sealed it, or it was changed")]
    Closed,
}

/// Seals `plain`. `nonce` must be random: it may never come twice with one secret.
#[must_use]
pub fn seal(purpose: &str, secret: &Secret, plain: &[u8], nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
    let associated = associated(purpose);
    let payload = Payload { msg: plain, aad: &associated };
    let closed = cipher(purpose, secret)
        .encrypt(&Nonce::from(nonce), payload)
        .expect("a file in memory is shorter than the 64 GiB that GCM seals");
    [MAGIC.as_slice(), &nonce, &closed].concat()
}

/// Opens what [`seal`] gave for the same purpose and secret.
pub fn open(purpose: &str, secret: &Secret, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(SealError::NotSealed)?;
    let (nonce, closed) = rest.split_first_chunk().ok_or(SealError::NotSealed)?;
    let nonce: &[u8; NONCE_BYTES] = nonce;
    let associated = associated(purpose);
    let payload = Payload { msg: closed, aad: &associated };
    let plain = cipher(purpose, secret).decrypt(&Nonce::from(*nonce), payload);
    plain.map(Zeroizing::new).map_err(|_| SealError::Closed)
}

fn cipher(purpose: &str, secret: &Secret) -> Aes256Gcm {
    let mut key = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(SALT), secret.expose().as_bytes())
        .expand(purpose.as_bytes(), key.as_mut_slice())
        .expect("32 bytes are fewer than the 255 hashes that HKDF can give");
    Aes256Gcm::new((&*key).into())
}

fn associated(purpose: &str) -> Vec<u8> {
    [MAGIC, purpose.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONCE: [u8; NONCE_BYTES] = [7; NONCE_BYTES];

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    /// So that files of one release open in the next. The value is this code's own, checked
    /// against Python's `cryptography` once.
    #[test]
    fn the_layout_never_changes() {
        let sealed = seal("auth masters", &secret("a secret"), b"plain", NONCE);

        assert_eq!(hex::encode(&sealed), VECTOR);
    }

    const VECTOR: &str =
        "646d73310707070707070707070707074271fe4d4b129ba52987234274589064752a5bd808";

    #[test]
    fn the_same_secret_and_purpose_open() {
        let sealed = seal("a", &secret("s"), b"plain", NONCE);

        assert_eq!(open("a", &secret("s"), &sealed).unwrap().as_slice(), b"plain");
        assert_eq!(open("b", &secret("s"), &sealed), Err(SealError::Closed));
        assert_eq!(open("a", &secret("t"), &sealed), Err(SealError::Closed));
    }

    #[test]
    fn what_was_never_sealed_says_so() {
        assert_eq!(open("a", &secret("s"), b""), Err(SealError::NotSealed));
        assert_eq!(open("a", &secret("s"), br#"{"masters": []}"#), Err(SealError::NotSealed));
        assert_eq!(open("a", &secret("s"), b"dms1 short"), Err(SealError::NotSealed));
    }

    #[test]
    fn nothing_of_the_plain_text_is_in_the_sealed_bytes() {
        let plain = "0123456789abcdef".repeat(4);

        let sealed = seal("a", &secret("s"), plain.as_bytes(), NONCE);

        assert_eq!(sealed.len(), 4 + NONCE_BYTES + plain.len() + 16);
        assert!(!sealed.windows(8).any(|it| plain.as_bytes().windows(8).any(|part| part == it)));
    }

    proptest! {
        #[test]
        fn any_changed_or_missing_byte_closes_it(
            plain in proptest::collection::vec(any::<u8>(), 0..64),
            at: prop::sample::Index,
            flip in 1_u8..,
        ) {
            let sealed = seal("a", &secret("s"), &plain, NONCE);
            let mut changed = sealed.clone();
            changed[at.index(sealed.len())] ^= flip;

            prop_assert_eq!(open("a", &secret("s"), &sealed).unwrap().to_vec(), plain);
            prop_assert!(open("a", &secret("s"), &changed).is_err());
            prop_assert!(open("a", &secret("s"), &sealed[..at.index(sealed.len())]).is_err());
        }
    }
}
