//! A connection's byte stream: TCP with or without TLS, or the stream of a QUIC connection.

mod settled;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use channel::{Lean, ServerStream, Shaken};
use proto::close::CloseCode;
use proto::id::SessionId;
use proto::suite::Suite;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::accept::QuicStream;
use crate::line::Cause;
use crate::poller::Poller;
use settled::Settled;

/// A connection's byte stream.
#[derive(Debug)]
pub(crate) enum Socket {
    Plain(Box<TcpStream>),
    /// TLS that rustls keeps.
    Tls {
        stream: Box<ServerStream>,
        /// Whether it may hold back what it took.
        holds_back: bool,
    },
    /// TLS that keeps no more than it must.
    Lean(Lean<TcpStream>),
    Quic(Box<QuicStream>),
    /// Plain, in its leanest form.
    Settled(Settled),
    /// Lean TLS over the leanest form.
    SettledLean(Lean<Settled>),
    /// Lost while it settled.
    Lost,
}

/// What protects a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protection {
    pub(crate) suite: Suite,
    /// The secret that both ends of a TLS connection know.
    pub(crate) exporter: Option<[u8; 32]>,
}

impl Socket {
    /// TLS that rustls keeps.
    pub(crate) const fn buffered(stream: Box<ServerStream>) -> Self {
        Self::Tls { stream, holds_back: false }
    }

    /// Something is about to be written.
    const fn will_hold_back(&mut self) {
        if let Self::Tls { holds_back, .. } = self {
            *holds_back = true;
        }
    }

    /// The login is over: exchanges the socket for its leanest form.
    ///
    /// # Errors
    /// When the system watches no more sockets; this one is lost then.
    pub(crate) fn settle(&mut self, poller: &Poller, session: SessionId) -> io::Result<()> {
        let settled = |stream: TcpStream| {
            let settled = Settled::new(stream.into_std()?);
            poller.watch(&settled, session)?;
            io::Result::Ok(settled)
        };
        *self = match std::mem::replace(self, Self::Lost) {
            Self::Plain(stream) => Self::Settled(settled(*stream)?),
            Self::Lean(stream) => Self::SettledLean(stream.over(settled)?),
            other @ (Self::Tls { .. }
            | Self::Quic(_)
            | Self::Settled(_)
            | Self::SettledLean(_)
            | Self::Lost) => other,
        };
        Ok(())
    }

    /// Notes what the poller rang for.
    pub(crate) const fn note(&mut self, cause: Cause) {
        match self {
            Self::Settled(settled) => settled.note(cause),
            Self::SettledLean(stream) => stream.get_mut().note(cause),
            Self::Plain(_) | Self::Tls { .. } | Self::Lean(_) | Self::Quic(_) | Self::Lost => {}
        }
    }

    /// What protects it. The secret is told once.
    pub(crate) fn protection(&mut self) -> Protection {
        match self {
            Self::Plain(_) | Self::Settled(_) | Self::Lost => {
                Protection { suite: Suite::Plain, exporter: None }
            }
            Self::Lean(stream) => {
                Protection { suite: Suite::Tls, exporter: stream.take_exporter() }
            }
            Self::SettledLean(stream) => {
                Protection { suite: Suite::Tls, exporter: stream.take_exporter() }
            }
            Self::Tls { stream, .. } => {
                let (_, connection) = stream.get_ref();
                let exporter = channel::exporter(connection).ok();
                Protection { suite: channel::suite(connection), exporter }
            }
            Self::Quic(stream) => Protection { suite: Suite::Tls, exporter: stream.exporter() },
        }
    }

    /// Bytes that it took and still holds back, as far as it tells.
    pub(crate) fn unsent_bytes(&self) -> usize {
        match self {
            Self::Lean(stream) => stream.unsent_bytes(),
            Self::SettledLean(stream) => stream.unsent_bytes(),
            Self::Plain(_) | Self::Tls { .. } | Self::Quic(_) | Self::Settled(_) | Self::Lost => 0,
        }
    }

    /// The session ended so; where the transport has a word for it, it will say it when it closes.
    pub(crate) const fn end(&mut self, code: CloseCode) {
        match self {
            Self::Plain(_)
            | Self::Tls { .. }
            | Self::Lean(_)
            | Self::Settled(_)
            | Self::SettledLean(_)
            | Self::Lost => {}
            Self::Quic(stream) => stream.end(code),
        }
    }
}

impl From<Shaken> for Socket {
    fn from(shaken: Shaken) -> Self {
        match shaken {
            Shaken::Lean(stream) => Self::Lean(stream),
            Shaken::Buffered(stream) => Self::buffered(stream),
        }
    }
}

macro_rules! delegate {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Socket::Plain(it) => {
                let $stream = Pin::new(it);
                $call
            }
            Socket::Tls { stream: it, .. } => {
                let $stream = Pin::new(it.as_mut());
                $call
            }
            Socket::Quic(it) => {
                let $stream = Pin::new(it.as_mut());
                $call
            }
            Socket::Lean(it) => {
                let $stream = Pin::new(it);
                $call
            }
            Socket::Settled(it) => {
                let $stream = Pin::new(it);
                $call
            }
            Socket::SettledLean(it) => {
                let $stream = Pin::new(it);
                $call
            }
            Socket::Lost => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
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
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.will_hold_back();
        delegate!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.will_hold_back();
        delegate!(self, stream => stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if let Self::Tls { stream, holds_back } = socket {
            // Of its own it has nothing to say but a ticket, which goes with the first words.
            if *holds_back {
                ready!(Pin::new(stream.as_mut()).poll_flush(cx))?;
                *holds_back = false;
            }
            return Poll::Ready(Ok(()));
        }
        delegate!(Pin::new(socket), stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(cx))
    }
}
