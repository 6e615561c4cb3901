//! A session's bytes: read through a buffer that all sessions of a thread share, written straight
//! from the rooms' blocks.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::counts::Counts;
use crate::socket::Socket;
use crate::wire::{Decoder, Found};

/// Blocks of one vectored write.
const SLICES_MAX: usize = 64;
/// Bytes of one read.
const SCRATCH_BYTES: usize = 16 * 1024;

thread_local! {
    /// What was just read lies here until it is decoded, before anything else runs on the thread.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// What became possible.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Moved {
    /// Bytes came, or were written to the last one.
    On,
    /// The client is gone.
    Gone,
}

/// The bytes of one session.
#[derive(Debug)]
pub(crate) struct Io {
    socket: Socket,
    pub(crate) decoder: Decoder,
    /// What was read and not yet acted upon.
    pub(crate) found: Vec<Found>,
    unsent: VecDeque<Bytes>,
    unsent_bytes: usize,
    /// Whether the first of `unsent` is partly written.
    torn: bool,
    /// Bytes that the socket took since they were asked for.
    written: u64,
    unflushed: bool,
    counts: Counts,
}

impl Io {
    pub(crate) const fn new(socket: Socket, decoder: Decoder, counts: Counts) -> Self {
        Self {
            socket,
            decoder,
            found: Vec::new(),
            unsent: VecDeque::new(),
            unsent_bytes: 0,
            torn: false,
            written: 0,
            unflushed: false,
            counts,
        }
    }

    /// Adds blocks to be written.
    pub(crate) fn send(&mut self, blocks: Vec<Bytes>) {
        let bytes: usize = blocks.iter().map(Bytes::len).sum();
        self.unsent_bytes += bytes;
        self.counts.outbox_bytes.add(signed(bytes));
        self.unsent.extend(blocks);
    }

    /// Gives up what is not yet begun.
    pub(crate) fn give_up(&mut self) {
        let kept = self.unsent.front().filter(|_| self.torn).cloned();
        let bytes = kept.as_ref().map_or(0, Bytes::len);
        self.counts.outbox_bytes.sub(signed(self.unsent_bytes - bytes));
        self.unsent_bytes = bytes;
        self.unsent = kept.into_iter().collect();
    }

    /// Bytes that wait to be written.
    pub(crate) const fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Bytes that the socket took since the last call.
    pub(crate) const fn take_written(&mut self) -> u64 {
        std::mem::replace(&mut self.written, 0)
    }

    /// Whether everything is with the system.
    pub(crate) fn is_sent(&self) -> bool {
        self.unsent.is_empty() && !self.unflushed
    }

    /// Writes what can be written and reads what has come, whichever is possible.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        let waited = !self.is_sent();
        match self.poll_write(cx) {
            Poll::Ready(Err(_)) => return Poll::Ready(Moved::Gone),
            Poll::Ready(Ok(())) if waited => return Poll::Ready(Moved::On),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        match ready!(self.poll_read(cx)) {
            Ok(0) | Err(_) => Poll::Ready(Moved::Gone),
            Ok(_) => Poll::Ready(Moved::On),
        }
    }

    /// Ready when all is written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut filled = 0;
            for (slice, block) in slices.iter_mut().zip(&self.unsent) {
                *slice = IoSlice::new(block);
                filled += 1;
            }
            let socket = Pin::new(&mut self.socket);
            let written = ready!(socket.poll_write_vectored(cx, &slices[..filled]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written(written);
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn written(&mut self, mut bytes: usize) {
        self.counts.writes.inc();
        self.counts.bytes_out.inc_by(bytes as u64);
        self.counts.outbox_bytes.sub(signed(bytes));
        self.unsent_bytes -= bytes;
        self.written += bytes as u64;
        self.unflushed = true;
        while let Some(block) = self.unsent.front_mut() {
            if bytes < block.len() {
                self.torn |= bytes > 0;
                block.advance(bytes);
                break;
            }
            bytes -= block.len();
            self.unsent.pop_front();
            self.torn = false;
        }
        if self.unsent.is_empty() {
            self.unsent.shrink_to(0);
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
            let bytes = buffer.filled();
            self.decoder.feed(bytes, &mut self.found);
            Poll::Ready(Ok(bytes.len()))
        })
    }

    /// Says that nothing more will be sent, then lets fall what still comes until the client is
    /// gone too: closing at once would tear the last frames from the client's hands.
    pub(crate) async fn finish(&mut self) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        if self.socket.shutdown().await.is_err() {
            return;
        }
        let mut rest = [0; 1024];
        while self.socket.read(&mut rest).await.is_ok_and(|it| it > 0) {}
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.counts.outbox_bytes.sub(signed(self.unsent_bytes));
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
