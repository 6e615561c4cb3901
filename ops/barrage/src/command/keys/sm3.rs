//! `barrage keys sm3`: the SM3 of local files, to compare with what their maker published.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use auth_core::oracle::sm3_of_trusted;
use clap::Args;

use crate::cli;

/// Longest file. It is read whole, and its words take about eight times its length.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Args, Debug)]
pub(super) struct Sm3 {
    /// Files of this machine, at most 64 MiB each
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

impl Sm3 {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        for file in &self.files {
            let hash = hash(file).with_context(|| format!("cannot hash {}", file.display()))?;
            cli::line(&format!("{}  {}", hex::encode(hash), file.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn hash(file: &Path) -> anyhow::Result<[u8; 32]> {
    let bytes = fs::metadata(file)?.len();
    ensure!(bytes <= FILE_BYTES_MAX, "it has {bytes} bytes, more than {FILE_BYTES_MAX}");
    Ok(sm3_of_trusted(&fs::read(file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first example of GB/T 32905, appendix A.
    #[test]
    fn the_hash_of_abc_is_the_standard_s() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"abc").unwrap();

        let hash = hash(file.path()).unwrap();

        assert_eq!(
            hex::encode(hash),
            "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0"
        );
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_before_it_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(FILE_BYTES_MAX + 1).unwrap();

        let refused = hash(file.path());

        assert!(refused.unwrap_err().to_string().contains("more than"));
    }
}
