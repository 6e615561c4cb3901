//! A TCP stream that gives a bounded number of bytes until its handshake is over.
//!
//! rustls holds up to 64 KiB for one handshake message; a client that has not shown who it is gets
//! less here. What a client says first may come right behind its handshake, in the same reads: the
//! bound is no fault until a handshake that is not over asks for more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of a client's half of a handshake. A hello with a hybrid share and a ticket has 2 KiB; a
/// second hello, after a request for another group, as many again.
const HANDSHAKE_BYTES_MAX: usize = 16 * 1024;

/// A TCP stream, bounded until its handshake is over.
#[derive(Debug)]
pub struct Capped {
    stream: TcpStream,
    cap: Cap,
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
        Self { stream, cap: Cap::Left(HANDSHAKE_BYTES_MAX) }
    }

    /// The handshake is over: nothing is counted any more.
    pub(crate) const fn lift(&mut self) {
        self.cap = Cap::Lifted;
    }
}

impl AsyncRead for Capped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = match self.cap {
            Cap::Lifted => return Pin::new(&mut self.stream).poll_read(cx, buffer),
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
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        self.cap = Cap::Left(left - read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Capped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
