//! The short way and the long way give the same answers, however the bytes come.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::super::Limits;
use super::super::connection::{Answers, drive};
use super::*;

/// Bytes that the reader reads.
pub(super) const BODY_BYTES_MAX: usize = 10;

/// Says what it read, or whose connection it is; `panic` makes it panic.
#[derive(Debug)]
pub(in super::super) struct Reader(Heading);

/// The last request of a test; the server ends the connection after it.
const LAST: &str = "POST /echo HTTP/1.1\r\nconnection: close\r\ncontent-length: 4\r\n\r\nlast";
/// What the router answers first makes the rest go the long way.
const FIRST: &str = "POST /echo HTTP/1.1\r\ncontent-length: 5\r\n\r\nfirst";

#[test]
fn what_is_plain_is_answered_the_same_on_both_ways() {
    check("POST /hot HTTP/1.1\r\ncontent-length: 2\r\n\r\nab", &["hot: ab"]);
    check("POST /hot HTTP/1.1\r\nhost: a\r\n\r\n", &["hot: "]);
    check("\r\n\r\nPOST /hot HTTP/1.1\r\nCONTENT-length:  1  \r\n\r\na", &["hot: a"]);
    check("POST /hot HTTP/1.1\r\nConnection: Keep-Alive\r\n\r\n", &["hot: "]);
    check("POST /hot HTTP/1.1\ncontent-length: 1\n\na", &["hot: a"]);
    check("POST /hot HTTP/1.1\r\ncontent-length: 010\r\n\r\n0123456789", &["hot: 0123456789"]);
    check(&"POST /hot HTTP/1.1\r\ncontent-length: 1\r\n\r\na".repeat(9), &["hot: a"; 9]);
}

#[test]
fn what_is_for_the_router_comes_to_it_with_all_that_follows() {
    let hot = "POST /hot HTTP/1.1\r\n\r\n";
    let other = "POST /echo HTTP/1.1\r\ncontent-length: 2\r\n\r\nab";

    check(&format!("{hot}{other}{hot}"), &["hot: ", "ab", "hot: "]);
    check("POST /hot?a HTTP/1.1\r\n\r\n", &["hot: "]);
    check("POST http://a/hot HTTP/1.1\r\nhost: a\r\n\r\n", &["hot: "]);
    check("GET /hot HTTP/1.1\r\n\r\n", &["404 "]);
    check("HEAD /hot HTTP/1.1\r\n\r\n", &["404 "]);
    check("POST /Hot HTTP/1.1\r\n\r\n", &["404 "]);
}

#[test]
fn where_a_request_ends_is_never_in_doubt() {
    let hot = |fields: &str, body: &str| format!("POST /hot HTTP/1.1\r\n{fields}\r\n\r\n{body}");
    let chunks = "2\r\nab\r\n0\r\n\r\n";
    let both = "content-length: 3\r\ntransfer-encoding: chunked";

    check(&hot("transfer-encoding: chunked", chunks), &["hot: ab"]);
    check_end(&hot("Transfer-Encoding : chunked", chunks), "400 ");
    check_end(&hot(both, chunks), "hot: ab");
    check_end(&hot("transfer-encoding: chunked\r\ncontent-length: 3", chunks), "hot: ab");
    check(&hot("transfer-encoding: gzip, chunked", chunks), &["hot: ab"]);
    check_end(&hot("transfer-encoding: chunked, identity", chunks), "400 ");
    check(&hot("content-length: 1\r\ncontent-length: 1", "a"), &["hot: a"]);
    check_end(&hot("content-length: 1\r\ncontent-length: 2", "ab"), "400 ");
    for length in ["1, 1", "+1", "-1", "0x1", "1 1", "", "1a", "18446744073709551617"] {
        check_end(&hot(&format!("content-length: {length}"), "a"), "400 ");
    }
    check(&hot("content-length: 11", "0123456789a"), &["hot: TooLarge"]);
}

#[test]
fn what_is_unusual_is_hypers() {
    let hot = |line: &str| format!("POST /hot HTTP/1.1\r\n{line}\r\ncontent-length: 1\r\n\r\na");
    let many = |count: usize| "a: b\r\n".repeat(count) + "a: b";

    check_end(&hot("connection: close"), "hot: a");
    check_end(&hot("connection: keep-alive, close"), "hot: a");
    check(&hot("expect: 100-continue"), &["100 ", "hot: a"]);
    check(&hot("connection: upgrade\r\nupgrade: h2c"), &["hot: a"]);
    check_end(&hot("a: b\r\n c"), "400 ");
    check_end(&hot("a: b\0"), "400 ");
    check_end(&hot("a: b\rc"), "400 ");
    check_end(&hot("no field"), "400 ");
    check(&hot(&many(head::FIELDS_MAX)), &["hot: a"]);
    check_end(&hot(&many(120)), "431 ");
    check_end(&hot(&format!("a: {}", "b".repeat(40_000))), "431 ");
    check_end("POST /hot HTTP/1.0\r\ncontent-length: 1\r\n\r\na", "hot: a");
    check("POST /hot HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", &["hot: "]);
    check_end("POST /hot HTTP/1.2\r\n\r\n", "400 ");
    check_end("POST /hot\r\n\r\n", "400 ");
    check_end("\0", "400 ");
}

proptest! {
    #[test]
    fn both_ways_agree_about_any_requests_in_any_pieces(
        parts in vec(part(), 0..12),
        cuts in vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let text: String = parts.concat() + "\r\n\r\n" + LAST;

        let long = long(&text);
        prop_assert_eq!(&short(&[&text]), &long, "{:?}", text);
        let mut cuts: Vec<usize> = cuts.iter().map(|it| it.index(text.len())).collect();
        cuts.sort_unstable();
        let pieces = pieces(&text, &cuts);
        prop_assert_eq!(&short(&pieces), &long, "{:?}", pieces);
    }

    #[test]
    fn no_bytes_do_harm(pieces in vec(vec(any::<u8>(), 0..64), 0..4)) {
        speak(pieces.into_iter().collect());
    }
}

