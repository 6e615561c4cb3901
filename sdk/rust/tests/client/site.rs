//! `enter` and a segment origin in one small HTTP server, whose answers the test sets.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use kit::clock::Clock;
use kit::http::Plain;
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::address::Address;
use proto::enter::{Delivery, EnterRequest, EnterResponse, Offer, Problem, Retry};
use proto::head::{Base, Head, Tier, head_path, segment_path};
use proto::keys::RoomKeys;
use proto::segment::Segment;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::link::SERVER_MS;
use crate::rooms::room;

/// When `enter` wants to be asked again while it has no address.
pub(crate) const FULL_MS: u32 = 200;

/// The server.
pub(crate) struct Site {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: Tasks,
}

struct Shared {
    clock: Clock,
    state: Mutex<Content>,
    asked: Notify,
}

#[derive(Default)]
struct Content {
    addresses: Vec<Address>,
    bases: Vec<Base>,
    keys: Vec<RoomKeys>,
    problems: VecDeque<Problem>,
    entered: Vec<EnterRequest>,
    files: BTreeMap<String, (StatusCode, Vec<u8>)>,
    /// Files as they go over the wire, with their `Content-Encoding`, if they have one.
    packed: BTreeMap<String, (&'static str, Vec<u8>)>,
    /// Path and when it was asked for, by the test's own clock.
    asked: Vec<(String, u64)>,
}

impl Site {
    pub(crate) async fn start(clock: &Clock) -> Self {
        let shared = Arc::new(Shared {
            clock: clock.clone(),
            state: Mutex::default(),
            asked: Notify::new(),
        });
        let router = Router::new()
            .route("/v1/enter", post(enter))
            .route("/dm/1/{*path}", get(file))
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let mut tasks = Tasks::default();
        let serving = kit::http::serve(listener, Plain, router, CancellationToken::new());
        tasks.spawn("site", serving);
        Self { addr, shared, _tasks: tasks }
    }

    pub(crate) fn enter_url(&self) -> String {
        format!("http://{}/v1/enter", self.addr)
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What `enter` answers from now on.
    pub(crate) fn offer(&self, addresses: &[Address], bases: &[&Self]) {
        let mut content = self.shared.state.lock();
        content.addresses = addresses.to_vec();
        content.bases = bases.iter().map(|it| Base { base: it.base(), weight: 1 }).collect();
    }

    /// `enter` tells these keys from now on.
    pub(crate) fn tell_keys(&self, keys: RoomKeys) {
        self.shared.state.lock().keys = vec![keys];
    }

    /// The next answer of `enter` is this refusal.
    pub(crate) fn refuse(&self, status: u16, code: &str, retry_after_ms: u32) {
        self.shared.state.lock().problems.push_back(Problem {
            status,
            code: code.to_owned(),
            title: String::new(),
            retry_after_ms,
            server_ms: SERVER_MS,
        });
    }

    pub(crate) fn put_head(&self, head: &Head) {
        let bytes = serde_json::to_vec(head).expect("a head is JSON");
        self.put(&head_path(&room()), StatusCode::OK, bytes);
    }

    pub(crate) fn put_segment(&self, segment: &Segment) {
        let header = &segment.header;
        let path = segment_path(&room(), header.gen_no, Tier::Full, header.slot, "bin");
        self.put(&path, StatusCode::OK, segment.encode().to_vec());
    }

    pub(crate) fn put(&self, path: &str, status: StatusCode, bytes: Vec<u8>) {
        self.shared.state.lock().files.insert(path.to_owned(), (status, bytes));
    }

    /// A file that is served with these very bytes; no encoding is an empty one.
    pub(crate) fn put_packed(&self, path: &str, encoding: &'static str, bytes: Vec<u8>) {
        self.shared.state.lock().packed.insert(path.to_owned(), (encoding, bytes));
    }

    /// Questions to `enter` so far.
    pub(crate) fn entered(&self) -> Vec<EnterRequest> {
        self.shared.state.lock().entered.clone()
    }

    /// Files asked for so far.
    pub(crate) fn asked(&self) -> Vec<(String, u64)> {
        self.shared.state.lock().asked.clone()
    }

    /// Waits until a file whose path ends like this was asked for this often.
    pub(crate) async fn wait_for(&self, end: &str, times: usize) {
        let waiting = async {
            loop {
                let asked = self.shared.asked.notified();
                if self.asked().iter().filter(|(it, _)| it.ends_with(end)).count() >= times {
                    return;
                }
                asked.await;
            }
        };
        tokio::time::timeout(crate::link::STEP, waiting).await.expect("it is asked for");
    }
}

async fn enter(State(shared): State<Arc<Shared>>, Json(request): Json<EnterRequest>) -> Response {
    let mut content = shared.state.lock();
    content.entered.push(request.clone());
    if let Some(problem) = content.problems.pop_front() {
        let status = StatusCode::from_u16(problem.status).expect("a status");
        return (status, Json(problem)).into_response();
    }
    let offers = content
        .addresses
        .iter()
        .filter(|it| request.renew.as_ref().is_none_or(|renew| *renew == it.authority()));
    let offer = |address: &Address| Offer {
        address: address.clone(),
        token: format!("token for {}", address.authority()),
    };
    Json(EnterResponse {
        server_ms: SERVER_MS,
        addresses: offers.map(offer).collect(),
        delivery: vec![Delivery::Push],
        segments: content.bases.clone(),
        keys: content.keys.clone(),
        retry: Retry { base_ms: 20, max_ms: 100, factor: 2.0, jitter: 1.0 },
        retry_after_ms: if content.addresses.is_empty() { FULL_MS } else { 0 },
    })
    .into_response()
}

async fn file(State(shared): State<Arc<Shared>>, Path(path): Path<String>) -> Response {
    let path = format!("dm/1/{path}");
    let mut content = shared.state.lock();
    content.asked.push((path.clone(), shared.clock.mono().0));
    shared.asked.notify_waiters();
    if let Some((encoding, bytes)) = content.packed.get(&path) {
        let mut response = bytes.clone().into_response();
        if !encoding.is_empty() {
            let encoding = HeaderValue::from_static(encoding);
            response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
        }
        return response;
    }
    let Some((status, bytes)) = content.files.get(&path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).expect("memory takes it");
    let body = gzip.finish().expect("memory takes it");
    (*status, [(header::CONTENT_ENCODING, "gzip")], body).into_response()
}
