//! A recording that is being written, and how its files are read.
//!
//! What is appended is on the disk within five seconds. What a stopped machine or process left
//! unfinished at the end of a file is cut off before more is appended.

use std::fs;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::vec;

use broadcaster_core::archive::{self, HEADING_BYTES, Heading, MAGIC, slot_start};
use proto::id::{Gen, SlotNo};
use proto::segment::Segment;
use proto::time::Wall;

use super::{ENDED, HOUR, Recording, sync_folder};

/// Milliseconds of what one file holds.
const HOUR_MS: u64 = 3_600_000;

/// What a folder holds under a number and this ending, by number; nothing if it is not there.
pub(super) fn numbered(folder: &Path, ending: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|it| it.strip_suffix(ending)?.parse::<u64>().ok());
        found.extend(number.map(|it| (it, folder.join(&name))));
    }
    found.sort();
    Ok(found)
}

pub(super) fn file_in(folder: &Path, hour: u64) -> PathBuf {
    folder.join(format!("{hour}{HOUR}"))
}

/// The records of one file.
#[derive(Debug)]
pub struct Records {
    file: BufReader<fs::File>,
    /// Where the next record begins.
    at: u64,
    /// Where the last good record ends.
    good: u64,
    damaged: u64,
}

impl Records {
    /// Opens a file. One that does not begin as such a file does has no records.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::new(fs::File::open(path)?);
        let mut magic = [0; MAGIC.len()];
        let is_whole = fill(&mut file, &mut magic)? && magic == MAGIC;
        let at = if is_whole { MAGIC.len() as u64 } else { 0 };
        if !is_whole {
            file.seek(SeekFrom::End(0))?;
        }
        Ok(Self { file, at, good: at, damaged: 0 })
    }

    /// The next slot; `None` at the end, or where the file is cut off. What is damaged amid the file
    /// is passed over.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn step(&mut self) -> io::Result<Option<Segment>> {
        loop {
            let mut heading = [0; HEADING_BYTES];
            if !fill(&mut self.file, &mut heading)? {
                return Ok(None);
            }
            let Some(heading) = Heading::parse(heading) else {
                return Ok(None);
            };
            let mut body = vec![0; heading.bytes];
            if !fill(&mut self.file, &mut body)? {
                return Ok(None);
            }
            self.at += (HEADING_BYTES + heading.bytes) as u64;
            let segment = heading.matches(&body).then(|| archive::open(&body).ok()).flatten();
            if let Some(segment) = segment {
                self.good = self.at;
                return Ok(Some(segment));
            }
            self.damaged += 1;
        }
    }

    /// Records so far whose bytes are not what was written, amid the file or at its end.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.damaged
    }
}

/// False where the file ends before.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The slots of a recording, one file after the other.
#[derive(Debug)]
pub struct Slots {
    files: vec::IntoIter<PathBuf>,
    records: Option<Records>,
}

impl Slots {
    pub(super) fn new(files: Vec<PathBuf>) -> Self {
        Self { files: files.into_iter(), records: None }
    }

    fn step(&mut self) -> io::Result<Option<Segment>> {
        loop {
            if let Some(segment) = self.records.as_mut().map(Records::step).transpose()?.flatten() {
                return Ok(Some(segment));
            }
            let Some(path) = self.files.next() else {
                return Ok(None);
            };
            // Its time may be over since the folder was looked through.
            self.records = match Records::open(&path) {
                Ok(records) => Some(records),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
        }
    }
}

impl Iterator for Slots {
    type Item = io::Result<Segment>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// A recording that goes on.
#[derive(Debug)]
pub(super) struct Tape {
    recording: Recording,
    /// The file that is appended to, and how long it is.
    hour: u64,
    bytes: u64,
    /// The last slot that was recorded, or had nothing to be recorded.
    last: Option<(Gen, SlotNo)>,
    /// When that slot began.
    last_at: Wall,
    is_dirty: bool,
}

impl Tape {
    /// A new recording below the room's folder.
    pub(super) fn begin(room: &Path, start: Wall) -> io::Result<Self> {
        let folder = room.join(start.to_string());
        fs::create_dir_all(&folder)?;
        sync_folder(room)?;
        let recording = Recording { folder, start };
        Ok(Self { recording, hour: 0, bytes: 0, last: None, last_at: start, is_dirty: false })
    }

