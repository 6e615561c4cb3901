//! The master keys: drawn once, sealed in one file that only its owner can read.
//!
//! The file holds up to [`MASTERS_MAX`] masters, newest first. Several auth services may use one
//! file, or copies of it: each looks every second whether it changed. Who changes it holds
//! `masters.lock` meanwhile, so that no change overwrites another. All calls block for file
//! access.

pub(crate) mod watch;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, ensure};
use auth_core::derive::{from_hex, to_hex};
use auth_core::keyring::MASTERS_MAX;
use auth_core::sealed;
use auth_core::secret::Secret;
use proto::keys::Master;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

const FILE: &str = "masters.sealed";
/// What earlier releases wrote.
const PLAIN_FILE: &str = "masters.json";
const LOCK: &str = "masters.lock";
const PURPOSE: &str = "auth masters";

/// What is sealed. Newest first.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    masters: Vec<Master>,
}

/// The file of the masters. `Debug` prints its place only.
#[derive(Clone, Debug)]
pub struct MastersFile {
    dir: PathBuf,
    seal: Secret,
}

/// Tells two versions of the file apart: a new one is another inode.
pub(crate) type Stamp = (u64, u64, SystemTime);

/// [`MASTERS_MAX`] masters are in use.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{MASTERS_MAX} masters are in use: one has to retire first, when no epoch names it")]
pub(crate) struct TooMany;

