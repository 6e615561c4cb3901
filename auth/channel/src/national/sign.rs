//! Signing handshakes with an SM2 key.
//!
//! The nonce of a signature comes from the key and the message by RFC 6979 with SM3, so no lack
//! of randomness can give the key away.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::KeyProvider;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use sm2::dsa::signature::Signer as _;
use sm2::pkcs8::{DecodePrivateKey, EncodePublicKey};
use sm2::{NonZeroScalar, Scalar, SecretKey, dsa};

use super::SCHEME;
use super::verify::HANDSHAKE_IDENTITY;

/// Reads private keys of SM2, in PKCS#8 or SEC1.
#[derive(Debug)]
pub(super) struct Sm2Keys;

impl KeyProvider for Sm2Keys {
    fn load_private_key(&self, der: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        let secret = match &der {
            PrivateKeyDer::Pkcs8(der) => SecretKey::from_pkcs8_der(der.secret_pkcs8_der()).ok(),
            PrivateKeyDer::Sec1(der) => SecretKey::from_sec1_der(der.secret_sec1_der()).ok(),
            PrivateKeyDer::Pkcs1(_) | _ => None,
        };
        let key = secret.and_then(|it| dsa::SigningKey::new(HANDSHAKE_IDENTITY, &it).ok());
        let key = key.ok_or_else(|| Error::General("the private key is not of SM2".to_owned()))?;
        Ok(Arc::new(HandshakeKey(Arc::new(Wiped(key)))))
    }
}

/// The library's signing key, which it does not wipe by itself.
struct Wiped(dsa::SigningKey);

impl Drop for Wiped {
    fn drop(&mut self) {
        let worthless = NonZeroScalar::new(Scalar::ONE).into_option();
        let worthless = worthless
            .and_then(|it| dsa::SigningKey::from_nonzero_scalar(HANDSHAKE_IDENTITY, it).ok());
        if let Some(worthless) = worthless {
            self.0 = worthless;
        }
        // Somebody might look: without this the write above may be left out.
        std::hint::black_box(&mut self.0);
    }
}

#[derive(Clone)]
struct HandshakeKey(Arc<Wiped>);

impl fmt::Debug for HandshakeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandshakeKey(…)")
    }
}

impl SigningKey for HandshakeKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&SCHEME).then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        let public = sm2::PublicKey::from_affine(*self.0.0.verifying_key().as_affine()).ok()?;
        let der = public.to_public_key_der().ok()?;
        Some(SubjectPublicKeyInfoDer::from(der.into_vec()))
    }

    /// 8, the signature half of sm2sig_sm3.
    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::Unknown(8)
    }
}

impl Signer for HandshakeKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature: dsa::Signature = self
            .0
            .0
            .try_sign(message)
            .map_err(|_| Error::General("an SM2 signature could not be made".to_owned()))?;
        Ok(signature.to_der().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SCHEME
    }
}