    /// Goes on with a recording.
    pub(super) fn resume(recording: Recording) -> io::Result<Self> {
        let last_at = recording.start;
        let mut tape = Self { recording, hour: 0, bytes: 0, last: None, last_at, is_dirty: false };
        tape.reload()?;
        tape.is_dirty = tape.bytes > 0;
        Ok(tape)
    }

    /// Finds out where the recording ends, and cuts off what is unfinished.
    pub(super) fn reload(&mut self) -> io::Result<()> {
        let files = numbered(&self.recording.folder, HOUR)?;
        for (number, (hour, path)) in files.iter().rev().enumerate() {
            let mut records = Records::open(path)?;
            let mut last = None;
            while let Some(segment) = records.step()? {
                let header = segment.header;
                last = Some(((header.gen_no, header.slot), slot_start(&header)));
            }
            if number == 0 {
                let file = fs::File::options().write(true).open(path)?;
                file.set_len(records.good)?;
                (self.hour, self.bytes) = (*hour, records.good);
            }
            if let Some((last, last_at)) = last {
                self.last = self.last.max(Some(last));
                self.last_at = last_at;
                break;
            }
        }
        Ok(())
    }

    pub(super) const fn last(&self) -> Option<(Gen, SlotNo)> {
        self.last
    }

    pub(super) const fn last_at(&self) -> Wall {
        self.last_at
    }

    /// Whether all that was appended lasts.
    pub(super) const fn is_synced(&self) -> bool {
        !self.is_dirty
    }

    pub(super) const fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Appends slots, newer than the last one.
    pub(super) fn append(&mut self, segments: &[Segment]) -> io::Result<()> {
        for segment in segments {
            let header = &segment.header;
            let place = (header.gen_no, header.slot);
            if self.last.is_some_and(|it| place <= it) {
                continue;
            }
            let is_first = self.last.is_none_or(|it| it.0 < header.gen_no);
            if is_first || !segment.items.is_empty() {
                // Hours never go back, though clocks may: files are read in their order.
                let hour = (slot_start(header).0 / HOUR_MS).max(self.hour);
                if hour > self.hour {
                    self.sync()?;
                    (self.hour, self.bytes) = (hour, 0);
                }
                self.write(segment)?;
            }
            (self.last, self.last_at) = (Some(place), slot_start(header));
        }
        Ok(())
    }

    fn write(&mut self, segment: &Segment) -> io::Result<()> {
        let Some(record) = archive::record(segment) else {
            return Err(io::Error::new(ErrorKind::FileTooLarge, "a slot is too large"));
        };
        let path = self.recording.file(self.hour);
        let mut file = fs::File::options().append(true).create(true).open(path)?;
        if file.metadata()?.len() != self.bytes {
            // Another process wrote here, or an erasure made it shorter.
            return Err(io::Error::other("the file was changed by another"));
        }
        let magic: &[u8] = if self.bytes == 0 { &MAGIC } else { &[] };
        let bytes = [magic, &record].concat();
        if let Err(error) = file.write_all(&bytes) {
            file.set_len(self.bytes)?;
            return Err(error);
        }
        self.bytes += bytes.len() as u64;
        self.is_dirty = true;
        Ok(())
    }

    /// Makes what was appended last.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            fs::File::open(self.recording.file(self.hour))?.sync_data()?;
            sync_folder(&self.recording.folder)?;
            self.is_dirty = false;
        }
        Ok(())
    }

    /// Nothing more is recorded here.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.sync()?;
        fs::File::create(self.recording.folder.join(ENDED))?.sync_all()?;
        sync_folder(&self.recording.folder)
    }
}

#[cfg(test)]
mod tests;
