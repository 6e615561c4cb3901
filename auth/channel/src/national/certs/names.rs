//! The names that a certificate is good for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rustls::pki_types::DnsName;
use x509_cert::der::asn1::Ia5String;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use super::CertsError;

/// Names of one certificate: it must fit a first flight.
pub const NAMES_MAX: usize = 64;

/// Longest common name (RFC 5280, appendix A.1), in characters.
const COMMON_NAME_CHARS_MAX: usize = 64;

/// DNS names, with or without `*.` in front, and addresses: 1 to [`NAMES_MAX`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Names(Vec<String>);

impl Names {
    /// Takes names as people write them.
    ///
    /// # Errors
    /// When one is neither a DNS name nor an address, or there are none or too many.
    pub fn new(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, CertsError> {
        let names: Vec<String> = names.into_iter().map(|it| plain(it.into())).collect();
        if !(1..=NAMES_MAX).contains(&names.len()) {
            return Err(CertsError::Names { names: names.len() });
        }
        match names.iter().find(|it| !is_name(it)) {
            Some(name) => Err(CertsError::Name { name: name.clone() }),
            None => Ok(Self(names)),
        }
    }

    /// The names in the order given.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    pub(super) fn from_extension(extension: &SubjectAltName) -> Result<Self, CertsError> {
        let refused = |it: &GeneralName| CertsError::Name { name: format!("{it:?}") };
        let names: Result<Vec<String>, CertsError> =
            extension.0.iter().map(|it| text(it).ok_or_else(|| refused(it))).collect();
        Self::new(names?)
    }

    pub(super) fn to_extension(&self) -> Result<SubjectAltName, CertsError> {
        let names: Result<Vec<GeneralName>, CertsError> =
            self.0.iter().map(|it| general_name(it)).collect();
        Ok(SubjectAltName(names?))
    }

    /// The first name where it fits a subject; otherwise the subject is empty.
    pub(super) fn subject(&self) -> Result<Name, CertsError> {
        match self.0.first() {
            Some(name) if name.len() <= COMMON_NAME_CHARS_MAX => common_name(name),
            Some(_) | None => Ok(Name::default()),
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// The subject of an authority.
pub(super) fn authority_subject(name: &str) -> Result<Name, CertsError> {
    let is_plain = |it: char| it.is_alphanumeric() || matches!(it, ' ' | '.' | '-' | '_');
    let chars = name.chars().count();
    if !(1..=COMMON_NAME_CHARS_MAX).contains(&chars)
        || name.trim() != name
        || !name.chars().all(is_plain)
    {
        return Err(CertsError::AuthorityName { name: name.to_owned() });
    }
    common_name(name)
}

/// `name` has been checked to hold nothing that this form would read as more than text.
fn common_name(name: &str) -> Result<Name, CertsError> {
    Ok(Name::from_str(&format!("CN={name}"))?)
}

/// An address in its one form; anything else as it is.
fn plain(name: String) -> String {
    name.parse::<IpAddr>().map_or(name, |it| it.to_string())
}

/// A dot at the end is right in DNS, and refused in certificates by all who check them.
fn is_name(name: &str) -> bool {
    let host = name.strip_prefix("*.").unwrap_or(name);
    let is_host = DnsName::try_from(host).is_ok() && !host.ends_with('.');
    is_host || name.parse::<IpAddr>().is_ok()
}

fn general_name(name: &str) -> Result<GeneralName, CertsError> {
    match name.parse::<IpAddr>() {
        Ok(ip) => Ok(GeneralName::from(ip)),
        Err(_) => Ok(GeneralName::DnsName(Ia5String::new(name)?)),
    }
}

/// What a server can be called; `None` for the other things that this extension can name.
fn text(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => address(bytes.as_bytes()).map(|it| it.to_string()),
        GeneralName::OtherName(_)
        | GeneralName::Rfc822Name(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EdiPartyName(_)
        | GeneralName::UniformResourceIdentifier(_)
        | GeneralName::RegisteredId(_) => None,
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
