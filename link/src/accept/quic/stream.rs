//! The one stream of a QUIC connection, as a byte stream. Dropping it closes the connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use proto::close::CloseCode;
use quinn::{Connection, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A QUIC connection with its one stream.
#[derive(Debug)]
pub(crate) struct QuicStream {
    connection: Connection,
    send: SendStream,
    recv: RecvStream,
    /// Why the session ended, if the node ended it.
    ended: Option<CloseCode>,
}

impl QuicStream {
    pub(super) const fn new(connection: Connection, send: SendStream, recv: RecvStream) -> Self {
        Self { connection, send, recv, ended: None }
    }

    /// The session ended so: the connection will be closed with this code.
    pub(crate) const fn end(&mut self, code: CloseCode) {
        self.ended = Some(code);
    }

    /// The secret that both ends of the connection know, as over TLS.
    pub(crate) fn exporter(&self) -> Option<[u8; 32]> {
        let mut secret = [0; 32];
        let exported =
            self.connection.export_keying_material(&mut secret, channel::EXPORTER_LABEL, &[]);
        exported.is_ok().then_some(secret)
    }
}

impl Drop for QuicStream {
    fn drop(&mut self) {
        // A session that the node lost must come back, and so it must not be a goodbye.
        let code = self.ended.unwrap_or(CloseCode::Unavailable);
        self.connection.close(super::code(code), code.name().as_bytes());
    }
}

impl AsyncRead for QuicStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.recv), cx, buffer)
    }
}

impl AsyncWrite for QuicStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.send), cx, bytes)
    }

    /// Takes what fits of all slices: they leave together, when the connection's turn comes.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut taken = 0;
        for slice in slices.iter().filter(|it| !it.is_empty()) {
            match AsyncWrite::poll_write(Pin::new(&mut self.send), cx, slice) {
                Poll::Ready(Ok(written)) => {
                    taken += written;
                    if written < slice.len() {
                        break;
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if taken == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Ready at once: the connection sends by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_shutdown(cx)
    }
}
