//! Keys that a client knows beforehand, on top of the authorities it believes.
//!
//! A pin names the public key of a server's own certificate, not of an authority: whoever gets an
//! authority to sign for another key is still refused. The chain is verified as without pins, so a
//! certificate of the right key must also be in time and for the right name. Two pins let a key be
//! changed: clients know the next key before servers use it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::certificate::certificates;
use crate::provider::TlsError;

/// How pins begin as text.
const PREFIX: &str = "sha256/";

/// SHA-256 of a public key as certificates carry it (SubjectPublicKeyInfo as DER; RFC 7469,
/// section 2.4). As text, `sha256/` and 44 characters of base64.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pin(pub [u8; 32]);

/// The keys that a client believes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pins {
    /// The key in use.
    pub current: Pin,
    /// The key that will be used next.
    pub next: Option<Pin>,
}

/// A text that is no pin.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a pin is written {PREFIX} and 32 bytes in base64")]
pub struct NoPin;

/// The server's chain is good, and its key is none of the pinned ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the server's key {found} is not a pinned one")]
pub struct Unpinned {
    /// The key that it has.
    pub found: Pin,
}

impl Pin {
    /// The key of the first certificate of a PEM text.
    ///
    /// # Errors
    /// [`TlsError`], when there is none.
    pub fn of_pem(chain_pem: &str) -> Result<Self, TlsError> {
        let chain = certificates("the certificate chain", chain_pem)?;
        Ok(Self::of(&chain[0])?)
    }

    fn of(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        Ok(Self(Sha256::digest(parsed.subject_public_key_info()).into()))
    }
}

impl Unpinned {
    /// What a failed connection says about pins.
    #[must_use]
    pub fn of(error: &std::io::Error) -> Option<Self> {
        let Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other)))) =
            error.get_ref()?.downcast_ref()
        else {
            return None;
        };
        other.downcast_ref().copied()
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl FromStr for Pin {
    type Err = NoPin;

    fn from_str(text: &str) -> Result<Self, NoPin> {
        let encoded = text.strip_prefix(PREFIX).ok_or(NoPin)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| NoPin)?;
        Ok(Self(bytes.try_into().map_err(|_| NoPin)?))
    }
}

/// Verifies the chain, then the key.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) chain: Arc<WebPkiServerVerifier>,
    pub(crate) pins: Pins,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.chain.verify_server_cert(certificate, intermediates, name, ocsp, now)?;
        let found = Pin::of(certificate)?;
        if found == self.pins.current || Some(found) == self.pins.next {
            return Ok(verified);
        }
        Err(CertificateError::Other(OtherError(Arc::new(Unpinned { found }))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
