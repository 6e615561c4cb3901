//! Certificates for mode G: an authority, certificates for servers, and requests for them.
//!
//! Everything is SM2 with SM3 and the default identity `1234567812345678` of GB/T 35276: X.509
//! and PKCS#10 in PEM, private keys in PKCS#8. Nothing is drawn here: a key comes from the seed
//! that the caller hands over, a serial number from what it numbers, and times from `now`, so
//! the same arguments give the same certificate.
//!
//! An authority signs servers' certificates directly; there are no authorities below it.

mod authority;
mod build;
mod key;
mod names;
mod request;

use std::time::Duration;

use proto::time::Wall;
use x509_cert::der::pem::{PemLabel, decode_vec};
use x509_cert::der::{self, DateTime, Decode};
use x509_cert::time::{Time, Validity};

pub use authority::Authority;
pub use key::Key;
pub use names::{NAMES_MAX, Names};
pub use request::Request;

/// Longest life of a certificate, in days: a hundred years.
pub const LIFE_DAYS_MAX: u32 = 36_500;

/// What is not PEM within this many bytes is not read; a request with all names has 20 KiB.
const PEM_BYTES_MAX: usize = 64 * 1024;

/// A certificate holds from so long before it was made: clocks differ.
const BACKDATED: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a certificate holds.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// When it is made; it holds from a day before.
    pub now: Wall,
    /// Days from `now`, 1 to [`LIFE_DAYS_MAX`].
    pub days: u32,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertsError {
    /// Neither a DNS name, with or without `*.` in front, nor an address.
    #[error("{name:?} is neither a DNS name nor an IP address")]
    Name {
        /// The text.
        name: String,
    },
    /// No name at all, or more than fit into a first flight.
    #[error("a certificate has 1 to {NAMES_MAX} names, not {names}")]
    Names {
        /// Names given.
        names: usize,
    },
    /// An authority's name that is empty, longer than 64 characters, or needs quoting.
    #[error(
        "{name:?} does not name an authority: 1 to 64 letters, digits, spaces and any of . - _ are needed"
    )]
    AuthorityName {
        /// The text.
        name: String,
    },
    /// Out of range.
    #[error("a certificate holds 1 to {LIFE_DAYS_MAX} days, not {days}")]
    Days {
        /// Days given.
        days: u32,
    },
    /// A certificate that would hold longer than the authority behind it.
    #[error("the authority itself ends earlier, on {end}")]
    OutlivesAuthority {
        /// The authority's last moment, UTC.
        end: String,
    },
    /// Text that is not what it should be.
    #[error("{what} could not be read as PEM")]
    Pem {
        /// Which text.
        what: &'static str,
        /// What the parser says.
        source: der::Error,
    },
    /// Text too long to be read.
    #[error("{what} is longer than {PEM_BYTES_MAX} bytes")]
    TooLong {
        /// Which text.
        what: &'static str,
    },
    /// Not a private key of SM2 in PKCS#8 or SEC1.
    #[error("the private key is not of SM2, in PKCS#8 or SEC1")]
    Key,
    /// A certificate that may not sign others.
    #[error("the certificate is not of an SM2 authority")]
    NotAuthority,
    /// The key and the certificate are of different pairs.
    #[error("the authority's key does not belong to its certificate")]
    OtherKey,
    /// A request that is not of SM2, was altered, or is not signed by the key it names.
    #[error("the request is not signed by the SM2 key that it names")]
    RequestSignature,
    /// Not made.
    #[error("the certificate could not be made")]
    Make(#[from] x509_cert::builder::Error),
}

impl From<der::Error> for CertsError {
    fn from(error: der::Error) -> Self {
        Self::Make(error.into())
    }
}

impl Life {
    fn validity(self) -> Result<Validity, CertsError> {
        if !(1..=LIFE_DAYS_MAX).contains(&self.days) {
            return Err(CertsError::Days { days: self.days });
        }
        let life = Duration::from_secs(u64::from(self.days) * 24 * 60 * 60);
        Ok(Validity::new(time(self.now - BACKDATED)?, time(self.now + life)?))
    }
}

fn time(wall: Wall) -> Result<Time, CertsError> {
    Ok(DateTime::from_unix_duration(Duration::from_secs(wall.unix_s()))?.into())
}

/// Whether text is short enough to be parsed.
fn bounded<'a>(what: &'static str, pem: &'a str) -> Result<&'a str, CertsError> {
    if pem.len() > PEM_BYTES_MAX {
        return Err(CertsError::TooLong { what });
    }
    Ok(pem)
}

/// Reads one document, strictly: the library is lax with lengths when it decodes straight from
/// PEM.
fn document<T>(what: &'static str, pem: &str) -> Result<T, CertsError>
where
    T: for<'a> Decode<'a, Error = der::Error> + PemLabel,
{
    let pem = bounded(what, pem)?;
    let read = || {
        let (label, bytes) = decode_vec(pem.as_bytes())?;
        T::validate_pem_label(label)?;
        T::from_der(&bytes)
    };
    read().map_err(|source| CertsError::Pem { what, source })
}
