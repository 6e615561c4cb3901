//! What a client says: records are opened where they were read, and their data given on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::keys::HEADER_BYTES;
use super::records::{Opened, Outbound, RECORD_BYTES_MAX, record_bytes, text_bytes_max};
use super::{Fault, Inner, Lean};

/// Bytes that are read at once: room for a record of which a part is missing, and one behind it.
pub(super) const SCRATCH_BYTES: usize = 2 * RECORD_BYTES_MAX;
/// Records that one read opens when it has something to give on: each costs a cipher's tables, and
/// so many with a byte each would keep everybody else on the thread waiting.
const RECORDS_MAX: usize = 64;

/// Whether something can come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Inward {
    Open,
    /// The client said goodbye.
    Ended,
    Failed(Fault),
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Lean<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let inner = &mut *self.0;
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if inner.opened() > 0 {
            inner.give_opened(buffer);
            inner.tidy();
            return Poll::Ready(Ok(()));
        }
        match inner.inward {
            Inward::Open => {
                let read = super::INWARD.with_borrow_mut(|it| inner.poll_records(cx, it, buffer));
                inner.tidy();
                read
            }
            Inward::Ended => Poll::Ready(Ok(())),
            Inward::Failed(fault) => Poll::Ready(Err(fault.into())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Inner<S> {
    /// Bytes that were opened before and found no room.
    fn opened(&self) -> usize {
        self.rest.as_ref().map_or(0, |it| it.opened)
    }

    /// Gives on what was opened before.
    fn give_opened(&mut self, buffer: &mut ReadBuf<'_>) {
        let rest = self.rest.get_or_insert_default();
        let bytes = rest.opened.min(buffer.remaining());
        buffer.put_slice(&rest.held[..bytes]);
        rest.held.drain(..bytes);
        rest.opened -= bytes;
    }

    /// Keeps what came.
    fn hold(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.rest.get_or_insert_default().held.extend_from_slice(bytes);
        }
    }

    /// Reads until there is something to give on, or an end. What is read and not given on is held.
    fn poll_records(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let held = self.rest.as_mut().map(|it| std::mem::take(&mut it.held)).unwrap_or_default();
        let mut filled = held.len();
        scratch[..filled].copy_from_slice(&held);
        let room = buffer.remaining();
        loop {
            let passed = self.open(&mut scratch[..filled], buffer);
            if buffer.remaining() < room || self.inward != Inward::Open {
                self.hold(&scratch[passed..filled]);
                return Poll::Ready(match self.inward {
                    Inward::Failed(fault) if buffer.remaining() == room => Err(fault.into()),
                    Inward::Failed(_) | Inward::Open | Inward::Ended => Ok(()),
                });
            }
            scratch.copy_within(passed..filled, 0);
            filled -= passed;
            let mut more = ReadBuf::new(&mut scratch[filled..]);
            let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, &mut more) else {
                self.hold(&scratch[..filled]);
                return Poll::Pending;
            };
            let bytes = more.filled().len();
            // What it held is gone: bytes after these would not open.
            read.inspect_err(|_| self.fail(Fault::Cut))?;
            if bytes == 0 {
                self.fail(Fault::Cut);
            }
            filled += bytes;
        }
    }

    /// Opens whole records and gives their data on while there is room, a bounded number at a time;
    /// says how many bytes they were. Of a record that is larger than all the room, the rest is
    /// held.
    fn open(&mut self, bytes: &mut [u8], buffer: &mut ReadBuf<'_>) -> usize {
        let room = buffer.remaining();
        let mut passed = 0;
        let mut records = 0;
        while self.inward == Inward::Open && self.opened() == 0 {
            let rest = &mut bytes[passed..];
            let record = match record_bytes(rest) {
                Ok(length) => length.and_then(|it| rest.get_mut(..it)),
                Err(fault) => {
                    self.fail(fault);
                    break;
                }
            };
            let Some(record) = record else { break };
            let is_first = buffer.remaining() == room;
            // Without data there are few: so many that say nothing are a fault.
            if !is_first
                && (records >= RECORDS_MAX || text_bytes_max(record.len()) > buffer.remaining())
            {
                break;
            }
            records += 1;
            match self.records.open(record) {
                Ok(Opened::Data(length)) => {
                    let data = &record[HEADER_BYTES..HEADER_BYTES + length];
                    let (fits, over) = data.split_at(length.min(buffer.remaining()));
                    buffer.put_slice(fits);
                    if !over.is_empty() {
                        self.hold(over);
                        self.rest.get_or_insert_default().opened = over.len();
                    }
                }
                Ok(Opened::Nothing) => {}
                Ok(Opened::End) => self.inward = Inward::Ended,
                Err(fault) => self.fail(fault),
            }
            passed += record.len();
        }
        passed
    }

    /// Nothing can follow; the client is told why, if that can be done at once.
    pub(super) fn fail(&mut self, fault: Fault) {
        self.inward = Inward::Failed(fault);
        self.is_shut = true;
        let Some(alert) = fault.alert() else { return };
        let mut sealed = Outbound::default();
        if self.records.seal_alert(alert, &mut sealed).is_err() {
            return;
        }
        let unsent = &mut self.rest.get_or_insert_default().unsent;
        unsent.extend_from_slice(sealed.filled());
        // What is blocked may be waited for: then it goes out with that.
        if !self.is_blocked {
            let mut cx = Context::from_waker(Waker::noop());
            let sent = Pin::new(&mut self.stream).poll_write(&mut cx, unsent);
            if let Poll::Ready(Ok(sent)) = sent {
                unsent.drain(..sent);
            }
        }
    }
}

#[cfg(test)]
mod tests;
