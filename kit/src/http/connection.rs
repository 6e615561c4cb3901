//! One HTTP connection, from its first byte to its end.

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
use super::watch::{Activity, Silence, Watched, running};

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
    let activity = Arc::new(Activity::new());
    let io = TokioIo::new(Watched::new(io, Arc::clone(&activity)));
    let service = service_fn({
        let activity = Arc::clone(&activity);
        let answer_max = super::millis(limits.answer_ms_max);
        let Answers { peer, router, hot } = answers;
        let hot = hot.clone();
        move |request: Request<Incoming>| {
            activity.heard(request.version());
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
    let builder = builder();
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));

    // hyper's own timer of heads costs each request a place in the runtime's list of timers.
    let first = tokio::time::sleep(super::millis(limits.header_ms_max));
    let mut check = std::pin::pin!(first);
    let mut silence = Silence::new(activity, limits);
    let mut is_ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                return ended.map_or(End::Protocol, |()| End::Peer);
            }
            () = shutdown.cancelled(), if !is_ending => {
                connection.as_mut().graceful_shutdown();
                is_ending = true;
            }
            () = check.as_mut() => match silence.ask_again_in() {
                Some(wait) => check.set(tokio::time::sleep(wait)),
                None => return End::Silent,
            },
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX);
    builder
}
