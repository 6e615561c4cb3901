//! The master keys: drawn once, kept in one file that only its owner can read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, ensure};
use auth_core::derive::to_hex;
use proto::keys::{Master, Masters};
use serde::{Deserialize, Serialize};

const FILE: &str = "masters.json";

/// The file. Newest first; a new master is added by putting it first and starting again.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    masters: Vec<Master>,
}

/// Reads the masters in `dir`, or draws the first one.
///
/// Blocks for file access: call it before serving.
///
/// # Errors
/// When the file is damaged, or when others could read it.
pub(crate) fn load_or_create(dir: &Path, interval_s: u32) -> anyhow::Result<Masters> {
    let path = dir.join(FILE);
    if !path.try_exists().with_context(|| format!("could not look for {}", path.display()))? {
        create(dir, &path).with_context(|| format!("could not write {}", path.display()))?;
    }
    let masters = load(&path).with_context(|| format!("could not use {}", path.display()))?;
    Ok(Masters { interval_s, masters })
}

fn load(path: &Path) -> anyhow::Result<Vec<Master>> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    ensure!(mode & 0o077 == 0, "others can read it: its mode is {mode:o}, not 600");
    let kept: Kept = serde_json::from_slice(&fs::read(path)?)?;
    ensure!(!kept.masters.is_empty(), "it holds no master");
    Ok(kept.masters)
}

/// The file appears whole or not at all; one that is there already stays.
fn create(dir: &Path, path: &Path) -> anyhow::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let key = to_hex(&kit::seed::random_bytes()?);
    let kept = Kept { masters: vec![Master { kid: 0, key }] };
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(&serde_json::to_vec_pretty(&kept)?)?;
    file.sync_all()?;
    let linked = fs::hard_link(&fresh, path);
    fs::remove_file(&fresh)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn masters_are_drawn_once_and_kept() {
        let dir = TempDir::new().unwrap();
        let data = dir.path().join("auth");

        let first = load_or_create(&data, 600).unwrap();
        let second = load_or_create(&data, 600).unwrap();

        assert_eq!(first.masters[0].key.len(), 64);
        assert_eq!(first.masters[0].key, second.masters[0].key);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&data.join(FILE)), 0o600);
        assert_eq!(mode(&data), 0o700);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used() {
        let dir = TempDir::new().unwrap();
        load_or_create(dir.path(), 600).unwrap();
        let path = dir.path().join(FILE);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = load_or_create(dir.path(), 600).unwrap_err();

        assert!(format!("{refused:#}").contains("its mode is 640"), "{refused:#}");
    }

    #[test]
    fn a_damaged_file_is_not_replaced() {
        let dir = TempDir::new().unwrap();
        load_or_create(dir.path(), 600).unwrap();
        let path = dir.path().join(FILE);

        fs::write(&path, "{").unwrap();

        assert!(load_or_create(dir.path(), 600).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
    }
}
