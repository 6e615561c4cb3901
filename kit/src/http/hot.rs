//! Requests that are answered before a router sees them: there are so many of them that the
//! router's own cost counts.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::response::Response;
use hyper::Request;
use hyper::body::{Body, Incoming};

/// Answers some requests at once, without waiting for anything but their body.
pub trait Hot: fmt::Debug + Send + Sync + 'static {
    /// If the request is one of those: bytes of its body at most.
    fn body_bytes_max(&self, head: &Parts) -> Option<usize>;

    /// The answer.
    fn answer(&self, head: &Parts, body: Result<Bytes, Unread>, peer: SocketAddr) -> Response;
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unread {
    /// It has more bytes than it may.
    TooLarge,
    /// It ended before its end.
    Broken,
    /// It did not come in time.
    Late,
}

/// A request that is answered here.
#[derive(Debug)]
pub(super) struct Asked {
    hot: Arc<dyn Hot>,
    head: Parts,
    body: Incoming,
    body_bytes_max: usize,
}

impl Asked {
    /// The request, given back if it is for the router.
    #[expect(clippy::result_large_err, reason = "giving back is no error, and a Box a cost")]
    pub(super) fn of(
        hot: Option<&Arc<dyn Hot>>,
        request: Request<Incoming>,
    ) -> Result<Self, Request<Incoming>> {
        let Some(hot) = hot else {
            return Err(request);
        };
        let (head, body) = request.into_parts();
        match hot.body_bytes_max(&head) {
            Some(body_bytes_max) => Ok(Self { hot: Arc::clone(hot), head, body, body_bytes_max }),
            None => Err(Request::from_parts(head, body)),
        }
    }

    pub(super) async fn answer(self, peer: SocketAddr, answer_max: Duration) -> Response {
        let Self { hot, head, body, body_bytes_max } = self;
        let mut reading = pin!(read(body, body_bytes_max));
        let read = match soon(reading.as_mut()).await {
            Some(read) => read,
            None => tokio::time::timeout(answer_max, reading).await.unwrap_or(Err(Unread::Late)),
        };
        hot.answer(&head, read, peer)
    }
}

/// What a future becomes in its first two turns. A body that came with its head needs no more: one
/// to ask hyper for it, one to take it. So it is spared a timer.
async fn soon<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut was_pending = false;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if was_pending => Poll::Ready(None),
        Poll::Pending => {
            was_pending = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// Reads a body; one that comes in one piece, as most do, is not copied.
async fn read(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(Unread::TooLarge);
    }
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(piece) = frame.map_err(|_| Unread::Broken)?.into_data() else {
            continue;
        };
        if first.len().max(whole.len()) + piece.len() > bytes_max {
            return Err(Unread::TooLarge);
        }
        if first.is_empty() {
            first = piece;
            continue;
        }
        if whole.is_empty() {
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(if whole.is_empty() { first } else { whole.into() })
}
