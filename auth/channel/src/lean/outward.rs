//! What the server says: sealed in a buffer that all connections of a thread share, and written
//! from there.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Inner, Lean};

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lean<S> {
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
        let inner = &mut *self.0;
        if inner.is_shut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if slices.iter().all(|it| it.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        if inner.is_blocked {
            ready!(inner.poll_unsent(cx))?;
        }
        super::OUTWARD.with_borrow_mut(|it| Poll::Ready(inner.write(cx, it, slices)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Sends what the socket would not take before. The handshake's last words go with the next
    /// write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.0;
        if inner.is_blocked { inner.poll_unsent(cx) } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let inner = &mut *self.0;
        if !inner.is_shut {
            inner.is_shut = true;
            inner.records.seal_goodbye(&mut inner.rest.get_or_insert_default().unsent)?;
        }
        ready!(inner.poll_unsent(cx))?;
        Pin::new(&mut inner.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Inner<S> {
    /// Seals one record, which counts as written from now on, and sends it with what waits. What
    /// the socket does not take stays in `unsent`.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Vec<u8>,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        scratch.clear();
        if let Some(rest) = &mut self.rest {
            scratch.append(&mut std::mem::take(&mut rest.unsent));
        }
        let taken = self.records.seal(slices, scratch).inspect_err(|it| self.fail(*it))?;
        let sent = match Pin::new(&mut self.stream).poll_write(cx, scratch) {
            Poll::Ready(sent) => sent.inspect_err(|_| self.is_shut = true)?,
            Poll::Pending => 0,
        };
        if sent < scratch.len() {
            self.rest.get_or_insert_default().unsent = scratch[sent..].to_vec();
            self.is_blocked = true;
        }
        self.tidy();
        Ok(taken)
    }

    /// Ready when all that is sealed is sent.
    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = &mut self.rest
            && !rest.unsent.is_empty()
        {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, &rest.unsent))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            rest.unsent.drain(..sent);
        }
        self.is_blocked = false;
        self.tidy();
        Poll::Ready(Ok(()))
    }
}
