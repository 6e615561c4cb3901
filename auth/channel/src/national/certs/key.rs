//! A private key of a certificate.

use std::fmt;

use sm2::SecretKey;
use sm2::pkcs8::{EncodePrivateKey, LineEnding};
use x509_cert::SubjectPublicKeyInfo;
use zeroize::Zeroizing;

use super::{CertsError, bounded};
use crate::national::key::{public_from_point, secret_from_seed};

/// An SM2 private key, wiped on drop.
pub struct Key {
    pub(super) secret: SecretKey,
}

impl Key {
    /// The key that belongs to a seed; the seed is as secret as the key.
    ///
    /// # Errors
    /// For no seed that anybody will meet.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, CertsError> {
        secret_from_seed(seed).map(|secret| Self { secret }).ok_or(CertsError::Key)
    }

    /// Reads PKCS#8 (`PRIVATE KEY`) or SEC1 (`EC PRIVATE KEY`).
    ///
    /// # Errors
    /// When it is not a key of SM2.
    pub fn from_pem(pem: &str) -> Result<Self, CertsError> {
        let pem = bounded("the private key", pem)?;
        SecretKey::from_pem(pem).map(|secret| Self { secret }).map_err(|_| CertsError::Key)
    }

    /// As PKCS#8.
    ///
    /// # Errors
    /// When the library cannot encode it.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, CertsError> {
        self.secret.to_pkcs8_pem(LineEnding::LF).map_err(|_| CertsError::Key)
    }

    pub(super) fn public(&self) -> Result<SubjectPublicKeyInfo, CertsError> {
        SubjectPublicKeyInfo::from_key(&self.secret.public_key()).map_err(|_| CertsError::Key)
    }
}

/// Whether a public key is one of SM2, written as RFC 8998 knows it.
pub(super) fn is_sm2(info: &SubjectPublicKeyInfo) -> bool {
    let point = info.subject_public_key.as_bytes();
    let public = point.and_then(public_from_point);
    let plain = public.and_then(|it| SubjectPublicKeyInfo::from_key(&it).ok());
    plain.is_some_and(|it| it == *info)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
