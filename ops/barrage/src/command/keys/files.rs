//! The files that commands make keys and certificates in.
//!
//! They have fixed names inside a folder, keys have mode 600, and nothing is ever overwritten.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::cli;

#[derive(Args, Debug)]
pub(super) struct Out {
    /// Folder for the files; made if missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(super) out: PathBuf,
}

/// One kind of file, and what its reader does with it.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) mode: u32,
    pub(super) what: &'static str,
}

/// Writes all files or, where one of them is already there, none.
pub(super) fn write(dir: &Path, files: &[(File, &str)]) -> anyhow::Result<()> {
    for (file, _) in files {
        let path = dir.join(file.name);
        if path.symlink_metadata().is_ok() {
            bail!(
                "{} is already there and nothing was written: move it away, or name another \
                 folder with --out",
                path.display()
            );
        }
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    for (file, text) in files {
        let path = dir.join(file.name);
        create(&path, file.mode, text)
            .with_context(|| format!("cannot write {}", path.display()))?;
        cli::line(&format!("wrote {}  ({})", path.display(), file.what));
    }
    Ok(())
}

fn create(path: &Path, mode: u32, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
