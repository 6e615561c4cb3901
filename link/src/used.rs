//! Single-use tokens that were used, on disk: a node that starts again takes none of them twice.
//!
//! A token's use is written before its session begins, so that nothing is lost when the process is
//! killed; a power cut may lose some seconds. Two files take turns, so that neither grows for ever.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use auth_core::token::TTL_S_MAX;
use parking_lot::Mutex;
use proto::policy::SKEW_S_MAX;
use proto::time::Wall;

/// Those that take turns.
const FILES: [&str; 2] = ["used-tokens", "used-tokens.other"];
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

/// The file that is written.
#[derive(Debug)]
struct Current {
    /// Which of [`FILES`].
    turn: usize,
    file: File,
    /// Of whole records.
    bytes: u64,
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
        let [first, second] = FILES.map(|it| folder.join(it));
        let name = || format!("could not keep used tokens in {}", folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(name)?;
        let mut uses = read(&second, uses_max).with_context(name)?;
        uses.extend(read(&first, uses_max).with_context(name)?);
        // What ends later than anything can was never noted.
        uses.retain(|it| (now..=now + LIFE).contains(&it.ends));
        let bytes: Vec<u8> = uses.iter().flat_map(|it| it.record()).collect();
        kit::private::write(&second, &bytes).with_context(name)?;
        let current = Current::begin(folder, 0, now).with_context(name)?;
        Ok((Self { folder: folder.to_owned(), current: Mutex::new(current) }, uses))
    }

    /// Notes a use: one write of 20 bytes, of which the system keeps a copy in memory.
    ///
    /// # Errors
    /// As the system says: then a restart may forget the use, and nothing else is lost.
    pub(crate) fn note(&self, use_: Use, now: Wall) -> io::Result<()> {
        let mut current = self.current.lock();
        if now.since(current.since) > LIFE {
            // All that the other file holds has ended by now.
            let turn = (current.turn + 1) % FILES.len();
            *current = Current::begin(&self.folder, turn, now)?;
        }
        // Part of a record, left by a write that failed, is written over by the next.
        let Current { file, bytes, .. } = &mut *current;
        file.write_all_at(&use_.record(), *bytes)?;
        *bytes += RECORD_BYTES as u64;
        Ok(())
    }
}

impl Current {
    /// An empty file.
    fn begin(folder: &Path, turn: usize, now: Wall) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(folder.join(FILES[turn]))?;
        Ok(Self { turn, file, bytes: 0, since: now })
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
    use std::fs;

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
        let path = folder.path().join(FILES[0]);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();

        let (again, first) = Used::open(folder.path(), 10, NOW).unwrap();
        again.note(use_of(3, 1_060), NOW).unwrap();
        let (_, whole) = Used::open(folder.path(), 10, NOW).unwrap();

        assert_eq!(first, [use_of(1, 1_060)]);
        assert_eq!(whole, [use_of(1, 1_060), use_of(3, 1_060)]);
    }

    #[test]
    fn a_write_that_failed_halfway_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (used, _) = Used::open(folder.path(), 10, NOW).unwrap();
        used.note(use_of(1, 1_060), NOW).unwrap();
        // What a full disk leaves.
        let part = &use_of(9, 1_060).record()[..7];
        used.current.lock().file.write_all_at(part, RECORD_BYTES as u64).unwrap();
        used.note(use_of(2, 1_060), NOW).unwrap();

        let (_, uses) = Used::open(folder.path(), 10, NOW).unwrap();

        assert_eq!(uses, [use_of(1, 1_060), use_of(2, 1_060)]);
    }

    #[test]
    fn what_cannot_have_been_noted_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let (used, _) = Used::open(folder.path(), 10, NOW).unwrap();
        let last = (NOW + LIFE).unix_s();
        used.note(use_of(1, last), NOW).unwrap();
        used.note(use_of(2, last + 1), NOW).unwrap();

        let (_, uses) = Used::open(folder.path(), 10, NOW).unwrap();

        assert_eq!(uses, [use_of(1, last)]);
    }

    #[test]
    fn a_file_that_cannot_be_begun_loses_nothing_and_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (used, _) = Used::open(folder.path(), 10, NOW).unwrap();
        let later = NOW + LIFE + Duration::from_secs(1);
        let next = folder.path().join(FILES[1]);
        used.note(use_of(1, later.unix_s()), NOW).unwrap();
        fs::remove_file(&next).unwrap();
        fs::create_dir(&next).unwrap();

        let failed = used.note(use_of(2, later.unix_s()), later);
        fs::remove_dir(&next).unwrap();
        used.note(use_of(3, later.unix_s()), later).unwrap();
        let (_, uses) = Used::open(folder.path(), 10, later).unwrap();

        assert!(failed.is_err());
        assert_eq!(uses, [use_of(3, later.unix_s()), use_of(1, later.unix_s())]);
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

        let bytes: u64 =
            FILES.map(|it| fs::metadata(folder.path().join(it)).unwrap().len()).iter().sum();
        let (_, uses) = Used::open(folder.path(), 10, last).unwrap();

        assert_eq!(bytes, 2 * RECORD_BYTES as u64);
        assert_eq!(uses, [use_of(2, last.unix_s()), use_of(3, last.unix_s())]);
    }
}
