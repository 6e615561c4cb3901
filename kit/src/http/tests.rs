//! The server against raw bytes.

mod hot;

use std::future::pending;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::hot::tests::Reader;
use super::*;
use crate::shutdown::Undrained;

/// Shorter than any default, longer than a request on loopback.
const SHORT_MS: u32 = 100;

#[tokio::test]
async fn a_handler_finds_its_peer() {
    let server = start(Limits::default()).await;
    let mut client = server.connect().await;
    let addr = client.local_addr().unwrap();

    let answer = ask(&mut client, "GET /peer").await;

    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.ends_with(&addr.to_string()), "{answer}");
}

#[tokio::test]
async fn http_2_is_spoken_on_the_same_port() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let server = start(Limits::default()).await;
    let mut client = server.connect().await;

    client.write_all(&[PREFACE, &SETTINGS].concat()).await.unwrap();
    let mut head = [0; 9];
    client.read_exact(&mut head).await.unwrap();

    assert_eq!(head[3], SETTINGS[3], "the server's settings come first");
}

#[tokio::test]
async fn a_body_beyond_its_limit_is_refused() {
    let server = start(Limits { body_bytes_max: 10, ..Limits::default() }).await;

    let fits = exchange(&server, "POST /echo", "0123456789").await;
    let exceeds = exchange(&server, "POST /echo", "0123456789a").await;

    assert!(fits.ends_with("\r\n\r\n10"), "{fits}");
    assert!(exceeds.starts_with("HTTP/1.1 413"), "{exceeds}");
}

