//! An authority and a server's certificate, made by the openssl command.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::process::Command;

use crate::peer::{openssl3, openssl4, run};

const CONFIG: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = localhost
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = CA:FALSE
keyUsage = digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost
";

/// What the keys are of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    P256,
    Ed25519,
    Rsa2048,
    Sm2,
}

/// A folder with `ca.pem`, `chain.pem` and `key.pem`.
#[derive(Debug)]
pub(crate) struct Pki {
    folder: TempDir,
}

impl Pki {
    /// Has everything made by openssl.
    pub(crate) async fn made_by_openssl(kind: Kind) -> Self {
        let pki = Self { folder: TempDir::new().unwrap() };
        fs::write(pki.path().join("pki.cnf"), CONFIG).unwrap();
        let authority = ["-subj", "/CN=Interop authority", "-extensions", "authority"];
        let server = ["-extensions", "server", "-CA", "ca.pem", "-CAkey", "ca.key"];
        pki.certificate(kind, "ca.key", "ca.pem", &authority).await;
        pki.certificate(kind, "key.pem", "chain.pem", &server).await;
        pki
    }

    /// Writes what was made elsewhere.
    pub(crate) fn of(ca_pem: &str, chain_pem: &str, key_pem: &str) -> Self {
        let pki = Self { folder: TempDir::new().unwrap() };
        for (name, pem) in [("ca.pem", ca_pem), ("chain.pem", chain_pem), ("key.pem", key_pem)] {
            fs::write(pki.path().join(name), pem).unwrap();
        }
        pki
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    async fn certificate(&self, kind: Kind, key: &str, certificate: &str, arguments: &[&str]) {
        self.openssl(kind, &[&["genpkey", "-out", key], kind.key()].concat()).await;
        let request = ["req", "-x509", "-new", "-config", "pki.cnf", "-days", "2"];
        let files = ["-key", key, "-out", certificate];
        self.openssl(kind, &[&request[..], &files, arguments, kind.signature()].concat()).await;
    }

    async fn openssl(&self, kind: Kind, arguments: &[&str]) {
        let mut command = Command::new(kind.program());
        command.args(arguments).current_dir(self.path());
        let output = run(command, b"").await;
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {complaint}");
    }
}

impl Kind {
    fn program(self) -> PathBuf {
        match self {
            Self::P256 | Self::Ed25519 | Self::Rsa2048 => openssl3(),
            Self::Sm2 => openssl4(),
        }
    }

    fn key(self) -> &'static [&'static str] {
        match self {
            Self::P256 => &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            Self::Ed25519 => &["-algorithm", "ED25519"],
            Self::Rsa2048 => &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
            Self::Sm2 => &["-algorithm", "SM2"],
        }
    }

    fn signature(self) -> &'static [&'static str] {
        match self {
            Self::P256 | Self::Ed25519 | Self::Rsa2048 => &[],
            Self::Sm2 => &["-sm3", "-sigopt", "distid:1234567812345678"],
        }
    }
}
