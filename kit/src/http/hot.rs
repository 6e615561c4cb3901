//! Requests that are answered before a router sees them: there are so many of them that the
//! router's own cost counts.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
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
        let read = tokio::time::timeout(answer_max, read(body, body_bytes_max)).await;
        hot.answer(&head, read.unwrap_or(Err(Unread::Late)), peer)
    }
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
