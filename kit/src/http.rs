//! An HTTP server whose every wait and every number has a bound.
//!
//! HTTP/1.1 and HTTP/2 on one port, over whatever an [`Accept`] makes of a TCP connection. It is
//! hyper that speaks it, but for plain requests of a [`Hot`].

mod connection;
mod hot;
mod seldom;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use prometheus::{IntCounter, IntGauge};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use self::hot::{Asked, Fields, Heading, Hot, Unread};

use self::connection::End;
use crate::meter::{Meter, list};
use crate::problem::Problem;
use crate::proxy::{Proxies, Refusal};
use crate::shutdown;
use crate::task::Tasks;

/// Pause after the system refused a new connection, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a server spends on its clients.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Limits {
    /// Connections at a time; more are closed at once. One costs about 20 KiB, with TLS 30 KiB. One of
    /// HTTP/1.1 that asks without reading costs up to 64 KiB, and TLS keeps up to 64 KiB of answers
    /// besides. At worst, one of HTTP/2 costs 0.5 MiB: 16 requests (`streams_max`) with heads of
    /// 16 KiB, 128 KiB of bodies that nobody reads yet, and what is sent. Bodies that are read come on top, up to
    /// `body_bytes_max` each. 10,000 such connections take 5 GiB: lower it where that is not there.
    pub connections_max: u32,
    /// Requests that an HTTP/2 connection may have open at a time; further ones wait with the client.
    /// Each may cost 16 KiB while its head comes, and what its answer takes.
    pub streams_max: u32,
    /// Time for a TLS handshake, in milliseconds; before it for a PROXY header, where there are
    /// trusted proxies.
    pub handshake_ms_max: u32,
    /// Time until a request's head is complete, in milliseconds; as long may a kept HTTP/1.1
    /// connection stay idle.
    pub header_ms_max: u32,
    /// Time from a request's head to the answer's head, in milliseconds; then 503. It includes
    /// reading the request's body. Longer than any hold of a poll.
    pub answer_ms_max: u32,
    /// Time in which a connection must begin a request or take bytes of an answer, in
    /// milliseconds; else it is closed. Longer than `answer_ms_max`.
    pub silence_ms_max: u32,
    /// Bytes of a request's body; then 413. A route may set its own `DefaultBodyLimit`.
    pub body_bytes_max: u32,
    /// Time for requests in progress when the server ends, in milliseconds.
    pub drain_ms_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            streams_max: 16,
            handshake_ms_max: 5_000,
            header_ms_max: 10_000,
            answer_ms_max: 20_000,
            silence_ms_max: 30_000,
            body_bytes_max: 256 * 1024,
            drain_ms_max: 5_000,
        }
    }
}

/// Turns a TCP connection into what HTTP is spoken over.
pub trait Accept: Send + Sync + 'static {
    /// The byte stream.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Makes it. The server gives it [`Limits::handshake_ms_max`].
    fn accept(&self, stream: TcpStream) -> BoxFuture<'static, io::Result<Self::Io>>;
}

/// No encryption: for loopback, and behind a proxy that has done it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Accept for Plain {
    type Io = TcpStream;

    fn accept(&self, stream: TcpStream) -> BoxFuture<'static, io::Result<TcpStream>> {
        ready(Ok(stream)).boxed()
    }
}

/// A server before it serves.
#[derive(Clone, Debug)]
pub struct Server {
    limits: Limits,
    counts: Counts,
    proxies: Proxies,
    hot: Option<Arc<dyn Hot>>,
}

/// How many connections are open, and how those ended that were ended here.
#[derive(Clone, Debug)]
struct Counts {
    open: IntGauge,
    full: IntCounter,
    proxy_untrusted: IntCounter,
    proxy_header: IntCounter,
    handshake: IntCounter,
    silent: IntCounter,
    protocol: IntCounter,
}

impl Counts {
    const fn refused(&self, refusal: &Refusal) -> &IntCounter {
        match refusal {
            Refusal::Untrusted => &self.proxy_untrusted,
            Refusal::Header(_) => &self.proxy_header,
            Refusal::Io(_) => &self.handshake,
        }
    }
}

/// Serves `router` within the default [`Limits`] until `shutdown`, then drains, uncounted.
///
/// # Errors
/// As [`Server::serve`].
pub async fn serve(
    listener: TcpListener,
    acceptor: impl Accept,
    router: Router,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let server = Server::new(Limits::default(), &Meter::new(), "unnamed");
    server.serve(listener, acceptor, router, shutdown).await
}

