//! A plain socket that the poller watches: a descriptor and what is known of its readiness.
//!
//! Nobody's waker is kept: whoever sees [`Poll::Pending`] is rung by the poller.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::line::Cause;

/// The socket. It does not block.
#[derive(Debug)]
pub(crate) struct Settled {
    stream: TcpStream,
    is_readable: bool,
    is_writable: bool,
    /// The end of what can be read is told once: it has to be read up to.
    is_hung_up: bool,
}

impl Settled {
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self { stream, is_readable: true, is_writable: true, is_hung_up: false }
    }

    /// Notes what the poller rang for.
    pub(super) const fn note(&mut self, cause: Cause) {
        self.is_readable |= cause.has(Cause::READABLE);
        self.is_writable |= cause.has(Cause::WRITABLE);
        self.is_hung_up |= cause.has(Cause::HUNG_UP);
    }

    fn wrote(&mut self, asked: usize, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        // A full buffer: the system tells when there is room again.
        self.is_writable = written.as_ref().is_ok_and(|&it| it == asked);
        match written {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            written => Poll::Ready(written),
        }
    }
}

impl AsFd for Settled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsyncRead for Settled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.is_readable {
            let into = buffer.initialize_unfilled();
            let asked = into.len();
            match self.stream.read(into) {
                Ok(bytes) => {
                    buffer.advance(bytes);
                    // Less than there was room for: what comes later is told anew.
                    self.is_readable = self.is_hung_up || bytes == asked;
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Pending
    }
}

impl AsyncWrite for Settled {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_writable {
            return Poll::Pending;
        }
        let written = loop {
            match self.stream.write(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => break written,
            }
        };
        self.wrote(bytes.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if !self.is_writable {
            return Poll::Pending;
        }
        let asked = slices.iter().map(|it| it.len()).sum();
        let written = loop {
            match self.stream.write_vectored(slices) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => break written,
            }
        };
        self.wrote(asked, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.shutdown(Shutdown::Write))
    }
}
