//! One HTTP connection, from its first byte to its end.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use futures_util::FutureExt;
use futures_util::future::Either;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::Limits;
use super::hot::{Asked, Hot};
use super::watch::{Activity, Watched, running};

/// Requests that an HTTP/2 client may have open at a time.
const STREAMS_MAX: u32 = 100;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: u32 = 16 * 1024;

/// How a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// The peer left, or the server drained.
    Peer,
    /// The peer asked nothing, did not finish a head, or took no bytes, for too long.
    Silent,
    /// The peer spoke no HTTP, or broke off.
    Protocol,
}

impl End {
    fn of(error: &(dyn Error + Send + Sync + 'static)) -> Self {
        let timed_out = error.downcast_ref().is_some_and(hyper::Error::is_timeout);
        if timed_out { Self::Silent } else { Self::Protocol }
    }
}

/// Who answers the requests of a connection.
pub(super) struct Answers<'a> {
    pub(super) peer: SocketAddr,
    pub(super) router: Router,
    pub(super) hot: &'a Option<Arc<dyn Hot>>,
}

/// Serves requests until the connection ends. After `shutdown` the requests in progress are the
/// last ones.
pub(super) async fn drive<I>(
    io: I,
    answers: Answers<'_>,
    limits: &Limits,
    shutdown: &CancellationToken,
) -> End
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let activity = Arc::new(Activity::default());
    let io = TokioIo::new(Watched::new(io, Arc::clone(&activity)));
    let service = service_fn({
        let activity = Arc::clone(&activity);
        let answer_max = super::millis(limits.answer_ms_max);
        let Answers { peer, router, hot } = answers;
        let hot = hot.clone();
        move |request: Request<Incoming>| {
            let answer = match Asked::of(hot.as_ref(), request) {
                Ok(asked) => Either::Left(asked.answer(peer, answer_max).map(Ok)),
                Err(request) => {
                    let mut request = request.map(Body::new);
                    request.extensions_mut().insert(ConnectInfo(peer));
                    Either::Right(router.clone().oneshot(request))
                }
            };
            running(answer, &activity)
        }
    });
    let builder = builder(limits);
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));

    // hyper waits without a deadline for the first bytes and for idle HTTP/2 clients.
    let silence = tokio::time::sleep(super::millis(limits.header_ms_max));
    let mut silence = std::pin::pin!(silence);
    let mut before = activity.snapshot();
    let mut is_ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                return ended.map_or_else(|error| End::of(&*error), |()| End::Peer);
            }
            () = shutdown.cancelled(), if !is_ending => {
                connection.as_mut().graceful_shutdown();
                is_ending = true;
            }
            () = silence.as_mut() => {
                let now = activity.snapshot();
                if !now.is_alive_since(before) {
                    return End::Silent;
                }
                before = now;
                let next = tokio::time::sleep(super::millis(limits.silence_ms_max));
                silence.set(next);
            }
        }
    }
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(super::millis(limits.header_ms_max))
        .max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX);
    builder
}
