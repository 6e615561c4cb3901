//! Records of both directions (RFC 8446, sections 4.6.3, 5 and 6), without I/O.
//!
//! What a client may send after its handshake is little: data, a change of its keys, an alert.
//! Anything else ends the connection. A change of keys must be one whole message alone in its
//! record, as every client sends it; the standard would let it be cut in two.

use std::borrow::Cow;
use std::io::IoSlice;

use super::Fault;
use super::keys::{Cipher, HEADER_BYTES, Keys};

/// Bytes of text in one record.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 14;
/// What a record has around its text: the header, the type within, the tag.
const AROUND_BYTES: usize = HEADER_BYTES + 1 + TAG_BYTES;
const TAG_BYTES: usize = 16;
/// Bytes of a sealed text: padding and the tag may add so many (RFC 8446, section 5.2).
const SEALED_BYTES_MAX: usize = TEXT_BYTES_MAX + 256;
/// Bytes of a record that a client may send.
pub(super) const RECORD_BYTES_MAX: usize = HEADER_BYTES + SEALED_BYTES_MAX;
/// Records without data, one after another.
const QUIET_RECORDS_MAX: u8 = 32;
/// Changes of its keys that a client has from the beginning, and at most; rustls allows as many one
/// after another.
const CHANGES_MAX: u32 = 32;
/// Bytes of data that earn a client another one: a change costs as much as opening them.
const CHANGE_BYTES: u32 = 1 << 12;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;

/// A KeyUpdate message without its last byte, which says whether the other end must do the same.
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];
const UPDATE_NOT_REQUESTED: u8 = 0;
const UPDATE_REQUESTED: u8 = 1;

/// What a record had in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Opened {
    /// So many bytes of data, right behind the header.
    Data(usize),
    /// Nothing for anybody else.
    Nothing,
    /// The client's goodbye: nothing follows.
    End,
}

/// The records of one connection, seen from the server.
pub(super) struct Records {
    cipher: Cipher,
    ours: Keys,
    theirs: Keys,
    /// Records without data since the last with some.
    quiet: u8,
    /// Bytes of data that the client has earned for changes of its keys.
    earned_bytes: u32,
    /// Whether the client asked for new keys of ours, and has not got them.
    owes_update: bool,
}

impl Records {
    pub(super) const fn new(cipher: Cipher, ours: Keys, theirs: Keys) -> Self {
        let earned_bytes = CHANGES_MAX * CHANGE_BYTES;
        Self { cipher, ours, theirs, quiet: 0, earned_bytes, owes_update: false }
    }

    /// Opens a whole record in its place.
    ///
    /// # Errors
    /// What is wrong with it; then nothing of it may be used, nor anything that follows.
    pub(super) fn open(&mut self, record: &mut [u8]) -> Result<Opened, Fault> {
        let (header, sealed) = record.split_first_chunk_mut().ok_or(Fault::Form)?;
        let text = self.theirs.open(self.cipher, *header, sealed)?;
        if text.len() > TEXT_BYTES_MAX + 1 {
            return Err(Fault::Length);
        }
        // The type is the last byte that is not padding.
        let end = text.iter().rposition(|it| *it != 0).ok_or(Fault::Message)?;
        let opened = match (text[end], &text[..end]) {
            (DATA, []) => Opened::Nothing,
            (DATA, data) => {
                let bytes = u32::try_from(data.len()).expect("a text has 2^14 bytes at most");
                self.earned_bytes = (self.earned_bytes + bytes).min(CHANGES_MAX * CHANGE_BYTES);
                Opened::Data(data.len())
            }
            (HANDSHAKE, message) => self.message(message)?,
            (ALERT, alert) => Self::alert(alert)?,
            _ => return Err(Fault::Message),
        };
        self.quiet = if opened == Opened::Nothing { self.quiet + 1 } else { 0 };
        if self.quiet > QUIET_RECORDS_MAX { Err(Fault::Quiet) } else { Ok(opened) }
    }

    /// The one message that a client may send after its handshake.
    fn message(&mut self, message: &[u8]) -> Result<Opened, Fault> {
        let Some((&KEY_UPDATE, [request])) = message.split_first_chunk() else {
            return Err(Fault::Message);
        };
        match *request {
            UPDATE_NOT_REQUESTED => {}
            UPDATE_REQUESTED => self.owes_update = true,
            _ => return Err(Fault::Value),
        }
        self.earned_bytes = self.earned_bytes.checked_sub(CHANGE_BYTES).ok_or(Fault::Changes)?;
        self.theirs.renew(self.cipher);
        Ok(Opened::Nothing)
    }

