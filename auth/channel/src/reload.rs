//! Certificates in files that are looked at while the process runs, so that a renewal needs no
//! restart.
//!
//! What counts is the content, not its times: links, copies and mounts all work. A pair that is
//! not good is refused and the last good one stays in use; so is a pair of which only one file was
//! written yet, and the next look takes it whole.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::clock::Clock;
use kit::meter::{Meter, list};
use proto::suite::Suite;
use proto::time::Wall;
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::provider::TlsError;
use crate::server::ServerTls;

/// Bytes of one file: a chain of four certificates with RSA keys has 8 KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Where a certificate lies, as PEM.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Files {
    /// The chain, the server's own certificate first.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Keeps a [`ServerTls`] as its files are.
#[derive(Debug)]
pub struct Reload {
    files: Files,
    tls: ServerTls,
    /// Of what was looked at last; none if it could not be read.
    seen: Option<[u8; 32]>,
    /// When what was seen can be used, if it was too early for it.
    valid_from: Option<Wall>,
    clock: Clock,
    meter: Meter,
}

/// What a look at the files found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Looked {
    /// Nothing new.
    Same,
    /// Another pair, which is in use now.
    Taken,
    /// Something that cannot be used; the last good pair stays.
    Refused,
}

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A file could not be read.
    #[error("{path} could not be read")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is too long to be what it should.
    #[error("{path} is longer than {FILE_BYTES_MAX} bytes")]
    TooLong {
        /// Which.
        path: PathBuf,
    },
    /// What the files hold is not a chain and its key, or not valid now.
    #[error("{chain} and {key} cannot be used")]
    Pair {
        /// The chain's file.
        chain: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        source: TlsError,
    },
}

/// What the files hold.
struct Pair {
    chain_pem: String,
    key_pem: String,
}

impl Reload {
    /// Reads the files for the first time; `suite` says which kind of certificate they hold.
    ///
    /// # Errors
    /// [`ReloadError`], when the files hold no pair that is good now.
    pub async fn open(
        suite: Suite,
        files: Files,
        clock: Clock,
        meter: Meter,
    ) -> Result<Self, ReloadError> {
        let pair = Pair::read(&files).await?;
        let read = match suite {
            Suite::National => ServerTls::national_from_pem(&pair.chain_pem, &pair.key_pem, &[]),
            Suite::Tls | Suite::Plain => ServerTls::from_pem(&pair.chain_pem, &pair.key_pem, &[]),
        };
        let good = read.and_then(|tls| tls.validity().check(clock.wall()).map(|()| tls));
        let tls = good.map_err(|source| files.unusable(source))?;
        tls.tell_end(&meter);
        Ok(Self { files, tls, seen: Some(pair.digest()), valid_from: None, clock, meter })
    }

    /// What the files hold, ready to accept. It and everything made from it follow the files.
    #[must_use]
    pub const fn tls(&self) -> &ServerTls {
        &self.tls
    }

    /// Looks at the files every so often, until `stop`.
    ///
    /// # Errors
    /// None: what is wrong with the files is counted and logged.
    pub async fn run(mut self, every: Duration, stop: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = self.clock.sleep(every) => {}
            }
            self.look().await;
        }
    }

    /// Looks at the files once.
    pub async fn look(&mut self) -> Looked {
        let read = Pair::read(&self.files).await;
        let seen = read.as_ref().ok().map(Pair::digest);
        let is_due = self.valid_from.is_some_and(|it| self.clock.wall() >= it);
        if seen == self.seen && !is_due {
            return Looked::Same;
        }
        self.seen = seen;
        self.valid_from = None;
        let taken = read.and_then(|pair| {
            let replaced = self.tls.replace(&pair.chain_pem, &pair.key_pem, self.clock.wall());
            replaced.map_err(|source| self.files.unusable(source))
        });
        let suite = self.tls.suite().name();
        let count = |outcome| {
            self.meter.counter(list::CHANNEL_CERTIFICATE_RELOADS_TOTAL, &[suite, outcome]).inc();
        };
        match taken {
            Ok(()) => {
                count("taken");
                self.tls.tell_end(&self.meter);
                tracing::info!(chain = %self.files.chain.display(), "a new certificate is in use");
                Looked::Taken
            }
            Err(error) => {
                count("refused");
                if let ReloadError::Pair { source: TlsError::NotNow { from, .. }, .. } = &error {
                    self.valid_from = Some(*from).filter(|it| *it > self.clock.wall());
                }
                let error = anyhow::Error::from(error);
                tracing::warn!(error = format!("{error:#}"), "the old certificate stays in use");
                Looked::Refused
            }
        }
    }
}

impl Files {
    fn unusable(&self, source: TlsError) -> ReloadError {
        ReloadError::Pair { chain: self.chain.clone(), key: self.key.clone(), source }
    }
}

impl Pair {
    async fn read(files: &Files) -> Result<Self, ReloadError> {
        Ok(Self { chain_pem: text(&files.chain).await?, key_pem: text(&files.key).await? })
    }

    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        // Fixed lengths first, so that no text can move from one file to the other unnoticed.
        hash.update(Sha256::digest(&self.chain_pem));
        hash.update(Sha256::digest(&self.key_pem));
        hash.finalize().into()
    }
}

async fn text(path: &Path) -> Result<String, ReloadError> {
    let at = |source| ReloadError::File { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).await.map_err(at)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).await.map_err(at)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(ReloadError::TooLong { path: path.to_owned() });
    }
    Ok(text)
}
