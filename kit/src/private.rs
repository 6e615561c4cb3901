//! Files for their owner alone: keys, and copies of keys.
//!
//! Both calls block for file access.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::seed::random_bytes;

/// Bytes of one such file: all keys of a link are a few MiB.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Reads a file; `None` if there is none.
///
/// # Errors
/// When its mode lets others at it, when it is longer than [`FILE_BYTES_MAX`], or as the system says.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let why = format!("it is not for its owner alone: its mode is {mode:o}, not 600");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes))
}

/// Writes a file with mode 600, in place of an older one, whole or not at all. Folders that are
/// missing are made with mode 700.
///
/// # Errors
/// As the system says.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // Two writers at once must not meet in one file.
    let fresh = path.with_extension(format!("{:016x}.new", u64::from_le_bytes(random_bytes()?)));
    let written = write_fresh(&fresh, bytes).and_then(|()| fs::rename(&fresh, path));
    let written = written.and_then(|()| path.parent().map_or(Ok(()), sync));
    if written.is_err() {
        // Nothing more can be done about what is left of it.
        fs::remove_file(&fresh).ok();
    }
    written
}

/// Removes what [`write()`] left in a folder when the process was killed in it; gives how many files
/// that were. Nobody may be writing there.
///
/// # Errors
/// As the system says, but for a folder that is missing.
pub fn sweep(folder: &Path) -> io::Result<usize> {
    let files = match fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut removed = 0;
    for file in files {
        let file = file?;
        if file.file_name().to_str().is_some_and(is_fresh) {
            fs::remove_file(file.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Whether a file of this name waits to be put in another's place.
fn is_fresh(name: &str) -> bool {
    let digits = name.strip_suffix(".new").and_then(|it| it.rsplit_once('.')).map(|it| it.1);
    digits.is_some_and(|it| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Until the folder is on disk, a power cut brings the older file back. An empty name is the
/// current folder.
fn sync(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

fn write_fresh(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_written_is_read_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys/copy.sealed");

        assert_eq!(read(&path).unwrap(), None);
        write(&path, b"first").unwrap();
        write(&path, b"second").unwrap();

        assert_eq!(read(&path).unwrap().unwrap(), b"second");
        assert_eq!((mode(&path), mode(&dir.path().join("keys"))), (0o600, 0o700));
        assert_eq!(fs::read_dir(dir.path().join("keys")).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_open_to_others_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        write(&path, b"keys").unwrap();

        for open in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            let refused = read(&path).unwrap_err();

            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            assert!(refused.to_string().contains(&format!("its mode is {open:o}")), "{refused}");
        }
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1.jsonl.0123456789abcdef.new", "copy", "notes.new", "x.0123.new"] {
            fs::write(dir.path().join(name), b"").unwrap();
        }

        assert_eq!(sweep(dir.path()).unwrap(), 1);
        assert_eq!(sweep(dir.path()).unwrap(), 0);
        assert_eq!(sweep(&dir.path().join("missing")).unwrap(), 0);

        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_folder_in_the_way_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), b"").unwrap();

        assert!(write(&path, b"keys").is_err());

        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