impl Server {
    /// A server that counts in `meter` under the name `service`.
    #[must_use]
    pub fn new(limits: Limits, meter: &Meter, service: &str) -> Self {
        let ended = |why| meter.counter(list::HTTP_CONNECTIONS_ENDED_TOTAL, &[service, why]);
        let counts = Counts {
            open: meter.gauge(list::HTTP_CONNECTIONS, &[service]),
            full: ended("full"),
            proxy_untrusted: ended("proxy_untrusted"),
            proxy_header: ended("proxy_header"),
            handshake: ended("handshake"),
            silent: ended("silent"),
            protocol: ended("protocol"),
        };
        Self { limits, counts, proxies: Proxies::default(), hot: None }
    }

    /// Believes these proxies whose connections they pass on. Each of their connections must begin
    /// with a PROXY header, and nobody else's may.
    #[must_use]
    pub fn behind(self, proxies: Proxies) -> Self {
        Self { proxies, ..self }
    }

    /// Lets `hot` answer its requests; those that it does not want go to the router. Their bodies
    /// have [`Limits::answer_ms_max`] to come.
    #[must_use]
    pub fn before(self, hot: Arc<dyn Hot>) -> Self {
        Self { hot: Some(hot), ..self }
    }

    /// Serves `router` until `shutdown`; then accepts no more, lets requests in progress end, and
    /// returns at the latest after [`Limits::drain_ms_max`].
    ///
    /// Handlers find the peer as `ConnectInfo<SocketAddr>`, behind a [trusted proxy](Self::behind)
    /// the proxy's client. A handler that panics ends its own connection only.
    ///
    /// # Errors
    /// [`Undrained`](crate::shutdown::Undrained) when requests had to be cut off.
    pub async fn serve(
        self,
        listener: TcpListener,
        acceptor: impl Accept,
        router: Router,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let places = Arc::new(Semaphore::new(self.limits.connections_max as usize));
        let drain_max = millis(self.limits.drain_ms_max);
        let full = self.counts.full.clone();
        let serving = Arc::new(Serving {
            router: bounded(router, &self.limits),
            server: self,
            acceptor,
            shutdown: shutdown.clone(),
        });
        let mut tasks = Tasks::default();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(ended) = tasks.next() => report(ended),
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => match Arc::clone(&places).try_acquire_owned() {
                        Ok(place) => {
                            let serving = Arc::clone(&serving);
                            tasks.spawn("http", async move {
                                serving.converse(stream, peer).await;
                                drop(place);
                                Ok(())
                            });
                        }
                        Err(_) => full.inc(),
                    },
                    Err(error) => {
                        tracing::debug!(%error, "no connection was accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        shutdown::drain(tasks, drain_max).await
    }
}

/// A server while it serves.
struct Serving<A> {
    server: Server,
    acceptor: A,
    router: Router,
    shutdown: CancellationToken,
}

impl<A: Accept> Serving<A> {
    /// One connection, from TCP to its end.
    async fn converse(&self, mut stream: TcpStream, peer: SocketAddr) {
        let Server { limits, counts, proxies, hot } = &self.server;
        let _open = Open::new(&counts.open);
        // Failing to set it costs latency only.
        stream.set_nodelay(true).ok();
        let handshake_max = millis(limits.handshake_ms_max);
        let shaken = async {
            let client = proxies.client(&mut stream, peer).await;
            let client = client.map_err(|it| counts.refused(&it))?;
            let io = self.acceptor.accept(stream).await.map_err(|_| &counts.handshake)?;
            Ok((io, client))
        };
        let shaken = tokio::time::timeout(handshake_max, shaken).await;
        let (io, client) = match shaken.unwrap_or(Err(&counts.handshake)) {
            Ok(shaken) => shaken,
            Err(count) => return count.inc(),
        };
        let answers = connection::Answers { peer: client, router: &self.router, hot };
        match connection::drive(io, answers, limits, &self.shutdown).await {
            End::Peer => {}
            End::Silent => counts.silent.inc(),
            End::Protocol => counts.protocol.inc(),
        }
    }
}

/// Counts a connection as open while it lives.
struct Open(IntGauge);

impl Open {
    fn new(open: &IntGauge) -> Self {
        open.inc();
        Self(open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn report(ended: anyhow::Result<()>) {
    if let Err(error) = ended {
        tracing::error!(error = format!("{error:#}"), "an HTTP connection failed");
    }
}

fn bounded(router: Router, limits: &Limits) -> Router {
    let answer_max = millis(limits.answer_ms_max);
    router
        .layer(DefaultBodyLimit::max(limits.body_bytes_max as usize))
        .layer(middleware::from_fn_with_state(answer_max, answer_in_time))
}

async fn answer_in_time(
    State(answer_max): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(answer_max, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let title = "the answer took too long";
            let late = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "late", title);
            late.retry_after_ms(1000).into_response()
        }
    }
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}

#[cfg(test)]
mod tests;
