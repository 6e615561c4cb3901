//! What the server says: sealed in a buffer that all connections of a thread share, and written
//! from there.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};

use super::records::Outbound;
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
            let mut goodbye = Outbound::default();
            inner.records.seal_goodbye(&mut goodbye)?;
            let rest = inner.rest.get_or_insert_default();
            rest.unsent.extend_from_slice(goodbye.filled());
        }
        ready!(inner.poll_unsent(cx))?;
        Pin::new(&mut inner.stream).poll_shutdown(cx)
    }
}

impl<S> Lean<S> {
    /// Bytes that count as written and are not with the socket yet.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.0.rest.as_ref().map_or(0, |it| it.unsent.len())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Inner<S> {
    /// Seals one record, which counts as written from now on, and sends it with what waits. What
    /// the socket does not take stays in `unsent`.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Outbound,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        scratch.clear();
        if let Some(rest) = &mut self.rest {
            scratch.add(&std::mem::take(&mut rest.unsent));
        }
        let taken = self.records.seal(slices, scratch).inspect_err(|it| self.fail(*it))?;
        let sealed = scratch.filled();
        let sent = match Pin::new(&mut self.stream).poll_write(cx, sealed) {
            Poll::Ready(sent) => sent.inspect_err(|_| self.is_shut = true)?,
            Poll::Pending => 0,
        };
        if sent < sealed.len() {
            self.rest.get_or_insert_default().unsent = sealed[sent..].to_vec();
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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
    use tokio::io::{AsyncReadExt, duplex};

    use super::*;
    use crate::lean::Rest;
    use crate::lean::keys::{Cipher, Keys};
    use crate::lean::records::Records;

    #[tokio::test]
    async fn what_a_slow_client_takes_of_a_record_is_seen() {
        let (mut client, socket) = duplex(100);
        let cipher = Cipher::of(TLS13_AES_128_GCM_SHA256).unwrap();
        let keys = |byte| Keys::new(cipher, &[byte; 32], 0).unwrap();
        let records = Records::new(cipher, keys(1), keys(2));
        let mut server = Lean::new(socket, records, Rest::default());
        let cx = &mut Context::from_waker(Waker::noop());
        assert_eq!(server.unsent_bytes(), 0);

        assert!(Pin::new(&mut server).poll_write(cx, &[0; 1000]).is_ready());
        let mut before = server.unsent_bytes();
        assert!(before > 1000 - 100, "{before}");
        while before > 0 {
            client.read_exact(&mut [0; 50]).await.unwrap();
            assert_eq!(Pin::new(&mut server).poll_flush(cx).is_ready(), before <= 50);

            assert_eq!(server.unsent_bytes(), before.saturating_sub(50));
            before = server.unsent_bytes();
        }
    }
}
