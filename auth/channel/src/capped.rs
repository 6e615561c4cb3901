//! A TCP stream that gives a bounded number of bytes until its handshake is over, and sends what
//! the handshake says in as few writes as it has flights.
//!
//! rustls holds up to 64 KiB for one handshake message; a client that has not shown who it is gets
//! less here. What a client says first may come right behind its handshake, in the same reads: the
//! bound is no fault until a handshake that is not over asks for more.
//!
//! A flight goes out when the handshake wants to hear the answer. What it says last, the ticket to
//! come back with, is answered by nobody: it goes with the first bytes that the server says after
//! the handshake, which saves a system call and a segment of each login. Dropping the stream sends
//! what it can of what still waits, such as an alert.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of a client's half of a handshake. A hello with a hybrid share and a ticket has 2 KiB; a
/// second hello, after a request for another group, as many again.
pub(crate) const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;

/// A TCP stream, bounded until its handshake is over.
#[derive(Debug)]
pub struct Capped {
    stream: TcpStream,
    cap: Cap,
    /// What the handshake said and the system does not have yet. A flight has a certificate chain
    /// at most, and rustls makes none before it heard the answer to the last.
    waiting: Vec<u8>,
    /// What was read before this was made, to be read first.
    early: Vec<u8>,
}

/// What may still be read.
#[derive(Clone, Copy, Debug)]
enum Cap {
    /// This many bytes.
    Left(usize),
    /// None: who asked for more was told to wait. A handshake that is over ends with that, and one
    /// that is not asks again.
    Met,
    /// Anything: the handshake is over.
    Lifted,
}

impl Capped {
    pub(crate) const fn new(stream: TcpStream) -> Self {
        Self::after(stream, Vec::new())
    }

    /// A stream of which `early` was read already.
    pub(crate) const fn after(stream: TcpStream, early: Vec<u8>) -> Self {
        Self { stream, cap: Cap::Left(HANDSHAKE_BYTES_MAX), waiting: Vec::new(), early }
    }

    /// The handshake is over: nothing is counted any more.
    pub(crate) const fn lift(&mut self) {
        self.cap = Cap::Lifted;
    }

    const fn is_lifted(&self) -> bool {
        matches!(self.cap, Cap::Lifted)
    }

    fn poll_read_any(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let bytes = self.early.len().min(buffer.remaining());
        buffer.put_slice(&self.early[..bytes]);
        self.early.drain(..bytes);
        Poll::Ready(Ok(()))
    }

    /// Writes what waits, and behind it as much of `slices` as fits; says how much that was.
    fn poll_write_behind(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        while !self.waiting.is_empty() {
            let mut all = Vec::with_capacity(1 + slices.len());
            all.push(IoSlice::new(&self.waiting));
            all.extend_from_slice(slices);
            let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &all))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            match written.checked_sub(self.waiting.len()) {
                None => drop(self.waiting.drain(..written)),
                Some(behind) => {
                    self.waiting = Vec::new();
                    return Poll::Ready(Ok(behind));
                }
            }
        }
        Poll::Ready(Ok(0))
    }
}

impl Drop for Capped {
    fn drop(&mut self) {
        if !self.waiting.is_empty() {
            // Whoever is gone does not miss it.
            drop(self.stream.try_write(&self.waiting));
        }
    }
}

impl AsyncRead for Capped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_lifted() {
            ready!(self.poll_write_behind(cx, &[]))?;
        }
        let left = match self.cap {
            Cap::Lifted => return self.poll_read_any(cx, buffer),
            Cap::Left(0) => {
                self.cap = Cap::Met;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Cap::Left(left) => left,
            Cap::Met => {
                let text = format!("a handshake of more than {HANDSHAKE_BYTES_MAX} bytes");
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
            }
        };
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(left.min(buffer.remaining())));
        ready!(self.poll_read_any(cx, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        self.cap = Cap::Left(left - read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Capped {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.is_lifted() {
            let before = self.waiting.len();
            slices.iter().for_each(|it| self.waiting.extend_from_slice(it));
            return Poll::Ready(Ok(self.waiting.len() - before));
        }
        match ready!(self.poll_write_behind(cx, slices))? {
            0 => Pin::new(&mut self.stream).poll_write_vectored(cx, slices),
            written => Poll::Ready(Ok(written)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Ready at once: within a handshake what waits goes out before the next read, and after it
    /// with the next write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_behind(cx, &[]))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
