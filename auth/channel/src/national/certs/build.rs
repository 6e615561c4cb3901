//! What stands in a certificate, and the signature under it.

use sm2::dsa::signature::Signer;
use sm2::dsa::{Signature, SigningKey};
use sm3::{Digest, Sm3};
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder, CertificateBuilder};
use x509_cert::der::Encode;
use x509_cert::der::asn1::BitString;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::ext::{Extension, ToExtension};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::SubjectPublicKeyInfoRef;
use x509_cert::{Certificate, SubjectPublicKeyInfo, TbsCertificate};

use super::{CertsError, Key, Life};
use crate::national::verify::CERTIFICATE_IDENTITY;

/// id-kp-serverAuth (RFC 5280, section 4.2.1.12).
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");

/// Whose certificate it is.
pub(super) enum Owner {
    /// An authority, which signs itself and servers directly below it.
    Authority(Name),
    /// A server.
    Server { issuer: Name, subject: Name, names: SubjectAltName },
}

impl BuilderProfile for Owner {
    fn get_issuer(&self, subject: &Name) -> Name {
        match self {
            Self::Authority(_) => subject.clone(),
            Self::Server { issuer, .. } => issuer.clone(),
        }
    }

    fn get_subject(&self) -> Name {
        match self {
            Self::Authority(name) => name.clone(),
            Self::Server { subject, .. } => subject.clone(),
        }
    }

    fn build_extensions(
        &self,
        public: SubjectPublicKeyInfoRef<'_>,
        issuer: SubjectPublicKeyInfoRef<'_>,
        certificate: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        let subject = certificate.subject();
        let mut extensions = vec![
            (&SubjectKeyIdentifier::try_from(public)?).to_extension(subject, &[])?,
            (&AuthorityKeyIdentifier::try_from(issuer)?).to_extension(subject, &[])?,
        ];
        match self {
            Self::Authority(_) => {
                let constraints = BasicConstraints { ca: true, path_len_constraint: Some(0) };
                let usage = KeyUsage(KeyUsages::KeyCertSign | KeyUsages::CRLSign);
                extensions.push((&constraints).to_extension(subject, &[])?);
                extensions.push((&usage).to_extension(subject, &[])?);
            }
            Self::Server { names, .. } => {
                let constraints = BasicConstraints { ca: false, path_len_constraint: None };
                let usage = KeyUsage(KeyUsages::DigitalSignature.into());
                extensions.push((&constraints).to_extension(subject, &[])?);
                extensions.push((&usage).to_extension(subject, &[])?);
                extensions.push((&ExtendedKeyUsage(vec![SERVER_AUTH])).to_extension(subject, &[])?);
                extensions.push(names.to_extension(subject, &[])?);
            }
        }
        Ok(extensions)
    }
}

/// A certificate for `public`, signed by `issuer`.
pub(super) fn certificate(
    owner: Owner,
    public: SubjectPublicKeyInfo,
    life: Life,
    issuer: &Key,
) -> Result<Certificate, CertsError> {
    let serial = serial_number(&owner, &public, life, issuer)?;
    let builder = CertificateBuilder::new(owner, serial, life.validity()?, public)?;
    sign(builder, issuer)
}

/// Signs what a builder has collected, with the identity of certificates.
pub(super) fn sign<B: Builder>(mut builder: B, key: &Key) -> Result<B::Output, CertsError> {
    let key = SigningKey::new(CERTIFICATE_IDENTITY, &key.secret).map_err(|_| CertsError::Key)?;
    let signed = builder.finalize(&key)?;
    let signature: Signature = key.try_sign(&signed).map_err(|_| CertsError::Key)?;
    let signature = BitString::from_bytes(signature.to_der().as_bytes())?;
    Ok(builder.assemble(signature, &key)?)
}

/// 16 bytes, positive: a digest of all that makes one certificate differ from another, so two
/// different ones of an authority never share a number.
fn serial_number(
    owner: &Owner,
    public: &SubjectPublicKeyInfo,
    life: Life,
    issuer: &Key,
) -> Result<SerialNumber, CertsError> {
    let mut hash = Sm3::new();
    hash.update(issuer.public()?.to_der()?);
    hash.update(public.to_der()?);
    hash.update(life.now.0.to_be_bytes());
    hash.update(life.days.to_be_bytes());
    match owner {
        Owner::Authority(name) => hash.update(name.to_der()?),
        Owner::Server { names, .. } => hash.update(names.to_der()?),
    }
    let mut serial: [u8; 32] = hash.finalize().into();
    // The top bits 01: neither negative nor shortened.
    serial[0] = serial[0] & 0x3F | 0x40;
    Ok(SerialNumber::new(&serial[..16])?)
}
