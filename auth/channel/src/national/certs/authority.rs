//! An authority: its certificate, its key, and what it signs.

use x509_cert::Certificate;
use x509_cert::SubjectPublicKeyInfo;
use x509_cert::der::EncodePem;
use x509_cert::der::pem::LineEnding;
use x509_cert::ext::pkix::BasicConstraints;

use super::build::{Owner, certificate};
use super::key::is_sm2;
use super::names::authority_subject;
use super::{CertsError, Key, Life, Names, Request, document};

/// Signs certificates for servers. Its certificate is what clients trust.
#[derive(Debug)]
pub struct Authority {
    certificate: Certificate,
    key: Key,
}

impl Authority {
    /// Makes a new one that signs itself.
    ///
    /// # Errors
    /// When the name or the life does not fit.
    pub fn create(key: Key, name: &str, life: Life) -> Result<Self, CertsError> {
        let owner = Owner::Authority(authority_subject(name)?);
        let certificate = certificate(owner, key.public()?, life, &key)?;
        Ok(Self { certificate, key })
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it is none of SM2, may not sign, or the two do not belong together.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, CertsError> {
        const WHAT: &str = "the authority's certificate";
        let certificate: Certificate = document(WHAT, certificate_pem)?;
        let body = certificate.tbs_certificate();
        let constraints = body
            .get_extension::<BasicConstraints>()
            .map_err(|source| CertsError::Pem { what: WHAT, source })?;
        let public = body.subject_public_key_info();
        if !is_sm2(public) || !constraints.is_some_and(|(_, it)| it.ca) {
            return Err(CertsError::NotAuthority);
        }
        let key = Key::from_pem(key_pem)?;
        if key.public()? != *public {
            return Err(CertsError::OtherKey);
        }
        Ok(Self { certificate, key })
    }

    /// Its certificate.
    ///
    /// # Errors
    /// When the library cannot encode it.
    pub fn to_pem(&self) -> Result<String, CertsError> {
        Ok(self.certificate.to_pem(LineEnding::LF)?)
    }

    /// Its key.
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// A server's certificate, in PEM, for a key that is at hand.
    ///
    /// # Errors
    /// When the certificate would hold longer than the authority, or the life does not fit.
    pub fn issue(&self, key: &Key, names: &Names, life: Life) -> Result<String, CertsError> {
        self.certify(key.public()?, names, life)
    }

    /// A server's certificate, in PEM, for whoever made the request.
    ///
    /// # Errors
    /// As [`Authority::issue`].
    pub fn sign(&self, request: &Request, life: Life) -> Result<String, CertsError> {
        self.certify(request.public.clone(), request.names(), life)
    }

    fn certify(
        &self,
        public: SubjectPublicKeyInfo,
        names: &Names,
        life: Life,
    ) -> Result<String, CertsError> {
        let body = self.certificate.tbs_certificate();
        let end = body.validity().not_after;
        if life.validity()?.not_after.to_unix_duration() > end.to_unix_duration() {
            return Err(CertsError::OutlivesAuthority { end: end.to_string() });
        }
        let owner = Owner::Server {
            issuer: body.subject().clone(),
            subject: names.subject()?,
            names: names.to_extension()?,
        };
        Ok(certificate(owner, public, life, &self.key)?.to_pem(LineEnding::LF)?)
    }
}
