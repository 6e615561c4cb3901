//! Requests for a certificate (PKCS#10, RFC 2986): the key stays where it was made.

use sm2::dsa::Signature;
use sm2::pkcs8::spki::AssociatedAlgorithmIdentifier;
use x509_cert::SubjectPublicKeyInfo;
use x509_cert::builder::RequestBuilder;
use x509_cert::der::oid::AssociatedOid;
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{Decode, Encode, EncodePem};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::request::{CertReq, ExtensionReq};

use super::build::sign;
use super::key::is_sm2;
use super::{CertsError, Key, Names, document};
use crate::national::verify::{CERTIFICATE_IDENTITY, verify};

/// A request whose signature was checked: whoever made it holds the key.
#[derive(Clone, Debug)]
pub struct Request {
    pub(super) public: SubjectPublicKeyInfo,
    names: Names,
}

impl Request {
    /// Asks, in PEM, for a certificate for these names and `key`'s public half.
    ///
    /// # Errors
    /// When the library cannot make it.
    pub fn create(key: &Key, names: &Names) -> Result<String, CertsError> {
        let mut builder = RequestBuilder::new(names.subject()?)?;
        builder.add_extension(&names.to_extension()?)?;
        Ok(sign(builder, key)?.to_pem(LineEnding::LF)?)
    }

    /// Reads a request, from whatever tool.
    ///
    /// Only its key and its alternative names are used: whatever else it asks for, such as to
    /// be an authority, has no effect.
    ///
    /// # Errors
    /// When it is not of SM2, not well signed, or names nothing that a server can have.
    pub fn from_pem(pem: &str) -> Result<Self, CertsError> {
        let request: CertReq = document("the request", pem)?;
        if !is_well_signed(&request)? {
            return Err(CertsError::RequestSignature);
        }
        let names = match alternative_names(&request)? {
            Some(names) => Names::from_extension(&names)?,
            None => return Err(CertsError::Names { names: 0 }),
        };
        Ok(Self { public: request.info.public_key, names })
    }

    /// What it asks for.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }
}

fn is_well_signed(request: &CertReq) -> Result<bool, CertsError> {
    let signed = request.info.to_der()?;
    let public = &request.info.public_key;
    let is_verified = || {
        let point = public.subject_public_key.as_bytes()?;
        let signature = request.signature.as_bytes()?;
        verify(CERTIFICATE_IDENTITY, point, &signed, signature)
    };
    Ok(is_sm2(public)
        && request.algorithm.oid == Signature::ALGORITHM_IDENTIFIER.oid
        && is_verified().is_some())
}

/// Alternative names among the extensions that are asked for.
fn alternative_names(request: &CertReq) -> Result<Option<SubjectAltName>, CertsError> {
    for attribute in request.info.attributes.iter().filter(|it| it.oid == ExtensionReq::OID) {
        for value in attribute.values.iter() {
            let extensions = value.decode_as::<ExtensionReq>()?;
            if let Some(names) = extensions.0.iter().find(|it| it.extn_id == SubjectAltName::OID) {
                return Ok(Some(SubjectAltName::from_der(names.extn_value.as_bytes())?));
            }
        }
    }
    Ok(None)
}
