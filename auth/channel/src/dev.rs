//! Certificates for development: an authority of one's own and one certificate signed by it, of
//! either mode.
//!
//! The authority's key is never written: it signs once and is gone, so a development authority
//! that somebody trusts by mistake cannot be used against them. A renewal makes a new authority.

mod make;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::clock::Clock;
use proto::suite::Suite;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

use crate::client::ClientTls;
use crate::national::certs::CertsError;
use crate::provider::TlsError;
use crate::server::ServerTls;

const CA_FILE: &str = "ca.pem";
const CHAIN_FILE: &str = "chain.pem";
const KEY_FILE: &str = "key.pem";
const ISSUED_FILE: &str = "issued.json";
const LOCK_FILE: &str = "lock";

/// Names that every development certificate has.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Names of one certificate: it must fit a client's first flight.
const NAMES_MAX: usize = 64;

/// Shorter than what browsers accept.
const LIFE_DAYS: u32 = 90;
/// Left at least, or the certificate is made anew.
const LIFE_LEFT_MIN: Duration = Duration::from_hours(30 * 24);

/// Development certificates, as PEM.
#[derive(Clone)]
pub struct DevCerts {
    suite: Suite,
    /// The authority, for clients to trust.
    pub ca_pem: String,
    /// The server's certificate.
    pub chain_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// Why there are no development certificates.
#[derive(Debug, thiserror::Error)]
pub enum DevCertsError {
    /// A file could not be read or written.
    #[error("{path} could not be read or written")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Too many names.
    #[error("{names} names are more than {NAMES_MAX}")]
    TooManyNames {
        /// Names given, the local ones included.
        names: usize,
    },
    /// Not made, such as for a name that is none.
    #[error("the certificate could not be made")]
    Make(#[from] rcgen::Error),
    /// The same for mode G.
    #[error("the national certificate could not be made")]
    MakeNational(#[from] CertsError),
    /// The system gives no randomness.
    #[error("there is no randomness for a key")]
    Random(#[source] io::Error),
}

/// What was issued, beside the PEM files.
#[derive(Deserialize, Serialize)]
struct Issued {
    names: BTreeSet<String>,
    expires: Wall,
}

impl DevCerts {
    /// Reads the certificates of mode T in `dir`, or makes them: for localhost, 127.0.0.1, ::1 and
    /// `names`.
    ///
    /// They are made anew when they are about to expire, lack a name, are damaged, or when others
    /// could read the key. Blocks for file access; a second process waits for the first.
    ///
    /// # Errors
    /// [`DevCertsError`].
    pub fn load_or_create(dir: &Path, names: &[&str]) -> Result<Self, DevCertsError> {
        Self::load_or_create_at(Suite::Tls, dir, names, Clock::system().wall())
    }

    /// The same with certificates of mode G, which need a folder of their own.
    ///
    /// # Errors
    /// [`DevCertsError`].
    pub fn load_or_create_national(dir: &Path, names: &[&str]) -> Result<Self, DevCertsError> {
        Self::load_or_create_at(Suite::National, dir, names, Clock::system().wall())
    }

    /// As these, at the given time; [`Suite::National`] is mode G.
    ///
    /// # Errors
    /// [`DevCertsError`].
    pub fn load_or_create_at(
        suite: Suite,
        dir: &Path,
        names: &[&str],
        now: Wall,
    ) -> Result<Self, DevCertsError> {
        let names: BTreeSet<String> =
            LOCAL_NAMES.iter().chain(names).map(|&it| it.to_owned()).collect();
        if names.len() > NAMES_MAX {
            return Err(DevCertsError::TooManyNames { names: names.len() });
        }
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(dir).map_err(|it| at(dir, it))?;
        let lock_path = dir.join(LOCK_FILE);
        let lock = File::create(&lock_path).map_err(|it| at(&lock_path, it))?;
        lock.lock().map_err(|it| at(&lock_path, it))?;
        if let Some(certs) = Self::load(suite, dir, &names, now) {
            return Ok(certs);
        }
        let certs = match suite {
            Suite::National => make::national(&names, now)?,
            Suite::Tls | Suite::Plain => make::tls(&names, now)?,
        };
        let life = Duration::from_hours(24) * LIFE_DAYS;
        certs.store(dir, &Issued { names, expires: now + life })?;
        tracing::info!(dir = %dir.display(), "made a development certificate");
        Ok(certs)
    }

    /// The server's side, speaking `alpn`.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn server(&self, alpn: &[&[u8]]) -> Result<ServerTls, TlsError> {
        match self.suite {
            Suite::National => ServerTls::national_from_pem(&self.chain_pem, &self.key_pem, alpn),
            Suite::Tls | Suite::Plain => ServerTls::from_pem(&self.chain_pem, &self.key_pem, alpn),
        }
    }

    /// The client's side, believing this authority only.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn client(&self) -> Result<ClientTls, TlsError> {
        match self.suite {
            Suite::National => ClientTls::national(&self.ca_pem),
            Suite::Tls | Suite::Plain => ClientTls::trusting(&self.ca_pem),
        }
    }

    /// What is in `dir`, if all of it is still good.
    fn load(suite: Suite, dir: &Path, names: &BTreeSet<String>, now: Wall) -> Option<Self> {
        let issued: Issued = serde_json::from_slice(&fs::read(dir.join(ISSUED_FILE)).ok()?).ok()?;
        if !names.is_subset(&issued.names) || issued.expires.since(now) < LIFE_LEFT_MIN {
            return None;
        }
        let key_path = dir.join(KEY_FILE);
        if fs::metadata(&key_path).ok()?.permissions().mode() & 0o077 != 0 {
            return None;
        }
        let certs = Self {
            suite,
            ca_pem: fs::read_to_string(dir.join(CA_FILE)).ok()?,
            chain_pem: fs::read_to_string(dir.join(CHAIN_FILE)).ok()?,
            key_pem: fs::read_to_string(key_path).ok()?,
        };
        let is_whole = certs.server(&[]).is_ok() && certs.client().is_ok();
        is_whole.then_some(certs)
    }

    fn store(&self, dir: &Path, issued: &Issued) -> Result<(), DevCertsError> {
        let issued = serde_json::to_vec(issued).expect("names and a number are always JSON");
        // Last, so that files of an interrupted start are not taken for a whole set.
        let files: [(&str, &[u8], u32); 4] = [
            (KEY_FILE, self.key_pem.as_bytes(), 0o600),
            (CHAIN_FILE, self.chain_pem.as_bytes(), 0o644),
            (CA_FILE, self.ca_pem.as_bytes(), 0o644),
            (ISSUED_FILE, &issued, 0o644),
        ];
        let issued_path = dir.join(ISSUED_FILE);
        match fs::remove_file(&issued_path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at(&issued_path, error));
            }
            Ok(()) | Err(_) => {}
        }
        for (name, bytes, mode) in files {
            let path = dir.join(name);
            write(&path, bytes, mode).map_err(|it| at(&path, it))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for DevCerts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DevCerts(…)")
    }
}

/// Puts a new file in the place of the old one, so that its mode is what is asked for here.
fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let fresh = path.with_extension("new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

fn at(path: &Path, source: io::Error) -> DevCertsError {
    DevCertsError::File { path: path.to_owned(), source }
}
