//! One HTTP connection, from its first byte to its end.

use std::net::SocketAddr;
use std::pin::pin;
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
use super::hot::Hot;
use super::hot::long::Taken;
use super::hot::short::{Left, Short};
use super::watch::{Activity, Silence, Watched, running};

/// Bytes of a request's head.
const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// Bytes of an HTTP/2 request's body that are taken before somebody reads them.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The same of all requests of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 128 * 1024;
/// Bytes of an HTTP/2 answer that wait to be sent.
const SEND_BYTES_MAX: usize = 64 * 1024;

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
    pub(super) router: &'a Router,
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
    let answer_max = super::millis(limits.answer_ms_max);
    let activity = Arc::new(Activity::new());
    let mut io = Watched::new(io, Arc::clone(&activity));
    let mut silence = Silence::new(Arc::clone(&activity), limits);
    if let Some(hot) = answers.hot {
        let (hot, activity) = (Arc::clone(hot), Arc::clone(&activity));
        let mut short = Short::new(hot, answers.peer, activity, answer_max);
        match silence.during(short.serve(&mut io, shutdown)).await {
            Some(Left::Other) => io = io.after(short.into_rest()),
            Some(Left::Ended(end)) => return end,
            None => return End::Silent,
        }
    }
    // Its size is no part of connections that never come here.
    let long = Box::pin(through_hyper(io, answers, limits, activity, shutdown));
    silence.during(long).await.unwrap_or(End::Silent)
}

/// Waits for `shutdown`, and until the runtime has looked at its sockets once more: what a peer sent
/// before can be read then.
pub(super) async fn ending(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    tokio::task::yield_now().await;
}

async fn through_hyper<I>(
    io: Watched<I>,
    answers: Answers<'_>,
    limits: &Limits,
    activity: Arc<Activity>,
    shutdown: &CancellationToken,
) -> End
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Answers { peer, router, hot } = answers;
    let (router, hot) = (router.clone(), hot.clone());
    let answer_max = super::millis(limits.answer_ms_max);
    let service = service_fn(move |request: Request<Incoming>| {
        activity.heard(request.version());
        let answer = match Taken::of(hot.as_ref(), request) {
            Ok(taken) => Either::Left(taken.answer(peer, answer_max).map(Ok)),
            Err(request) => {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(ConnectInfo(peer));
                Either::Right(router.clone().oneshot(request))
            }
        };
        running(answer, &activity)
    });
    let builder = builder(limits);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    let ended = tokio::select! {
        // First: a request that has come is in progress.
        biased;
        ended = connection.as_mut() => ended,
        () = ending(shutdown) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_or(End::Protocol, |()| End::Peer)
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // hyper's own timer of heads costs each request a place in the runtime's list of timers.
    builder.http1().header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(HEAD_BYTES_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BYTES_MAX);
    builder
}