impl MastersFile {
    /// The file in `dir`, sealed with `seal`.
    ///
    /// # Errors
    /// When there is no secret, or one short enough to be guessed.
    pub fn new(dir: &Path, seal: &Secret) -> anyhow::Result<Self> {
        let bytes = seal.expose().len();
        ensure!(bytes > 0, "no secret seals the masters: set seal in [auth]");
        ensure!(
            bytes >= sealed::SECRET_BYTES_MIN,
            "the seal has {bytes} bytes, fewer than {}",
            sealed::SECRET_BYTES_MIN,
        );
        Ok(Self { dir: dir.to_owned(), seal: seal.clone() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// Reads the masters, newest first.
    ///
    /// # Errors
    /// When there is no file, when others could read it, or when it does not open.
    pub fn read(&self) -> anyhow::Result<Vec<Master>> {
        let path = self.path();
        let masters = check_folder(&self.dir).and_then(|()| self.open(&path));
        masters.with_context(|| format!("could not use {}", path.display()))
    }

    /// Reads the masters; seals those of an earlier release, or draws the first one, where there
    /// is no file.
    pub(crate) fn read_or_create(&self) -> anyhow::Result<Vec<Master>> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .with_context(|| format!("could not make the folder {}", self.dir.display()))?;
        check_folder(&self.dir)?;
        let lock = self.lock()?;
        self.seal_plain()?;
        if !self.path().try_exists()? {
            self.write(vec![draw(0)?])?;
        }
        drop(lock);
        self.read()
    }

    /// Draws another master and puts it first.
    pub(crate) fn rotate(&self, named: &BTreeSet<u8>) -> anyhow::Result<Vec<Master>> {
        self.change(|masters| {
            let kid = next_kid(masters, named).ok_or(TooMany)?;
            masters.insert(0, draw(kid)?);
            Ok(())
        })
    }

    /// Removes masters; the newest stays.
    pub(crate) fn retire(&self, kids: &[u8]) -> anyhow::Result<Vec<Master>> {
        self.change(|masters| {
            let newest = masters[0].kid;
            masters.retain(|it| it.kid == newest || !kids.contains(&it.kid));
            Ok(())
        })
    }

    /// Changes when the file does.
    pub(crate) fn stamp(&self) -> anyhow::Result<Stamp> {
        let path = self.path();
        let found = fs::metadata(&path).with_context(|| format!("no {}", path.display()))?;
        Ok((found.ino(), found.len(), found.modified()?))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Master>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Master>> {
        let lock = self.lock()?;
        let mut masters = self.read()?;
        change(&mut masters)?;
        self.write(masters.clone())?;
        drop(lock);
        Ok(masters)
    }

    /// Held until it is dropped; the system lets go of it when the process ends.
    fn lock(&self) -> anyhow::Result<File> {
        let path = self.dir.join(LOCK);
        let name = || format!("could not lock {}", path.display());
        let file = File::create(&path).with_context(name)?;
        file.lock().with_context(name)?;
        Ok(file)
    }

    fn open(&self, path: &Path) -> anyhow::Result<Vec<Master>> {
        let bytes = kit::private::read(path)?.context("there is no such file")?;
        let plain = sealed::open(PURPOSE, &self.seal, &bytes)?;
        parse(&plain)
    }

    fn write(&self, masters: Vec<Master>) -> anyhow::Result<()> {
        let plain = Zeroizing::new(serde_json::to_vec(&Kept { masters })?);
        let nonce = kit::seed::random_bytes()?;
        let path = self.path();
        kit::private::write(&path, &sealed::seal(PURPOSE, &self.seal, &plain, nonce))
            .with_context(|| format!("could not write {}", path.display()))
    }

    /// Seals the file of an earlier release, and removes it. Where both are there, an earlier
    /// start was interrupted between the two, or somebody put a backup back: what holds other
    /// masters is left for the operator to decide.
    fn seal_plain(&self) -> anyhow::Result<()> {
        let plain = self.dir.join(PLAIN_FILE);
        let name = || format!("could not seal {}", plain.display());
        let Some(bytes) = kit::private::read(&plain).with_context(name)? else { return Ok(()) };
        let bytes = Zeroizing::new(bytes);
        let masters = parse(&bytes).with_context(name)?;
        if self.path().try_exists()? {
            let kept = self.read()?;
            let is_kept = |it: &Master| kept.iter().any(|at| at.kid == it.kid && at.key == it.key);
            ensure!(
                masters.iter().all(is_kept),
                "{} and {} hold different masters: remove the wrong one",
                plain.display(),
                self.path().display(),
            );
        } else {
            self.write(masters)?;
        }
        fs::remove_file(&plain).with_context(name)?;
        tracing::info!(file = %plain.display(), "masters that lay open are sealed now");
        Ok(())
    }
}

fn parse(plain: &[u8]) -> anyhow::Result<Vec<Master>> {
    let Kept { masters } = serde_json::from_slice(plain).context("it is damaged")?;
    ensure!(!masters.is_empty(), "it holds no master");
    ensure!(masters.len() <= MASTERS_MAX, "it holds more than {MASTERS_MAX} masters");
    let is_key = |it: &Master| from_hex(&it.key).is_some();
    ensure!(masters.iter().all(is_key), "it holds a key that is not 32 bytes in hexadecimal");
    Ok(masters)
}

fn check_folder(dir: &Path) -> anyhow::Result<()> {
    let found = fs::metadata(dir).with_context(|| format!("no folder {}", dir.display()))?;
    let mode = found.permissions().mode() & 0o777;
    ensure!(
        mode & 0o077 == 0,
        "{} is not for its owner alone: its mode is {mode:o}, not 700",
        dir.display(),
    );
    Ok(())
}

fn draw(kid: u8) -> anyhow::Result<Master> {
    Ok(Master { kid, key: to_hex(&kit::seed::random_bytes()?) })
}

/// The number behind the newest that no master has.
fn next_kid(masters: &[Master], named: &BTreeSet<u8>) -> Option<u8> {
    if masters.len() >= MASTERS_MAX {
        return None;
    }
    let newest = masters.first()?.kid;
    let mut next = (1..=u8::MAX).map(|step| newest.wrapping_add(step));
    next.find(|kid| !named.contains(kid) && masters.iter().all(|it| it.kid != *kid))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn seal() -> Secret {
        Secret::new("a seal that is long enough for everyone".to_owned())
    }

    fn file(dir: &TempDir) -> MastersFile {
        MastersFile::new(&dir.path().join("auth"), &seal()).unwrap()
    }

    fn kids(masters: &[Master]) -> Vec<u8> {
        masters.iter().map(|it| it.kid).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn masters_are_drawn_once_and_kept_sealed() {
        let dir = TempDir::new().unwrap();
        let file = file(&dir);

        let first = file.read_or_create().unwrap();
        let second = file.read_or_create().unwrap();

        assert_eq!(first[0].key.len(), 64);
        assert_eq!(first[0].key, second[0].key);
        assert_eq!((mode(&file.path()), mode(&file.dir)), (0o600, 0o700));
        let bytes = fs::read(file.path()).unwrap();
        assert!(!bytes.windows(64).any(|it| it == first[0].key.as_bytes()));
        assert!(!bytes.windows(4).any(|it| it == b"kid\""));
    }

    #[test]
    fn a_file_or_folder_that_others_can_read_is_not_used() {
        let dir = TempDir::new().unwrap();
        let file = file(&dir);
        file.read_or_create().unwrap();
        let open = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            format!("{:#}", file.read_or_create().unwrap_err())
        };

        let readable = open(&file.path(), 0o640);
        let listable = open(&file.dir, 0o750);

        assert!(readable.contains("its mode is 640, not 600"), "{readable}");
        assert!(listable.contains("its mode is 750, not 700"), "{listable}");
    }

    #[test]
    fn a_damaged_file_or_another_seal_is_named_and_nothing_is_replaced() {
        let dir = TempDir::new().unwrap();
        let file = file(&dir);
        file.read_or_create().unwrap();
        let other = Secret::new("another seal that is just as long as it".to_owned());
        let other = MastersFile::new(&file.dir, &other).unwrap();

        let closed = format!("{:#}", other.read_or_create().unwrap_err());
        kit::private::write(&file.path(), b"{").unwrap();
        let damaged = format!("{:#}", file.read_or_create().unwrap_err());

        assert!(closed.contains("another secret sealed it"), "{closed}");
        assert!(damaged.contains("it is not sealed"), "{damaged}");
        assert_eq!(fs::read(file.path()).unwrap(), b"{");
    }

    #[test]
    fn a_plain_file_of_an_earlier_release_is_sealed_and_removed() {
        let dir = TempDir::new().unwrap();
        let file = file(&dir);
        let plain = file.dir.join(PLAIN_FILE);
        let text = format!(r#"{{"masters": [{{"kid": 3, "key": "{}"}}]}}"#, "0a".repeat(32));
        kit::private::write(&plain, text.as_bytes()).unwrap();

        let masters = file.read_or_create().unwrap();

        assert_eq!((masters[0].kid, masters[0].key.as_str()), (3, "0a".repeat(32).as_str()));
        assert!(!plain.exists());

        // The same again is what an interrupted start leaves.
        kit::private::write(&plain, text.as_bytes()).unwrap();
        assert_eq!(kids(&file.read_or_create().unwrap()), [3]);
        assert!(!plain.exists());

        kit::private::write(&plain, text.replace("0a", "0b").as_bytes()).unwrap();
        let refused = format!("{:#}", file.read_or_create().unwrap_err());
        assert!(refused.contains("hold different masters"), "{refused}");
        assert!(plain.exists());
    }

    #[test]
    fn a_rotation_puts_the_next_number_first_and_a_retired_one_goes() {
        let dir = TempDir::new().unwrap();
        let file = file(&dir);
        file.read_or_create().unwrap();
        let before = file.stamp().unwrap();

        assert_eq!(kids(&file.rotate(&BTreeSet::new()).unwrap()), [1, 0]);
        assert_ne!(file.stamp().unwrap(), before);
        assert_eq!(kids(&file.rotate(&BTreeSet::new()).unwrap()), [2, 1, 0]);
        assert_eq!(kids(&file.retire(&[0, 2]).unwrap()), [2, 1]);
        assert_eq!(kids(&file.read().unwrap()), [2, 1]);

        for _ in 2..MASTERS_MAX {
            file.rotate(&BTreeSet::new()).unwrap();
        }
        assert!(file.rotate(&BTreeSet::new()).unwrap_err().is::<TooMany>());
    }

    #[test]
    fn numbers_come_round_and_skip_those_in_use() {
        let masters = |kids: &[u8]| -> Vec<Master> {
            kids.iter().map(|&kid| Master { kid, key: String::new() }).collect()
        };

        let none = BTreeSet::new();
        assert_eq!(next_kid(&masters(&[255, 0, 1]), &none), Some(2));
        assert_eq!(next_kid(&masters(&[7, 5]), &none), Some(8));
        assert_eq!(next_kid(&masters(&[8, 7, 6, 5, 4, 3, 2, 1]), &none), None);
        // Epochs name it, whoever drew it.
        assert_eq!(next_kid(&masters(&[7, 5]), &BTreeSet::from([8])), Some(9));
    }

    #[test]
    fn nothing_is_sealed_with_a_secret_that_can_be_guessed() {
        let refused = |seal: &str| {
            let seal = Secret::new(seal.to_owned());
            MastersFile::new(Path::new("data"), &seal).unwrap_err().to_string()
        };

        assert!(refused("").contains("set seal in [auth]"));
        assert!(refused("short").contains("fewer than 32"));
    }
}
