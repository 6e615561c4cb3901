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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::task::Waker;

    use super::*;

    #[test]
    fn what_is_read_up_to_is_asked_for_again_when_the_poller_says_so() {
        let (mut settled, mut client) = pair();
        client.write_all(b"ping").unwrap();

        assert_eq!(read(&mut settled), Some(b"ping".to_vec()));
        client.write_all(b"more").unwrap();
        assert_eq!(read(&mut settled), None, "nobody said that there is more");

        settled.note(Cause(Cause::READABLE));
        assert_eq!(read(&mut settled), Some(b"more".to_vec()));
    }

    #[test]
    fn an_end_that_came_with_the_last_bytes_is_read() {
        let (mut settled, mut client) = pair();
        client.write_all(b"bye").unwrap();
        drop(client);
        settled.note(Cause(Cause::READABLE | Cause::HUNG_UP));

        assert_eq!(read(&mut settled), Some(b"bye".to_vec()));
        assert_eq!(read(&mut settled), Some(Vec::new()));
    }

    #[test]
    fn a_full_buffer_waits_for_the_poller() {
        let (mut settled, mut client) = pair();
        let block = vec![7; 1 << 20];
        let mut written = 0;
        while let Poll::Ready(bytes) = write(&mut settled, &block) {
            written += bytes.unwrap();
        }

        let mut rest = vec![0; written];
        client.read_exact(&mut rest).unwrap();
        assert!(write(&mut settled, &block).is_pending());

        settled.note(Cause(Cause::WRITABLE));
        assert!(write(&mut settled, &block).is_ready());
    }

    fn pair() -> (Settled, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        (Settled::new(stream), client)
    }

    /// What can be read now.
    fn read(settled: &mut Settled) -> Option<Vec<u8>> {
        let mut bytes = [0; 64];
        let mut buffer = ReadBuf::new(&mut bytes);
        let cx = &mut Context::from_waker(Waker::noop());
        match Pin::new(settled).poll_read(cx, &mut buffer) {
            Poll::Ready(read) => read.map(|()| buffer.filled().to_vec()).ok(),
            Poll::Pending => None,
        }
    }

    fn write(settled: &mut Settled, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(settled).poll_write(&mut Context::from_waker(Waker::noop()), bytes)
    }
}
