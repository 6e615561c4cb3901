//! The short way of hot requests: plain HTTP/1.1, without hyper.
//!
//! Requests that are there together are answered together, in one write. With the first one that is
//! not plain the connection goes over to hyper for good, with all bytes that are not answered.
//!
//! Who sends without reading fills two buffers: one of [`READ_BYTES`] and the longest hot body, and
//! one of [`KEPT_BYTES_MAX`](super::speech::KEPT_BYTES_MAX) and an answer. A head is plain only if
//! one read brings all of it, so it has no more than [`READ_BYTES`].

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::super::connection::{End, ending};
use super::super::seldom::Seldom;
use super::super::watch::{Activity, Running};
use super::Hot;
use super::speech::{KEPT_BYTES_MAX, Speech, Then, Turn};

/// Bytes that are read at once: most questions with their head.
const READ_BYTES: usize = 4 * 1024;

/// A connection while it goes the short way.
#[derive(Debug)]
pub(in super::super) struct Short {
    speech: Speech,
    activity: Arc<Activity>,
    answer_max: Duration,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Left {
    /// It has ended.
    Ended(End),
    /// It goes over to hyper.
    Other,
}

impl Short {
    /// A connection from its beginning. A body has `answer_max` to come.
    pub(in super::super) fn new(
        hot: Arc<dyn Hot>,
        peer: SocketAddr,
        activity: Arc<Activity>,
        answer_max: Duration,
    ) -> Self {
        let speech = Speech::new(hot, peer, activity.clock().clone());
        Self { speech, activity, answer_max }
    }

    /// Answers until the connection goes over, or ends: by itself, or after `shutdown` when all that
    /// has come is answered.
    pub(in super::super) async fn serve<I>(
        &mut self,
        io: &mut I,
        shutdown: &CancellationToken,
    ) -> Left
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        let left = match self.answer_all(io, shutdown).await {
            Ok(Left::Other) => return Left::Other,
            Ok(ended) => ended,
            Err(_) => Left::Ended(End::Protocol),
        };
        // The peer may have gone before.
        io.shutdown().await.ok();
        left
    }

    /// The bytes that are not answered.
    pub(in super::super) fn into_rest(self) -> Vec<u8> {
        self.speech.input
    }

    async fn answer_all<I>(&mut self, io: &mut I, shutdown: &CancellationToken) -> io::Result<Left>
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        let ending = pin!(ending(shutdown));
        let mut ending = Seldom::new(ending);
        loop {
            let read = tokio::select! {
                // First: a request that has come is answered.
                biased;
                read = fill(io, &mut self.speech.input, READ_BYTES) => read?,
                () = &mut ending => return Ok(Left::Ended(End::Peer)),
            };
            if read == 0 {
                return Ok(Left::Ended(End::Peer));
            }
            let _running = Running::new(&self.activity);
            loop {
                // Without the first look it would take a lock for each request.
                let is_last = !ending.is_asleep() && shutdown.is_cancelled();
                let then = if is_last { Then::Close } else { Then::Stay };
                let turn = self.speech.turn(then);
                self.flush(io).await?;
                let bytes = match turn {
                    Turn::Answered if then == Then::Close => return Ok(Left::Ended(End::Peer)),
                    Turn::Answered => break,
                    Turn::More => continue,
                    Turn::Other => return Ok(Left::Other),
                    Turn::Body { bytes } => bytes,
                };
                let coming = fill_up(io, &mut self.speech.input, bytes);
                match tokio::time::timeout(self.answer_max, coming).await {
                    Ok(Ok(Came::Whole)) => {}
                    Ok(Ok(Came::Part)) => return Ok(Left::Other),
                    Ok(Err(error)) => return Err(error),
                    Err(_) => {
                        self.speech.give_up();
                        self.flush(io).await?;
                        return Ok(Left::Ended(End::Peer));
                    }
                }
            }
        }
    }

    /// Sends the output, after others had their turn: answers that are ready together go out
    /// together, and who is woken by the first, a proxy above all, is still awake for the others.
    async fn flush<I: AsyncWrite + Unpin>(&mut self, io: &mut I) -> io::Result<()> {
        if !self.speech.output.is_empty() {
            // A long one goes while it lies in the processor's cache.
            if self.speech.output.len() < KEPT_BYTES_MAX {
                tokio::task::yield_now().await;
            }
            io.write_all(&self.speech.output).await?;
            // TLS may hold some of it.
            io.flush().await?;
            self.speech.sent();
        }
        Ok(())
    }
}

/// How much of a body came.
enum Came {
    Whole,
    /// The peer sends no more.
    Part,
}

/// Reads once, so many bytes at most; 0: the peer sends no more.
async fn fill<I>(io: &mut I, input: &mut Vec<u8>, bytes: usize) -> io::Result<usize>
where
    I: AsyncRead + Unpin,
{
    input.reserve_exact(bytes);
    io.take(bytes as u64).read_buf(input).await
}

/// Reads until there are so many bytes.
async fn fill_up<I>(io: &mut I, input: &mut Vec<u8>, bytes: usize) -> io::Result<Came>
where
    I: AsyncRead + Unpin,
{
    while let Some(missing) = bytes.checked_sub(input.len()).filter(|it| *it > 0) {
        if fill(io, input, missing).await? == 0 {
            return Ok(Came::Part);
        }
    }
    Ok(Came::Whole)
}

#[cfg(test)]
mod tests;
