//! Reading certificates.

use proto::time::Wall;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::certificate::Certificate;
use x509_cert::der::Decode;

use crate::provider::TlsError;

/// When a certificate may be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validity {
    /// Not earlier.
    pub from: Wall,
    /// Not later.
    pub until: Wall,
}

impl Validity {
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Result<Self, TlsError> {
        let read = Certificate::from_der(certificate)?;
        let validity = read.tbs_certificate().validity();
        let wall = |time: x509_cert::time::Time| Wall(0) + time.to_unix_duration();
        Ok(Self { from: wall(validity.not_before), until: wall(validity.not_after) })
    }

    /// Refuses a certificate that clients would refuse at `now`.
    pub(crate) fn check(self, now: Wall) -> Result<(), TlsError> {
        let Self { from, until } = self;
        if (from..=until).contains(&now) { Ok(()) } else { Err(TlsError::NotNow { from, until }) }
    }
}

/// All certificates of a PEM text, at least one.
pub(crate) fn certificates(
    what: &'static str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem { what, source })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate { what });
    }
    Ok(certificates)
}