/// Pieces of requests, good and bad.
fn part() -> impl Strategy<Value = String> {
    const WHOLE: &str = "POST /hot HTTP/1.1\r\ncontent-length: 2\r\n\r\nab";
    const LINES: &[&str] = &[
        "POST /hot HTTP/1.1\r\n",
        "POST /hot HTTP/1.0\r\n",
        "POST /echo HTTP/1.1\r\n",
        "content-length: 2\r\n",
        "content-length: 3\r\n",
        "Content-Length: 30\r\n",
        "transfer-encoding: chunked\r\n",
        "connection: keep-alive\r\n",
        "connection: close\r\n",
        "expect: 100-continue\r\n",
        "a: b\r\n",
        " c\r\n",
        "\r\n",
        "\n",
        "\r",
        "ab",
        "2\r\nab\r\n0\r\n\r\n",
    ];
    prop_oneof![Just(WHOLE.to_owned()), prop::sample::select(LINES).prop_map(str::to_owned)]
}

/// The connection that `pieces` are read from one after the other. Then nothing comes.
struct Script {
    pieces: VecDeque<Vec<u8>>,
    written: Arc<Mutex<Vec<u8>>>,
}

/// Whether there is more to do.
#[derive(Default)]
struct Woken(AtomicBool);

/// A request gets an answer with this in it, and the connection ends.
fn check_end(request: &str, expected: &str) {
    let answers = compare(request);

    assert!(answers.contains(expected), "{request:?}: {answers}");
    assert!(!answers.ends_with("last"), "{request:?}: {answers}");
}

/// Requests get answers with these in them, and the connection goes on.
fn check(requests: &str, expected: &[&str]) {
    let answers = compare(requests);

    let mut rest = &*answers;
    for said in expected.iter().chain(&["\r\n\r\nlast"]) {
        let at = rest.find(said);
        let at = at.unwrap_or_else(|| panic!("{requests:?}: {said} is not in {answers}"));
        rest = &rest[at + said.len()..];
    }
}

/// The answers on the long way; those on the short way are the same, however the bytes are cut.
fn compare(requests: &str) -> String {
    let text = format!("{requests}{LAST}");
    let long = long(&text);

    assert_eq!(short(&[&text]), long, "{requests:?}");
    for cut in 1..text.len().min(200) {
        assert_eq!(short(&pieces(&text, &[cut])), long, "{requests:?} cut at {cut}");
    }
    long
}

fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([text.len()]);
    starts.zip(ends).map(|(start, end)| &text[start..end]).collect()
}

/// Answers by the short way.
fn short(pieces: &[&str]) -> String {
    speak(pieces.iter().map(|it| it.as_bytes().to_vec()).collect())
}

/// Answers by the long way.
fn long(text: &str) -> String {
    let answers = speak([FIRST.into(), text.into()].into());
    let (_, answers) = answers.split_once("first").unwrap();
    answers.to_owned()
}

/// Answers to all of it, without their dates.
fn speak(pieces: VecDeque<Vec<u8>>) -> String {
    let written = Arc::default();
    let script = Script { pieces, written: Arc::clone(&written) };
    let peer = "192.0.2.1:999".parse().unwrap();
    let router = Router::new().route("/echo", post(async |body: String| body));
    let hot: Option<Arc<dyn Hot>> = Some(Arc::new(Reader::default()));
    let answers = Answers { peer, router: &router, hot: &hot };
    let (limits, shutdown) = (Limits::default(), CancellationToken::new());
    run(pin!(drive(script, answers, &limits, &shutdown)));

    let written = String::from_utf8(written.lock().clone()).unwrap();
    let lines = written.split_inclusive("\r\n");
    lines.filter(|it| !it.starts_with("date: ")).collect()
}

/// Where it comes while time stands still.
pub(super) fn run<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _timers = runtime.enter();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return Some(output),
            Poll::Pending if woken.0.swap(false, Ordering::Relaxed) => {}
            Poll::Pending => return None,
        }
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Default for Reader {
    fn default() -> Self {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        Self(Heading::new([(CONTENT_TYPE, text)]))
    }
}

impl Hot for Reader {
    fn body_bytes_max(&self, method: &str, path: &str, _fields: Fields<'_>) -> Option<usize> {
        (method == "POST" && path == "/hot").then_some(BODY_BYTES_MAX)
    }

    fn heading(&self) -> &Heading {
        &self.0
    }

    fn answer(
        &self,
        asked: &Asked<'_>,
        answer: &mut Vec<u8>,
    ) -> Result<(), Box<Response<Vec<u8>>>> {
        answer.extend_from_slice(b"hot: ");
        let body = asked.body.map_err(|unread| {
            let mut response = Response::new(format!("hot: {unread:?}").into_bytes());
            *response.status_mut() = StatusCode::BAD_REQUEST;
            Box::new(response)
        })?;
        match body {
            b"peer" => answer.extend_from_slice(asked.peer.to_string().as_bytes()),
            b"panic" => panic!("as asked"),
            _ => answer.extend_from_slice(body),
        }
        Ok(())
    }
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(mut piece) = self.pieces.pop_front() {
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            if !rest.is_empty() {
                self.pieces.push_front(rest);
            }
            if !piece.is_empty() {
                buffer.put_slice(&piece);
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.lock().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