#[tokio::test]
async fn connections_beyond_the_bound_are_closed_and_counted() {
    let server = start(Limits { connections_max: 1, ..Limits::default() }).await;
    let mut first = server.connect().await;
    ask(&mut first, "GET /peer").await;

    let mut second = server.connect().await;

    assert_ended(&mut second).await;
    assert_eq!(server.ended("full"), 1);
    let answer = ask(&mut first, "GET /peer").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn whoever_sends_nothing_is_closed() {
    let server = start(Limits { header_ms_max: SHORT_MS, ..Limits::default() }).await;
    let mut client = server.connect().await;

    assert_ended(&mut client).await;

    assert_eq!(server.ended("silent"), 1);
}

#[tokio::test]
async fn whoever_does_not_finish_a_head_is_closed() {
    let server = start(Limits { header_ms_max: SHORT_MS, ..Limits::default() }).await;
    let mut client = server.connect().await;

    client.write_all(b"GET /peer HTTP/1.1\r\nhost: ").await.unwrap();

    assert_ended(&mut client).await;
    assert_eq!(server.ended("silent"), 1);
}

#[tokio::test]
async fn a_kept_connection_may_not_stay_idle_for_longer_than_a_head_may_take() {
    for next in ["", "GET /peer HTTP/1.1\r\nhost: "] {
        let server = start(Limits { header_ms_max: SHORT_MS, ..Limits::default() }).await;
        let mut client = server.connect().await;
        ask(&mut client, "GET /peer").await;

        client.write_all(next.as_bytes()).await.unwrap();

        assert_ended(&mut client).await;
        assert_eq!(server.ended("silent"), 1);
    }
}

#[tokio::test]
async fn whoever_takes_no_bytes_is_closed() {
    let limits = Limits { silence_ms_max: SHORT_MS, header_ms_max: SHORT_MS, ..Limits::default() };
    let server = start(limits).await;
    let mut client = server.connect().await;

    client.write_all(b"GET /endless HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();

    server.until_ended("silent").await;
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_503() {
    let server = start(Limits { answer_ms_max: SHORT_MS, ..Limits::default() }).await;

    let answer = exchange(&server, "GET /never", "").await;

    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.contains(r#""code":"late""#), "{answer}");
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed_and_counted() {
    let limits = Limits { handshake_ms_max: SHORT_MS, ..Limits::default() };
    let server = start_with(limits, Never).await;
    let mut client = server.connect().await;

    assert_ended(&mut client).await;

    assert_eq!(server.ended("handshake"), 1);
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_peer_is_its_client() {
    for request in ["GET /peer HTTP/1.1", "POST /hot HTTP/1.1\r\ncontent-length: 4"] {
        let server = start_behind("127.0.0.0/8").await;
        let mut client = server.connect().await;
        let header =
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\x7f\0\0\x01\x04\xd2\x01\xbb";
        client.write_all(header).await.unwrap();

        client.write_all(format!("{request}\r\n\r\npeer").as_bytes()).await.unwrap();

        let mut answer = [0; 1024];
        let bytes = client.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..bytes]);
        assert!(answer.ends_with("203.0.113.9:1234"), "{answer}");
    }
}

#[tokio::test]
async fn a_proxy_that_says_nothing_is_closed_and_counted() {
    let server = start_behind("127.0.0.0/8").await;
    let mut client = server.connect().await;

    client.write_all(b"GET /peer HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();

    assert_ended(&mut client).await;
    server.until_ended("proxy_header").await;
}

#[tokio::test]
async fn who_is_no_proxy_and_says_so_is_closed_and_counted() {
    let server = start_behind("10.0.0.0/8").await;
    let mut client = server.connect().await;

    client.write_all(b"PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n").await.unwrap();

    assert_ended(&mut client).await;
    server.until_ended("proxy_untrusted").await;
    let answer = exchange(&server, "GET /peer", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_handler_that_panics_ends_its_connection_only() {
    let server = start(Limits::default()).await;
    let mut client = server.connect().await;

    client.write_all(b"GET /panic HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_ended(&mut client).await;

    let answer = exchange(&server, "GET /peer", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_request_in_progress_ends_before_the_server_does() {
    let server = start(Limits::default()).await;
    let mut idle = server.connect().await;
    ask(&mut idle, "GET /peer").await;
    let mut client = server.connect().await;
    client.write_all(b"GET /gate HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    server.gate.entered.notified().await;

    server.shutdown.cancel();
    assert_ended(&mut idle).await;
    server.gate.leave.notify_one();

    let answer = rest(&mut client).await;
    assert!(answer.ends_with("through"), "{answer}");
    assert!(server.tasks.join().await.is_ok());
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut_off_at_the_deadline() {
    let server = start(Limits { drain_ms_max: SHORT_MS, ..Limits::default() }).await;
    let mut client = server.connect().await;
    client.write_all(b"GET /gate HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    server.gate.entered.notified().await;

    server.shutdown.cancel();

    let error = server.tasks.join().await.unwrap_err();
    assert_eq!(error.downcast_ref::<Undrained>().unwrap().tasks, 1);
    assert_ended(&mut client).await;
}

/// A server on a port of its own.
struct Started {
    addr: SocketAddr,
    meter: Meter,
    gate: Arc<Gate>,
    shutdown: CancellationToken,
    tasks: Tasks,
}

/// Holds a request until the test lets it go.
#[derive(Default)]
struct Gate {
    entered: Notify,
    leave: Notify,
}

struct Never;

impl Accept for Never {
    type Io = TcpStream;

    fn accept(&self, stream: TcpStream) -> BoxFuture<'static, io::Result<TcpStream>> {
        async move {
            let _stream = stream;
            pending().await
        }
        .boxed()
    }
}

async fn start(limits: Limits) -> Started {
    start_with(limits, Plain).await
}

async fn start_hot(limits: Limits) -> Started {
    let server =
        |meter: &Meter| Server::new(limits, meter, "test").before(Arc::new(Reader::default()));
    start_server(server, Plain).await
}

async fn start_behind(proxies: &str) -> Started {
    let proxies = [proxies.parse().unwrap()].into_iter().collect();
    let server = |meter: &Meter| {
        let server = Server::new(Limits::default(), meter, "test").behind(proxies);
        server.before(Arc::new(Reader::default()))
    };
    start_server(server, Plain).await
}

async fn start_with(limits: Limits, acceptor: impl Accept) -> Started {
    start_server(|meter| Server::new(limits, meter, "test"), acceptor).await
}

async fn start_server(server: impl FnOnce(&Meter) -> Server, acceptor: impl Accept) -> Started {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let meter = Meter::new();
    let gate = Arc::new(Gate::default());
    let shutdown = CancellationToken::new();
    let server = server(&meter);
    let mut tasks = Tasks::default();
    tasks.spawn("server", {
        let router = router(Arc::clone(&gate));
        let shutdown = shutdown.clone();
        async move { server.serve(listener, acceptor, router, shutdown).await }
    });
    Started { addr, meter, gate, shutdown, tasks }
}

fn router(gate: Arc<Gate>) -> Router {
    let pass = async move || {
        gate.entered.notify_one();
        gate.leave.notified().await;
        "through"
    };
    let zeros = || futures_util::stream::repeat_with(|| Ok::<_, io::Error>(vec![0; 64 * 1024]));
    Router::new()
        .route("/peer", get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string()))
        .route("/echo", post(async |body: String| body.len().to_string()))
        .route("/never", get(async || pending::<String>().await))
        .route("/panic", get(async || -> String { panic!("as asked") }))
        .route("/endless", get(async move || Body::from_stream(zeros())))
        .route("/gate", get(pass))
}

impl Started {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    fn ended(&self, why: &str) -> u64 {
        self.meter.counter(list::HTTP_CONNECTIONS_ENDED_TOTAL, &["test", why]).get()
    }

    async fn until_ended(&self, why: &str) {
        let ended = async {
            while self.ended(why) == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    }
}

/// One request on a kept connection; the answer ends with its body.
async fn ask(client: &mut TcpStream, request: &str) -> String {
    let request = format!("{request} HTTP/1.1\r\nhost: a\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let bytes = client.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..bytes]).into_owned()
}

/// One request on a connection of its own.
async fn exchange(server: &Started, request: &str, body: &str) -> String {
    let mut client = server.connect().await;
    let bytes = body.len();
    let request = format!(
        "{request} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n{body}"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    rest(&mut client).await
}

async fn rest(client: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A reset counts as an end.
async fn assert_ended(client: &mut TcpStream) {
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut rest));
    assert!(!matches!(read.await.unwrap(), Ok(bytes) if bytes > 0), "{rest:?}");
}