    /// Every alert but two is an error, whatever level it says (RFC 8446, section 6).
    fn alert(alert: &[u8]) -> Result<Opened, Fault> {
        match *alert {
            [_, CLOSE_NOTIFY] => Ok(Opened::End),
            [_, USER_CANCELED] => Ok(Opened::Nothing),
            [_, description] => Err(Fault::Alert(description)),
            [] => Err(Fault::Message),
            _ => Err(Fault::Form),
        }
    }

    /// Adds to `out` as much of `slices` as one record holds, and says how much that was. Before
    /// it goes what the client must know first.
    ///
    /// # Errors
    /// When it was not sealed; then the connection is over.
    pub(super) fn seal(
        &mut self,
        slices: &[IoSlice<'_>],
        out: &mut Outbound,
    ) -> Result<usize, Fault> {
        if self.owes_update || self.ours.seq() + 1 >= self.cipher.records_max() {
            let [a, b, c, d] = KEY_UPDATE;
            let message = [a, b, c, d, UPDATE_NOT_REQUESTED];
            self.seal_one(HANDSHAKE, &[IoSlice::new(&message)], out)?;
            self.ours.renew(self.cipher);
            self.owes_update = false;
        }
        self.seal_one(DATA, slices, out)
    }

    /// Adds the goodbye to `out`.
    ///
    /// # Errors
    /// As [`Records::seal`].
    pub(super) fn seal_goodbye(&mut self, out: &mut Outbound) -> Result<(), Fault> {
        self.seal_one(ALERT, &[IoSlice::new(&[WARNING, CLOSE_NOTIFY])], out).map(drop)
    }

    /// Adds the alert that tells the client of its fault to `out`.
    ///
    /// # Errors
    /// As [`Records::seal`].
    pub(super) fn seal_alert(&mut self, alert: u8, out: &mut Outbound) -> Result<(), Fault> {
        self.seal_one(ALERT, &[IoSlice::new(&[FATAL, alert])], out).map(drop)
    }

    fn seal_one(
        &mut self,
        kind: u8,
        slices: &[IoSlice<'_>],
        out: &mut Outbound,
    ) -> Result<usize, Fault> {
        let text = text(slices);
        let [high, low] = u16::try_from(text.len() + 1 + TAG_BYTES)
            .expect("a text has 2^14 bytes at most")
            .to_be_bytes();
        // The outer type and version of every record are these (RFC 8446, section 5.2).
        let header = [DATA, 3, 3, high, low];
        out.add(&header);
        let (sealed, end) = out.more(text.len() + 1 + TAG_BYTES).split_at_mut(text.len());
        self.ours.seal(self.cipher, header, (&text, kind), (sealed, end))?;
        Ok(text.len())
    }
}

/// As much of `slices` as one record holds. One block, as a flush of one room is, is sealed from
/// where it lies.
fn text<'a>(slices: &'a [IoSlice<'_>]) -> Cow<'a, [u8]> {
    if let [one] = slices {
        return Cow::Borrowed(&one[..one.len().min(TEXT_BYTES_MAX)]);
    }
    let mut text = Vec::new();
    for slice in slices {
        let part = slice.len().min(TEXT_BYTES_MAX - text.len());
        text.extend_from_slice(&slice[..part]);
    }
    Cow::Owned(text)
}

/// Where records are sealed. Its memory stays as it is between them: clearing it would take as long
/// as the sealing.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    bytes: Vec<u8>,
    filled: usize,
}

impl Outbound {
    pub(super) const fn clear(&mut self) {
        self.filled = 0;
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.more(bytes.len()).copy_from_slice(bytes);
    }

    /// So many bytes more, which are to be written to.
    fn more(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += bytes;
        if self.bytes.len() < self.filled {
            self.bytes.resize(self.filled, 0);
        }
        &mut self.bytes[start..self.filled]
    }
}

/// How long the record is that begins with these bytes; none when that cannot be seen yet.
///
/// # Errors
/// When it is none that may be sent.
pub(super) fn record_bytes(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let Some([kind, _, _, high, low]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let sealed_bytes = usize::from(u16::from_be_bytes([*high, *low]));
    match (*kind, sealed_bytes) {
        (DATA, ..=SEALED_BYTES_MAX) => Ok(Some(HEADER_BYTES + sealed_bytes)),
        (DATA, _) => Err(Fault::Length),
        _ => Err(Fault::Message),
    }
}

/// How much text a record of so many bytes may have; padding makes it less.
pub(super) const fn text_bytes_max(record_bytes: usize) -> usize {
    record_bytes.saturating_sub(AROUND_BYTES)
}

#[cfg(test)]
mod tests;
