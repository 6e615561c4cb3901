//! The certificates that are measured, in files that the peers read as well.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use channel::{ClientTls, DevCerts, TlsError};
use proto::address::Transport;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::process::Command;

/// What openssl takes for a server's certificate and for the authority that signs it.
const CONFIG: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = Barrage bench
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = CA:FALSE
keyUsage = digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1
";

/// What the server signs with.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Kind {
    P256,
    Ed25519,
    Rsa2048,
    /// With the national suites.
    Sm2,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::P256, Self::Ed25519, Self::Rsa2048, Self::Sm2];

    /// The name of its line.
    pub(super) const fn line(self) -> &'static str {
        match self {
            Self::P256 => "handshake.tls.p256",
            Self::Ed25519 => "handshake.tls.ed25519",
            Self::Rsa2048 => "handshake.tls.rsa2048",
            Self::Sm2 => "handshake.national",
        }
    }

    pub(super) const fn transport(self) -> Transport {
        match self {
            Self::P256 | Self::Ed25519 | Self::Rsa2048 => Transport::Tls,
            Self::Sm2 => Transport::National,
        }
    }

    /// A client that believes `ca_pem` and has no session to come back with.
    pub(super) fn client(self, ca_pem: &str) -> Result<ClientTls, TlsError> {
        match self {
            Self::P256 | Self::Ed25519 | Self::Rsa2048 => ClientTls::trusting(ca_pem),
            Self::Sm2 => ClientTls::national(ca_pem),
        }
    }
}

/// An authority and a server's certificate of the same kind, in a folder that goes with this.
#[derive(Debug)]
pub(super) struct Certificate {
    pub(super) kind: Kind,
    folder: TempDir,
}

impl Certificate {
    pub(super) async fn make(kind: Kind) -> anyhow::Result<Self> {
        let certificate = Self { kind, folder: tempfile::tempdir()? };
        match kind {
            Kind::P256 => {
                certificate.openssl(&["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]).await?;
            }
            Kind::Ed25519 => certificate.openssl(&["ED25519"]).await?,
            Kind::Rsa2048 => {
                certificate.openssl(&["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]).await?;
            }
            Kind::Sm2 => {
                DevCerts::load_or_create_national(certificate.folder(), &[])?;
            }
        }
        Ok(certificate)
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn ca_pem(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.folder().join("ca.pem"))?)
    }

    pub(super) fn chain(&self) -> PathBuf {
        self.folder().join("chain.pem")
    }

    pub(super) fn key(&self) -> PathBuf {
        self.folder().join("key.pem")
    }

    /// Has both made; `algorithm` is what `openssl genpkey` is told.
    async fn openssl(&self, algorithm: &[&str]) -> anyhow::Result<()> {
        fs::write(self.folder().join("openssl.cnf"), CONFIG)?;
        let signed = ["-CA", "ca.pem", "-CAkey", "ca.key"];
        for (key, certificate, extensions, signed) in [
            ("ca.key", "ca.pem", "authority", &[][..]),
            ("key.pem", "chain.pem", "server", &signed),
        ] {
            let key_args = ["genpkey", "-out", key, "-algorithm"];
            self.run(&[&key_args, algorithm].concat()).await?;
            let request = ["req", "-x509", "-new", "-config", "openssl.cnf", "-days", "2"];
            let files = ["-key", key, "-out", certificate, "-extensions", extensions];
            self.run(&[&request[..], &files, signed].concat()).await?;
        }
        Ok(())
    }

    async fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new("openssl");
        let output = command.args(arguments).current_dir(self.folder()).output().await;
        let output = output.context("cannot start openssl: apt-get install openssl")?;
        ensure!(
            output.status.success(),
            "openssl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use channel::ServerTls;

    use super::*;

    #[tokio::test]
    async fn a_certificate_of_every_kind_can_be_shown_and_believed() {
        for kind in Kind::ALL {
            let certificate = Certificate::make(kind).await.unwrap();

            let chain_pem = fs::read_to_string(certificate.chain()).unwrap();
            let key_pem = fs::read_to_string(certificate.key()).unwrap();
            let shown = match kind {
                Kind::Sm2 => ServerTls::national_from_pem(&chain_pem, &key_pem, &[]),
                Kind::P256 | Kind::Ed25519 | Kind::Rsa2048 => {
                    ServerTls::from_pem(&chain_pem, &key_pem, &[])
                }
            };

            assert!(shown.is_ok(), "{kind:?}: {shown:?}");
            assert!(kind.client(&certificate.ca_pem().unwrap()).is_ok(), "{kind:?}");
        }
    }
}
