//! The origin over HTTP/2 without TLS, as a CDN's shields speak it, and over pipelined HTTP/1.1.

use std::io::Read;

use axum::http::{HeaderMap, Request, StatusCode};
use broadcaster::Config;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use kit::meter::list;
use kit::task::Tasks;
use proto::control::RoomSettings;
use proto::envelope::RoomEvent;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::faults::until;
use crate::get::get;
use crate::stage::{PATIENCE, Running, World, config, settings};

/// The first slot of a room, which is held until it is sealed.
const FIRST: &str = "/dm/1/room-1/1/full/0.bin";

/// A client's connection.
struct Client {
    requests: SendRequest<Bytes>,
    _connection: Tasks,
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    async fn connect(broadcaster: &Running) -> Self {
        let stream = TcpStream::connect(broadcaster.addr).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        let mut tasks = Tasks::default();
        tasks.spawn("h2", async move { Ok(connection.await?) });
        Self { requests, _connection: tasks }
    }

    /// Sends a request without a body.
    async fn ask(
        &self,
        path: &str,
        field: (&str, &str),
    ) -> (ResponseFuture, h2::SendStream<Bytes>) {
        let mut requests = self.requests.clone().ready().await.unwrap();
        let uri = format!("http://origin{path}");
        let request = Request::get(uri).header(field.0, field.1).body(()).unwrap();
        requests.send_request(request, true).unwrap()
    }

    async fn get(&self, path: &str) -> Answer {
        self.get_with(path, ("accept", "*/*")).await
    }

    async fn get_with(&self, path: &str, field: (&str, &str)) -> Answer {
        read(self.ask(path, field).await.0).await
    }
}

async fn read(response: ResponseFuture) -> Answer {
    let response = tokio::time::timeout(PATIENCE, response).await.unwrap().unwrap();
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(bytes) = stream.data().await {
        let bytes = bytes.unwrap();
        stream.flow_control().release_capacity(bytes.len()).unwrap();
        body.extend_from_slice(&bytes);
    }
    Answer { status: parts.status, headers: parts.headers, body }
}

/// A broadcaster whose room has opened its first slot, of so many milliseconds.
async fn opened(world: &World, interval_ms: u32, config: Config) -> Running {
    world.set_room(RoomSettings { interval_ms, ..settings() }, true).await;
    let broadcaster = world.start(config).await;
    let mut sealed = world.sealed().await;
    sealed.find(|it| matches!(it, RoomEvent::Opened { .. }).then_some(())).await;
    until_shown(&broadcaster).await;
    broadcaster
}

