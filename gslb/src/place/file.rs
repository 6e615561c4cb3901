//! One file of the configuration, read whole and checked: a [`Layer`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::rows::{Misplaced, Row, Rows};
use super::{csv_file, mmdb_file};

/// Bytes of a file: four times the largest free files of cities in MMDB. An MMDB file is held in
/// memory while it is read.
pub(super) const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Places that one file tells apart: 200 countries, and parts of them.
const PLACES_MAX: usize = 65_536;

/// What a file is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    Csv,
    Mmdb,
}

/// What one file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) file: PathBuf,
    /// Facts are numbers of autonomous systems.
    pub(super) asns: Rows,
    /// Facts are indices of `codes`.
    pub(super) places: Rows,
    /// As [`code`](super::code) names places.
    pub(super) codes: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {why}", file.display(), line.map(|it| format!(", line {it}")).unwrap_or_default())]
pub struct Wrong {
    /// Which.
    pub file: PathBuf,
    /// Where in it, counted from 1, if it has lines.
    pub line: Option<u64>,
    /// Why.
    pub why: Why,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// The system does not give it.
    #[error("it cannot be read: {0}")]
    Unread(#[from] io::Error),
    /// It is longer than any file should be.
    #[error("it has more than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// It says nothing.
    #[error("it has no ranges")]
    Empty,
    /// A range cannot stand where it stands.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// It tells more places apart than there are.
    #[error("it names more than {PLACES_MAX} places")]
    TooManyPlaces,
    /// A line has another form.
    #[error("{0} columns; a line has 3 (country), 4 (asn) or 10 (city), and all have as many")]
    Columns(usize),
    /// A column is no address.
    #[error("{0:?} is no address")]
    Address(String),
    /// A range from IPv4 to IPv6.
    #[error("the range starts in IPv4 and ends in IPv6")]
    Families,
    /// A column is no number of a system.
    #[error("{0:?} is no number of an autonomous system")]
    Asn(String),
    /// A column is no country.
    #[error("{0:?} is no country of two letters")]
    Country(String),
    /// The lines are no CSV.
    #[error("{0}")]
    Csv(String),
    /// The tree or its records are damaged.
    #[error("{0}")]
    Mmdb(String),
}

impl Format {
    /// By how the name ends.
    pub(super) fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "mmdb" => Some(Self::Mmdb),
            _ => None,
        }
    }
}

/// Reads files; those that cannot be used are left out.
pub(super) fn read_all(files: &[PathBuf]) -> (Vec<Layer>, Vec<Wrong>) {
    let (mut layers, mut wrong) = (Vec::new(), Vec::new());
    for file in files {
        match Layer::read(file) {
            Ok(layer) => layers.push(layer),
            Err(why) => wrong.push(why),
        }
    }
    (layers, wrong)
}

impl Layer {
    /// Reads a file to its end.
    pub(super) fn read(file: &Path) -> Result<Self, Wrong> {
        let wrong = |line, why| Wrong { file: file.to_owned(), line, why };
        let opened = File::open(file).map_err(|it| wrong(None, it.into()))?;
        // One byte more than the longest, so that a longer one is seen to be longer.
        let bounded = opened.take(FILE_BYTES_MAX + 1);
        let mut layer = match Format::of(file) {
            Some(Format::Mmdb) => mmdb_file::read(bounded).map_err(|why| wrong(None, why))?,
            Some(Format::Csv) | None => {
                csv_file::read(bounded).map_err(|(line, why)| wrong(Some(line), why))?
            }
        };
        if layer.asns.is_empty() && layer.places.is_empty() {
            return Err(wrong(None, Why::Empty));
        }
        let overlaps = layer.asns.overlaps() + layer.places.overlaps();
        if overlaps > 0 {
            tracing::warn!(file = %file.display(), overlaps, "ranges overlap, and the first counts");
        }
        layer.numbers.clear();
        file.clone_into(&mut layer.file);
        Ok(layer)
    }

    pub(super) fn push_asn(&mut self, start: u128, end: u128, asn: u32) -> Result<(), Why> {
        Ok(self.asns.push(Row { start, end, fact: asn })?)
    }

    pub(super) fn push_place(&mut self, start: u128, end: u128, code: &str) -> Result<(), Why> {
        let fact = self.number(code)?;
        Ok(self.places.push(Row { start, end, fact })?)
    }

    fn number(&mut self, code: &str) -> Result<u32, Why> {
        if let Some(&number) = self.numbers.get(code) {
            return Ok(number);
        }
        let next = self.codes.len();
        let number = u32::try_from(next).ok().filter(|_| next < PLACES_MAX);
        let number = number.ok_or(Why::TooManyPlaces)?;
        self.codes.push(code.to_owned());
        self.numbers.insert(code.to_owned(), number);
        Ok(number)
    }
}

/// Reads to the end, as far as a file may go.
pub(super) fn to_end(mut bounded: impl Read) -> Result<Vec<u8>, Why> {
    let mut bytes = Vec::new();
    let read = bounded.read_to_end(&mut bytes)?;
    if read as u64 > FILE_BYTES_MAX { Err(Why::TooLong) } else { Ok(bytes) }
}
