//! Hot requests that hyper has read.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use hyper::Request;
use hyper::body::{Body, Incoming};

use super::{Asked, Fields, Hot, Unread};

/// A request that is answered here.
#[derive(Debug)]
pub(in super::super) struct Taken {
    hot: Arc<dyn Hot>,
    head: Parts,
    body: Incoming,
    body_bytes_max: usize,
}

impl Taken {
    /// The request, given back if it is for the router.
    #[expect(clippy::result_large_err, reason = "giving back is no error, and a Box a cost")]
    pub(in super::super) fn of(
        hot: Option<&Arc<dyn Hot>>,
        request: Request<Incoming>,
    ) -> Result<Self, Request<Incoming>> {
        let Some(hot) = hot else {
            return Err(request);
        };
        let (method, path) = (request.method().as_str(), request.uri().path());
        match hot.body_bytes_max(method, path, Fields(&fields_of(request.headers()))) {
            Some(body_bytes_max) => {
                let (head, body) = request.into_parts();
                Ok(Self { hot: Arc::clone(hot), head, body, body_bytes_max })
            }
            None => Err(request),
        }
    }

    pub(in super::super) async fn answer(self, peer: SocketAddr, answer_max: Duration) -> Response {
        let Self { hot, head, body, body_bytes_max } = self;
        let mut reading = pin!(read(body, body_bytes_max));
        let read = match soon(reading.as_mut()).await {
            Some(read) => read,
            None => tokio::time::timeout(answer_max, reading).await.unwrap_or(Err(Unread::Late)),
        };
        let fields = fields_of(&head.headers);
        let asked = Asked {
            path: head.uri.path(),
            fields: Fields(&fields),
            body: read.as_deref().map_err(|&it| it),
            peer,
        };
        let mut answer = Vec::new();
        match hot.answer(&asked, &mut answer) {
            Ok(()) => {
                let mut response = Response::new(answer.into());
                *response.headers_mut() = hot.heading().headers.clone();
                response
            }
            Err(other) => (*other).map(Into::into),
        }
    }
}

fn fields_of(headers: &HeaderMap) -> Vec<httparse::Header<'_>> {
    let fields = headers.iter();
    fields
        .map(|(name, value)| httparse::Header { name: name.as_str(), value: value.as_bytes() })
        .collect()
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