/// Waits until the origin would hold the first slot.
async fn until_shown(broadcaster: &Running) {
    let is_held = async {
        while held(broadcaster) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::pin!(is_held);
    let shows = async {
        loop {
            let not_there = async { get(broadcaster.addr, FIRST).await.status == 404 };
            tokio::select! {
                () = &mut is_held => return,
                is_early = not_there => if !is_early { return },
            }
        }
    };
    tokio::time::timeout(PATIENCE, shows).await.expect("the room opens in time");
    until(|| held(broadcaster) == 0).await;
}

fn held(broadcaster: &Running) -> i64 {
    broadcaster.meter.gauge(list::BROADCASTER_HELD_REQUESTS, &[]).get()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_held_on_one_connection_are_answered_together() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = opened(&World::new(folder.path()), 4000, config(1)).await;
    let client = Client::connect(&broadcaster).await;

    let mut asked = Vec::new();
    for _ in 0..100 {
        asked.push(client.ask(FIRST, ("accept", "*/*")).await);
    }
    until(|| held(&broadcaster) == 100).await;
    let mut bodies = Vec::new();
    for (response, _request) in asked {
        let answer = read(response).await;
        assert_eq!(answer.status, 200);
        bodies.push(answer.body);
    }

    bodies.dedup();
    assert_eq!((bodies.len(), held(&broadcaster)), (1, 0));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_gives_a_held_request_up_frees_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let one = Config { held_max: 1, ..config(1) };
    let broadcaster = opened(&World::new(folder.path()), 10_000, one).await;
    let client = Client::connect(&broadcaster).await;

    for _ in 0..3 {
        let (_response, mut request) = client.ask(FIRST, ("accept", "*/*")).await;
        until(|| held(&broadcaster) == 1).await;
        assert_eq!(client.get(FIRST).await.status, 404, "there is one place");
        request.send_reset(h2::Reason::CANCEL);
        until(|| held(&broadcaster) == 0).await;
    }

    let mut http1 = TcpStream::connect(broadcaster.addr).await.unwrap();
    http1.write_all(format!("GET {FIRST} HTTP/1.1\r\nhost: o\r\n\r\n").as_bytes()).await.unwrap();
    until(|| held(&broadcaster) == 1).await;
    drop(http1);
    until(|| held(&broadcaster) == 0).await;
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_may_hold_as_many_requests_as_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let mut few = config(1);
    few.http.streams_max = 3;
    let broadcaster = opened(&World::new(folder.path()), 400, few).await;
    let client = Client::connect(&broadcaster).await;

    assert_eq!(client.get("/dm/1/room-1/9/full/0.bin").await.status, 404);
    let told = client.requests.current_max_send_streams();
    let head = async || client.get("/dm/1/room-1/head.json").await.status;
    let answers = tokio::join!(head(), head(), head(), head(), head());

    assert_eq!((told, Config::default().http.streams_max), (3, 128));
    for status in [answers.0, answers.1, answers.2, answers.3, answers.4] {
        assert!(status == 200 || status == 404, "{status}");
    }
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_ranges_are_answered_as_over_http_1() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = opened(&World::new(folder.path()), 400, config(1)).await;
    let client = Client::connect(&broadcaster).await;

    let whole = client.get(FIRST).await;
    let etag = whole.headers["etag"].to_str().unwrap();
    let known = client.get_with(FIRST, ("if-none-match", etag)).await;
    let ranged = client.get_with(FIRST, ("range", "bytes=0-3")).await;

    assert_eq!(
        (whole.status, whole.headers["accept-ranges"].as_bytes()),
        (StatusCode::OK, &b"none"[..])
    );
    assert_eq!(whole.headers["cache-control"], "public, max-age=30, s-maxage=600, immutable");
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!((ranged.status, ranged.body), (StatusCode::OK, whole.body));
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_reads_a_slot_over_http_2() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = opened(&World::new(folder.path()), 400, config(1)).await;

    let url = format!("http://{}{FIRST}", broadcaster.addr);
    let mut curl = tokio::process::Command::new("curl");
    curl.args(["--http2-prior-knowledge", "-sS", "-w", "%{http_version}", &url]);
    let output = curl.output().await.expect("curl is missing: run ops/tools/install");

    let bytes = output.stdout.strip_suffix(b"2").expect("it speaks HTTP/2");
    let mut expanded = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut expanded).unwrap();
    assert!(proto::segment::Segment::decode(&expanded).is_ok());
    broadcaster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let broadcaster = opened(&World::new(folder.path()), 400, config(1)).await;

    // The first is held; the others could be answered at once.
    let paths = [FIRST, "/dm/1/room-1/1/gen.json", "/dm/1/room-1/1/full/1000.bin"];
    let requests = paths.map(|it| format!("HEAD {it} HTTP/1.1\r\nhost: origin\r\n\r\n")).concat();
    let last = "HEAD / HTTP/1.1\r\nhost: origin\r\nconnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(broadcaster.addr).await.unwrap();
    stream.write_all((requests + last).as_bytes()).await.unwrap();
    let mut said = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut said)).await.unwrap().unwrap();

    let statuses: Vec<&str> = said.lines().filter_map(|it| it.strip_prefix("HTTP/1.1 ")).collect();
    let numbers: Vec<&str> = statuses.iter().map(|it| &it[..3]).collect();
    assert_eq!(numbers, ["200", "400", "404", "400"]);
    broadcaster.stop().await;
}
