//! Making the certificates: an authority that signs once.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::suite::Suite;
use proto::time::Wall;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};

use super::{DevCerts, DevCertsError, LIFE_DAYS};
use crate::national::certs::{Authority, Key, Life, Names};

const DAY: Duration = Duration::from_hours(24);

pub(super) fn tls(names: &BTreeSet<String>, now: Wall) -> Result<DevCerts, DevCertsError> {
    let mut ca = params(&BTreeSet::new(), "Barrage development authority", now)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

    let mut leaf = params(names, "Barrage development server", now)?;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let chain = leaf.signed_by(&key, &ca)?;
    Ok(DevCerts {
        suite: Suite::Tls,
        ca_pem: ca.pem(),
        chain_pem: chain.pem(),
        key_pem: key.serialize_pem(),
    })
}

pub(super) fn national(names: &BTreeSet<String>, now: Wall) -> Result<DevCerts, DevCertsError> {
    let life = Life { now, days: LIFE_DAYS };
    let ca = Authority::create(key()?, "Barrage national development authority", life)?;
    let key = key()?;
    let chain_pem = ca.issue(&key, &Names::new(names)?, life)?;
    let key_pem = key.to_pem()?.to_string();
    Ok(DevCerts { suite: Suite::National, ca_pem: ca.to_pem()?, chain_pem, key_pem })
}

fn key() -> Result<Key, DevCertsError> {
    let seed = kit::seed::random_bytes().map_err(DevCertsError::Random)?;
    Ok(Key::from_seed(&seed)?)
}

fn params(
    names: &BTreeSet<String>,
    subject: &str,
    now: Wall,
) -> Result<CertificateParams, DevCertsError> {
    let names: Vec<String> = names.iter().cloned().collect();
    let mut params = CertificateParams::new(names)?;
    let since_1970 = Duration::from_millis(now.0);
    params.not_before = date_time_ymd(1970, 1, 1) + since_1970.saturating_sub(DAY);
    params.not_after = date_time_ymd(1970, 1, 1) + since_1970 + DAY * LIFE_DAYS;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject);
    Ok(params)
}
