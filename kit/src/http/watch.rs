//! Whether a connection is alive: it begins requests, or takes the bytes of answers.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::Version;
use hyper::body::{Frame, SizeHint};
use proto::time::Mono;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::seldom::Seldom;
use super::{Limits, millis};
use crate::clock::Clock;

/// Counts of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    clock: Clock,
    begun: AtomicU64,
    ended: AtomicU64,
    /// When the last request ended.
    ended_ms: AtomicU64,
    bytes_written: AtomicU64,
    is_http2: AtomicBool,
}

/// Tells when a connection has been silent for too long. It is asked now and then, so that requests
/// need no timers of their own.
#[derive(Debug)]
pub(super) struct Silence {
    activity: Arc<Activity>,
    header_max: Duration,
    silence_max: Duration,
    /// The counts of when the connection was last found alive, and when that was.
    before: (Snapshot, Mono),
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Snapshot {
    begun: u64,
    ended: u64,
    bytes_written: u64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            clock: Clock::system(),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            ended_ms: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            is_http2: AtomicBool::new(false),
        }
    }

    /// What it reads the time from.
    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Notes how the peer speaks; it keeps to it.
    pub(super) fn heard(&self, version: Version) {
        self.is_http2.store(version == Version::HTTP_2, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            begun: self.begun.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Acquire),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
        }
    }
}

impl Silence {
    pub(super) fn new(activity: Arc<Activity>, limits: &Limits) -> Self {
        let before = (activity.snapshot(), activity.clock.mono());
        let header_max = millis(limits.header_ms_max);
        Self { activity, header_max, silence_max: millis(limits.silence_ms_max), before }
    }

    /// Waits for `future` until it has been too long: then `None`.
    pub(super) async fn during<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        loop {
            let mut check = pin!(tokio::time::sleep(self.ask_again_in()?));
            tokio::select! {
                biased;
                output = future.as_mut() => return Some(output),
                () = Seldom::new(check.as_mut()) => {}
            }
        }
    }

    /// When to ask again; `None`: it has been too long. A peer that owes a request's head, as one of
    /// HTTP/1.1 does between its requests, has less time than others.
    fn ask_again_in(&mut self) -> Option<Duration> {
        let now = self.activity.clock.mono();
        let counts = self.activity.snapshot();
        if counts.begun == counts.ended && !self.activity.is_http2.load(Ordering::Relaxed) {
            let ended = Mono(self.activity.ended_ms.load(Ordering::Relaxed));
            return self.header_max.checked_sub(now.since(ended)).filter(|it| !it.is_zero());
        }
        let (counts_before, before) = self.before;
        let left = self.silence_max.saturating_sub(now.since(before));
        if !left.is_zero() {
            return Some(left.min(self.header_max));
        }
        self.before = (counts, now);
        counts.is_alive_since(counts_before).then_some(self.silence_max.min(self.header_max))
    }
}

impl Snapshot {
    /// Whether a request began or ended since `before`, or one in progress took bytes. Bytes
    /// alone are no sign of life: an HTTP/2 peer gets answers to its pings.
    fn is_alive_since(self, before: Self) -> bool {
        self.begun != before.begun
            || self.ended != before.ended
            || (self.begun > self.ended && self.bytes_written != before.bytes_written)
    }
}

/// Counts a request as running until its answer's last byte was taken from the body.
pub(super) fn running<F>(
    answer: F,
    activity: &Arc<Activity>,
) -> impl Future<Output = Result<Response<Answer>, Infallible>> + use<F>
where
    F: Future<Output = Result<Response, Infallible>>,
{
    let running = Running::new(activity);
    async move {
        let response = answer.await?;
        Ok(response.map(|body| Answer { body, _running: running }))
    }
}

/// A request that is counted as running.
#[derive(Debug)]
pub(super) struct Running(Arc<Activity>);

impl Running {
    pub(super) fn new(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // First: whoever sees the request ended sees when.
        self.0.ended_ms.store(self.0.clock.mono_lately().0, Ordering::Relaxed);
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

/// The body of an answer.
pub(super) struct Answer {
    body: Body,
    _running: Running,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A byte stream whose written bytes are counted.
#[derive(Debug)]
pub(super) struct Watched<I> {
    io: I,
    /// What is read before the stream.
    before: Bytes,
    activity: Arc<Activity>,
}

impl<I> Watched<I> {
    pub(super) fn new(io: I, activity: Arc<Activity>) -> Self {
        Self { io, before: Bytes::new(), activity }
    }

    /// The same from its beginning: these bytes have been read.
    pub(super) fn after(self, bytes: Vec<u8>) -> Self {
        Self { before: bytes.into(), ..self }
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.activity.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        written
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.before.is_empty() {
            let bytes = self.before.len().min(buffer.remaining());
            buffer.put_slice(&self.before.split_to(bytes));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
