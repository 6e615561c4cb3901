//! Single-use tokens that were used, on disk: a node that starts again takes none of them twice.
//!
//! A token's use is appended before its session begins, so that nothing is lost when the process is
//! killed; a power cut may lose some seconds. Two files take turns, so that neither grows for ever.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use auth_core::token::TTL_S_MAX;
use parking_lot::Mutex;
use proto::policy::SKEW_S_MAX;
use proto::time::Wall;

const FILE: &str = "used-tokens";
const EARLIER_FILE: &str = "used-tokens.earlier";
/// The second in which it may be forgotten, and the token's number.
const RECORD_BYTES: usize = 4 + 16;
/// What is noted now has ended within this time: a token may be minted ahead of this clock by the
/// skew, and is taken behind its life by as much.
const LIFE: Duration = Duration::from_secs(TTL_S_MAX as u64 + 2 * SKEW_S_MAX as u64);

/// The use of a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Use {
    pub(crate) jti: [u8; 16],
    /// When the token passes nowhere any more.
    pub(crate) ends: Wall,
}

/// Where uses are noted.
#[derive(Debug)]
pub(crate) struct Used {
    folder: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    file: File,
    since: Wall,
}

impl Used {
    /// Reads what an earlier process noted and still counts, at most `uses_max` of each file, and
    /// goes on. Blocks for file access.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn open(
        folder: &Path,
        uses_max: usize,
        now: Wall,
    ) -> anyhow::Result<(Self, Vec<Use>)> {
        let name = || format!("could not keep used tokens in {}", folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(name)?;
        let mut uses = read(&folder.join(EARLIER_FILE), uses_max).with_context(name)?;
        uses.extend(read(&folder.join(FILE), uses_max).with_context(name)?);
        uses.retain(|it| it.ends >= now);
        // A record that was cut off would shift all that follow it: nothing is appended there.
        let bytes: Vec<u8> = uses.iter().flat_map(|it| it.record()).collect();
        kit::private::write(&folder.join(EARLIER_FILE), &bytes).with_context(name)?;
        let file = begin(folder).with_context(name)?;
        let current = Mutex::new(Current { file, since: now });
        Ok((Self { folder: folder.to_owned(), current }, uses))
    }

    /// Notes a use: one write of 20 bytes, of which the system keeps a copy in memory.
    ///
    /// # Errors
    /// As the system says: then a restart may forget the use, and nothing else is lost.
    pub(crate) fn note(&self, use_: Use, now: Wall) -> io::Result<()> {
        let mut current = self.current.lock();
        if now.since(current.since) > LIFE {
            fs::rename(self.folder.join(FILE), self.folder.join(EARLIER_FILE))?;
            *current = Current { file: begin(&self.folder)?, since: now };
        }
        current.file.write_all(&use_.record())
    }
}

impl Use {
    fn record(&self) -> [u8; RECORD_BYTES] {
        let mut record = [0; RECORD_BYTES];
        let ends_s = u32::try_from(self.ends.unix_s()).unwrap_or(u32::MAX);
        record[..4].copy_from_slice(&ends_s.to_be_bytes());
        record[4..].copy_from_slice(&self.jti);
        record
    }

    fn of(record: &[u8; RECORD_BYTES]) -> Self {
        let [a, b, c, d, jti @ ..] = *record;
        Self { jti, ends: Wall(u64::from(u32::from_be_bytes([a, b, c, d])) * 1000) }
    }
}

/// An empty file.
fn begin(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(folder.join(FILE))
}

fn read(path: &Path, uses_max: usize) -> io::Result<Vec<Use>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let bytes_max = uses_max.saturating_mul(RECORD_BYTES) as u64;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    let (records, _cut_off) = bytes.as_chunks();
    Ok(records.iter().map(Use::of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = Wall(1_000_000);

    fn use_of(number: u8, ends_s: u64) -> Use {
        Use { jti: [number; 16], ends: Wall(ends_s * 1000) }
    }

    #[test]
    fn what_was_noted_is_known_to_the_next_process_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (used, none) = Used::open(folder.path(), 10, NOW).unwrap();
        used.note(use_of(1, 1_060), NOW).unwrap();
        used.note(use_of(2, 1_120), NOW).unwrap();
        drop(used);

        let (again, both) = Used::open(folder.path(), 10, NOW).unwrap();
        again.note(use_of(3, 1_200), NOW).unwrap();
        drop(again);
        let (_, late) = Used::open(folder.path(), 10, Wall(1_061_000)).unwrap();

        assert_eq!(none, []);
        assert_eq!(both, [use_of(1, 1_060), use_of(2, 1_120)]);
        assert_eq!(late, [use_of(2, 1_120), use_of(3, 1_200)]);
    }

    #[test]
    fn a_record_that_was_cut_off_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (used, _) = Used::open(folder.path(), 10, NOW).unwrap();
        used.note(use_of(1, 1_060), NOW).unwrap();
        used.note(use_of(2, 1_060), NOW).unwrap();
        let path = folder.path().join(FILE);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();

        let (again, first) = Used::open(folder.path(), 10, NOW).unwrap();
        again.note(use_of(3, 1_060), NOW).unwrap();
        let (_, whole) = Used::open(folder.path(), 10, NOW).unwrap();

        assert_eq!(first, [use_of(1, 1_060)]);
        assert_eq!(whole, [use_of(1, 1_060), use_of(3, 1_060)]);
    }

    #[test]
    fn files_take_turns_and_what_counts_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (used, _) = Used::open(folder.path(), 10, NOW).unwrap();
        let later = NOW + LIFE + Duration::from_secs(1);
        let last = later + LIFE + Duration::from_secs(1);
        used.note(use_of(1, 1_060), NOW).unwrap();
        used.note(use_of(2, last.unix_s()), later).unwrap();
        used.note(use_of(3, last.unix_s()), last).unwrap();

        let bytes: u64 = [FILE, EARLIER_FILE]
            .map(|it| fs::metadata(folder.path().join(it)).unwrap().len())
            .iter()
            .sum();
        let (_, uses) = Used::open(folder.path(), 10, last).unwrap();

        assert_eq!(bytes, 2 * RECORD_BYTES as u64);
        assert_eq!(uses, [use_of(2, last.unix_s()), use_of(3, last.unix_s())]);
    }
}
