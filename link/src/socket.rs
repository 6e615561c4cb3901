//! A connection's byte stream, with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use channel::ServerStream;
use proto::suite::Suite;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection's byte stream.
#[derive(Debug)]
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<ServerStream>),
}

/// What protects a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protection {
    pub(crate) suite: Suite,
    /// The secret that both ends of a TLS connection know.
    pub(crate) exporter: Option<[u8; 32]>,
}

impl Socket {
    /// What protects it.
    pub(crate) fn protection(&self) -> Protection {
        match self {
            Self::Plain(_) => Protection { suite: Suite::Plain, exporter: None },
            Self::Tls(stream) => {
                let (_, connection) = stream.get_ref();
                let exporter = channel::exporter(connection).ok();
                Protection { suite: channel::suite(connection), exporter }
            }
        }
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Socket::Plain(it) => {
                let $stream = Pin::new(it);
                $call
            }
            Socket::Tls(it) => {
                let $stream = Pin::new(it.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(cx))
    }
}
