//! The certificates of a process: from files that may change, or made for development.
//!
//! The services of one process speak to each other under the development authority, by the address
//! of a socket; files hold what viewers are shown.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use channel::reload::{Files, Reload};
use channel::{ClientTls, DevCerts, ServerTls};
use proto::address::Transport;
use proto::suite::Suite;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::stack::Shared;

/// `[tls]`: what links show to viewers.
///
/// A file that is named is looked at while the process runs; see `reload_s`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// PEM file with the certificate chain of `tls` and `wss` listeners, their own certificate
    /// first. Empty: a development certificate, kept and renewed below `data`.
    pub chain: PathBuf,
    /// PEM file with its private key; only the process's user should be able to read it.
    pub key: PathBuf,
    /// PEM file with authorities that the process's own viewers (`up`'s crowd, `watch`) believe
    /// besides the development authority: what signed `chain`. Links do without it.
    pub ca: PathBuf,
    /// As `chain`, with SM2 certificates: for `national` listeners, and for clients of `tls` and
    /// `wss` that offer national suites only.
    pub national_chain: PathBuf,
    /// As `key`, for `national_chain`.
    pub national_key: PathBuf,
    /// As `ca`, for `national_chain`.
    pub national_ca: PathBuf,
    /// How often the files are looked at, in seconds. A look reads them; a changed pair that fits
    /// and is valid is shown to connections from then on, any other is refused and counted.
    pub reload_s: u32,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            chain: PathBuf::new(),
            key: PathBuf::new(),
            ca: PathBuf::new(),
            national_chain: PathBuf::new(),
            national_key: PathBuf::new(),
            national_ca: PathBuf::new(),
            reload_s: 5,
        }
    }
}

impl Tls {
    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// Says which value, and why.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(self.reload_s > 0, "reload_s is 0");
        for (chain, key, name) in [
            (&self.chain, &self.key, "chain and key"),
            (&self.national_chain, &self.national_key, "national_chain and national_key"),
        ] {
            ensure!(is_named(chain) == is_named(key), "{name} go together");
        }
        Ok(())
    }

    fn files(&self, suite: Suite) -> Option<Files> {
        let (chain, key) = match suite {
            Suite::National => (&self.national_chain, &self.national_key),
            Suite::Tls | Suite::Plain => (&self.chain, &self.key),
        };
        is_named(chain).then(|| Files { chain: chain.clone(), key: key.clone() })
    }
}

/// Whom clients believe.
#[derive(Clone, Debug)]
pub struct Trust {
    /// The authorities' certificates.
    pub ca_pem: String,
    /// The same, ready for use.
    pub tls: ClientTls,
    /// The authorities' certificates for the national suites.
    pub national_ca_pem: String,
    /// The same, ready for use.
    pub national: ClientTls,
}

impl Trust {
    /// What to connect with over this transport.
    #[must_use]
    pub const fn of(&self, transport: Transport) -> &ClientTls {
        match transport {
            Transport::National => &self.national,
            Transport::Tcp | Transport::Tls | Transport::Ws | Transport::Wss | Transport::Quic => {
                &self.tls
            }
        }
    }
}

/// All certificates of the process.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) trust: Trust,
    /// Among the services of the process.
    pub(crate) internal: ServerTls,
    /// For viewers.
    pub(crate) tls: ServerTls,
    /// For viewers with the national suites.
    pub(crate) national: ServerTls,
    pub(crate) follow: Follow,
}

/// Looks at the certificates that lie in files.
#[derive(Debug)]
pub(crate) struct Follow {
    reloads: Vec<Reload>,
    every: Duration,
}

impl Certificates {
    /// Reads them, or makes them for development.
    pub(crate) async fn open(config: &Config, parts: &Shared) -> anyhow::Result<Self> {
        let folder = config.data.join("tls");
        let dev = DevCerts::load_or_create(&folder, &[])?;
        let national = DevCerts::load_or_create_national(&folder.join("national"), &[])?;
        let ca_pem = format!("{}{}", dev.ca_pem, authorities(&config.tls.ca)?);
        let national_ca_pem =
            format!("{}{}", national.ca_pem, authorities(&config.tls.national_ca)?);
        let trust = Trust {
            tls: ClientTls::trusting(&ca_pem).context("[tls] ca")?,
            national: ClientTls::national(&national_ca_pem).context("[tls] national_ca")?,
            ca_pem,
            national_ca_pem,
        };
        let every = Duration::from_secs(config.tls.reload_s.into());
        let mut follow = Follow { reloads: Vec::new(), every };
        Ok(Self {
            trust,
            internal: dev.server(&[])?,
            tls: follow.certificate(Suite::Tls, config, parts, &dev).await?,
            national: follow.certificate(Suite::National, config, parts, &national).await?,
            follow,
        })
    }
}

impl Follow {
    /// From the configured files, or for development.
    async fn certificate(
        &mut self,
        suite: Suite,
        config: &Config,
        parts: &Shared,
        dev: &DevCerts,
    ) -> anyhow::Result<ServerTls> {
        let Some(files) = config.tls.files(suite) else {
            let tls = dev.server(&[])?;
            tls.tell_end(&parts.meter);
            return Ok(tls);
        };
        let (clock, meter) = (parts.clock.clone(), parts.meter.clone());
        let reload = Reload::open(suite, files, clock, meter).await.context("[tls]")?;
        let tls = reload.tls().clone();
        self.reloads.push(reload);
        Ok(tls)
    }

    /// Looks at the files until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let looking = self.reloads.into_iter().map(|it| it.run(self.every, stop.clone()));
        futures_util::future::try_join_all(looking).await?;
        stop.cancelled().await;
        Ok(())
    }
}

fn authorities(path: &Path) -> anyhow::Result<String> {
    if !is_named(path) {
        return Ok(String::new());
    }
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn is_named(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_without_its_key_is_refused() {
        Tls::default().check().unwrap();

        let chain = PathBuf::from("chain.pem");
        let half = Tls { chain: chain.clone(), ..Tls::default() };
        assert!(half.check().unwrap_err().to_string().contains("chain and key"));
        let half = Tls { national_key: chain, ..Tls::default() };
        assert!(half.check().unwrap_err().to_string().contains("national"));
    }
}
