//! A TCP stream that gives a bounded number of bytes until its handshake is over.
//!
//! rustls holds up to 64 KiB for one handshake message; a client that has not shown who it is gets
//! less here.

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
    /// Bytes that may still be read; none once the handshake is over.
    left: Option<usize>,
}

impl Capped {
    pub(crate) const fn new(stream: TcpStream) -> Self {
        Self { stream, left: Some(HANDSHAKE_BYTES_MAX) }
    }

    /// The handshake is over: nothing is counted any more.
    pub(crate) const fn lift(&mut self) {
        self.left = None;
    }
}

impl AsyncRead for Capped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(left) = self.left else {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        };
        if left == 0 {
            let text = format!("a handshake of more than {HANDSHAKE_BYTES_MAX} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(left.min(buffer.remaining())));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        self.left = Some(left - read);
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
