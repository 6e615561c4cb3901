//! The files of a ledger: `{app}/{when it was opened}.jsonl.gz`, in time's order by name.
//!
//! A file is written by one hand, then closed, and never written again; only an erasure puts
//! another one in its place. Everything here blocks.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chatserver_core::ledger::{Damage, Erasure, Members, pack};
use kit::private;
use parking_lot::Mutex;
use proto::id::AppId;
use proto::time::Wall;
use sha2::{Digest, Sha256};

use super::number;

/// A file is closed when it is as old: no record in it is later than that behind its name.
pub(super) const FILE_LIFE: Duration = Duration::from_hours(24);
/// Behind a name's digits.
const SUFFIX: &str = ".jsonl.gz";
/// Folder of erasures that are not done.
const ERASURES: &str = "erasures";
/// Files opened in one millisecond, by a clock that went back.
const NAMES_MAX: u64 = 1000;

/// The folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// Whoever replaces or removes files holds it.
    turn: Mutex<()>,
}

/// A file that lies there.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct File {
    /// In its name.
    pub(super) opened_at: Wall,
    pub(super) app: AppId,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// What an erasure did to a file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Erased {
    /// Records that are gone.
    pub(super) records: u64,
    /// Bytes that held no record, and are gone as well.
    pub(super) damaged: u64,
}

impl Folder {
    /// Takes a folder that no other process uses. What an erasure left that was cut off is removed.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        private_folder(root)?;
        private::sweep(&root.join(ERASURES))?;
        for folder in fs::read_dir(root)? {
            let folder = folder?;
            if app(&folder).is_some() {
                private::sweep(&folder.path())?;
            }
        }
        Ok(Self { root: root.to_owned(), turn: Mutex::default() })
    }

    /// A new file of an app, opened now.
    pub(super) fn create(&self, app: AppId, now: Wall) -> io::Result<(File, fs::File)> {
        let folder = self.root.join(app.to_string());
        private_folder(&folder)?;
        for opened_at in (now.0..now.0 + NAMES_MAX).map(Wall) {
            let path = folder.join(format!("{:015}{SUFFIX}", opened_at.0));
            match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    // Until the folder is on disk, a power cut takes the file's name away.
                    if let Err(error) = fs::File::open(&folder).and_then(|it| it.sync_all()) {
                        // An empty file for each try would fill the disk.
                        fs::remove_file(&path).ok();
                        return Err(error);
                    }
                    return Ok((File { opened_at, app, path, bytes: 0 }, file));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// All files, the oldest first. What is no file of a ledger is not looked at.
    pub(super) fn list(&self) -> io::Result<Vec<File>> {
        let mut files = Vec::new();
        for folder in fs::read_dir(&self.root)? {
            let folder = folder?;
            let Some(app) = app(&folder) else { continue };
            for file in fs::read_dir(folder.path())? {
                let file = file?;
                let name = file.file_name();
                let digits = name.to_str().and_then(|it| it.strip_suffix(SUFFIX));
                let Some(opened_at) = digits.and_then(|it| it.parse().ok()).map(Wall) else {
                    continue;
                };
                let bytes = file.metadata()?.len();
                files.push(File { opened_at, app, path: file.path(), bytes });
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    /// Removes a file.
    pub(super) fn remove(&self, file: &File) -> io::Result<()> {
        let _turn = self.turn.lock();
        fs::remove_file(&file.path)
    }

    /// Rewrites a closed file without the records that erasures take.
    pub(super) fn erase(&self, file: &File, erasures: &[Erasure]) -> io::Result<Erased> {
        let _turn = self.turn.lock();
        let whole = match file.read() {
            Ok(whole) => whole,
            // Its time was over.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Erased::default()),
            Err(error) => return Err(error),
        };
        let mut erased = Erased::default();
        let mut kept = Vec::new();
        for member in Members::new(&whole) {
            match member {
                Ok(mut records) => {
                    let count = records.len();
                    records.retain(|it| !erasures.iter().any(|erasure| erasure.takes(it)));
                    erased.records += number(count - records.len());
                    kept.extend(pack(&records));
                }
                Err(Damage { bytes }) => erased.damaged += number(bytes),
            }
        }
        if erased.records > 0 {
            private::write(&file.path, &kept)?;
        }
        Ok(erased)
    }

    /// Erasures that are not done.
    pub(super) fn erasures(&self) -> io::Result<Vec<Erasure>> {
        let folder = match fs::read_dir(self.root.join(ERASURES)) {
            Ok(folder) => folder,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut erasures = Vec::new();
        for file in folder {
            let path = file?.path();
            if path.extension().is_some_and(|it| it == "json") {
                let bytes = private::read(&path)?.unwrap_or_default();
                erasures.push(serde_json::from_slice(&bytes)?);
            }
        }
        erasures.sort_unstable();
        Ok(erasures)
    }

    /// Keeps an erasure until it is done.
    pub(super) fn keep_erasure(&self, erasure: &Erasure) -> io::Result<()> {
        private::write(&self.erasure_path(erasure), &serde_json::to_vec(erasure)?)
    }

    /// An erasure is done; also one that was forgotten before.
    pub(super) fn forget_erasure(&self, erasure: &Erasure) -> io::Result<()> {
        match fs::remove_file(self.erasure_path(erasure)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Names of accounts may hold what no file's name may.
    fn erasure_path(&self, erasure: &Erasure) -> PathBuf {
        let Erasure { app, account, until } = erasure;
        let name = Sha256::digest(format!("{app}/{account}"));
        self.root.join(ERASURES).join(format!("{:015}-{}.json", until.0, hex::encode(name)))
    }
}

impl File {
    /// The file up to the length that it had when it was listed: what is appended later may be
    /// there in part only.
    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        fs::File::open(&self.path)?.take(self.bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// No record in it is later.
    pub(super) fn ends_by(&self) -> Wall {
        self.opened_at + FILE_LIFE
    }
}

/// Whose folder it is; none: no app's.
fn app(folder: &fs::DirEntry) -> Option<AppId> {
    folder.file_name().to_str().and_then(|it| it.parse().ok()).map(AppId)
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
