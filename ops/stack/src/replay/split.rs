//! Cuts a stream into records: `<d …>…</d>` elements, or JSON objects.
//!
//! It only finds borders, so that damage inside one record cannot spread to the next.

use std::io::{self, Read};

use super::Damaged;

/// Bytes of one record; a longer one is damage.
const RECORD_BYTES_MAX: usize = 256 * 1024;
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Elements that Bilibili files hold besides comments.
const KNOWN_ELEMENTS: [&[u8]; 10] = [
    b"i",
    b"chatserver",
    b"chatid",
    b"mission",
    b"maxlimit",
    b"state",
    b"real_name",
    b"source",
    b"ds",
    b"de",
];

/// What the stream holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    /// Bilibili's XML.
    Xml,
    /// Objects in an array, or one after another.
    Json,
}

/// Where the next record is in the buffer.
enum Found {
    /// `start..end` is a record; go on at `end`.
    Record { start: usize, end: usize },
    /// Damage; go on at `next`.
    Damage { next: usize },
    /// Nothing of interest before `next`; go on there.
    Skip { next: usize },
    /// More bytes are needed; everything before `keep` is done with.
    More { keep: usize, begun: bool },
}

pub(super) struct Splitter<R> {
    source: R,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
    dialect: Dialect,
}

impl<R: Read> Splitter<R> {
    pub(super) const fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), at: 0, ended: false, dialect: Dialect::Xml }
    }

    /// Looks at the first character that is neither a space nor a byte order mark.
    pub(super) fn dialect(&mut self) -> io::Result<Dialect> {
        loop {
            let blank = |it: &u8| it.is_ascii_whitespace() || [0xef, 0xbb, 0xbf].contains(it);
            self.at = self.buffer.iter().position(|it| !blank(it)).unwrap_or(self.buffer.len());
            match self.buffer.get(self.at) {
                Some(b'[' | b'{') => self.dialect = Dialect::Json,
                Some(_) => self.dialect = Dialect::Xml,
                None if !self.ended => {
                    self.fill()?;
                    continue;
                }
                None => {}
            }
            return Ok(self.dialect);
        }
    }

    /// The next record, or the next damage; `None` at the end.
    pub(super) fn next_record(&mut self) -> io::Result<Option<Result<Vec<u8>, Damaged>>> {
        loop {
            let rest = &self.buffer[self.at..];
            let found = match self.dialect {
                Dialect::Xml => find_element(rest),
                Dialect::Json => find_object(rest),
            };
            match found {
                Found::Record { start, end } => {
                    let record = rest[start..end].to_vec();
                    self.at += end;
                    return Ok(Some(Ok(record)));
                }
                Found::Damage { next } => {
                    self.at += next;
                    return Ok(Some(Err(Damaged)));
                }
                Found::Skip { next } => self.at += next,
                Found::More { keep, begun } => {
                    let length = rest.len() - keep;
                    self.at += keep;
                    if length > RECORD_BYTES_MAX {
                        self.at += 1;
                        return Ok(Some(Err(Damaged)));
                    }
                    if self.ended {
                        self.at = self.buffer.len();
                        return Ok(begun.then_some(Err(Damaged)));
                    }
                    self.fill()?;
                }
            }
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + CHUNK_BYTES, 0);
        let read = self.source.read(&mut self.buffer[before..])?;
        self.buffer.truncate(before + read);
        self.ended = read == 0;
        Ok(())
    }
}

fn find_element(bytes: &[u8]) -> Found {
    let Some(start) = bytes.iter().position(|&it| it == b'<') else {
        return Found::More { keep: bytes.len(), begun: false };
    };
    let tail = &bytes[start + 1..];
    let name_end = tail.iter().position(|it| !(it.is_ascii_alphanumeric() || *it == b'_'));
    let Some(name_end) = name_end else {
        return Found::More { keep: start, begun: tail.starts_with(b"d") && tail.len() == 1 };
    };
    match &tail[..name_end] {
        b"d" => end_of_comment(bytes, start),
        // A closing tag, a declaration or a comment of XML's own.
        b"" => Found::Skip { next: start + 1 },
        name if KNOWN_ELEMENTS.contains(&name) => Found::Skip { next: start + 1 },
        _ => Found::Damage { next: start + 1 },
    }
}

/// A comment ends at `</d>`; another `<d` before that means that it was never closed.
fn end_of_comment(bytes: &[u8], start: usize) -> Found {
    let mut at = start + 2;
    while let Some(step) = bytes[at..].iter().position(|&it| it == b'<') {
        at += step;
        let tail = &bytes[at..];
        if tail.len() < 4 {
            break;
        }
        if tail.starts_with(b"</d>") {
            return Found::Record { start, end: at + 4 };
        }
        let opens = tail.starts_with(b"<d") && (tail[2].is_ascii_whitespace() || tail[2] == b'>');
        if opens || tail.starts_with(b"</i>") {
            return Found::Damage { next: at };
        }
        at += 1;
    }
    Found::More { keep: start, begun: true }
}

fn find_object(bytes: &[u8]) -> Found {
    let Some(start) = bytes.iter().position(|&it| it == b'{') else {
        return Found::More { keep: bytes.len(), begun: false };
    };
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for (offset, &byte) in bytes[start..].iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Found::Record { start, end: start + offset + 1 };
                }
            }
            _ => {}
        }
    }
    Found::More { keep: start, begun: true }
}
