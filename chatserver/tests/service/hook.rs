//! A business server on loopback that answers as the test wants, well or badly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use channel::DevCerts;
use chatserver::OutwardConfig;
use chatserver_core::reach::Reach;
use chatserver_core::sign;
use kit::task::Tasks;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub(crate) const SECRET: &str = "a secret of the tests";

/// How it answers.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// This, with the status 200.
    Says(Value),
    /// Not before somebody lets it.
    Waits,
    /// Another status.
    Status(u16),
    /// Go elsewhere: to a page of its own.
    Redirect,
    /// More than anybody reads.
    Huge,
    /// It closes the connection without a word.
    Breaks,
}

/// The server.
pub(crate) struct Hook {
    state: Arc<Served>,
    pub(crate) addr: SocketAddr,
    folder: TempDir,
    _tasks: Tasks,
}

struct Served {
    mode: Mutex<Mode>,
    heard: Mutex<Vec<Value>>,
    go: Semaphore,
    busy: AtomicUsize,
    busiest: AtomicUsize,
    misled: AtomicUsize,
    unsigned: AtomicUsize,
}

impl Hook {
    pub(crate) async fn start(mode: Mode) -> Self {
        let state = Arc::new(Served {
            mode: Mutex::new(mode),
            heard: Mutex::default(),
            go: Semaphore::new(0),
            busy: AtomicUsize::new(0),
            busiest: AtomicUsize::new(0),
            misled: AtomicUsize::new(0),
            unsigned: AtomicUsize::new(0),
        });
        let router = Router::new()
            .route("/hook", post(answer))
            .route("/elsewhere", post(mislead).get(mislead))
            .with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut tasks = Tasks::default();
        tasks.spawn("hook", async move { Ok(axum::serve(listener, router).await?) });
        let folder = TempDir::new().unwrap();
        DevCerts::load_or_create(folder.path(), &[]).unwrap();
        Self { state, addr, folder, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.addr)
    }

    /// How a chatserver has to call out for this to be reached.
    pub(crate) fn outward(&self) -> OutwardConfig {
        let networks = Reach::new(vec!["127.0.0.0/8".parse().unwrap()]);
        OutwardConfig { networks, ca: self.folder.path().join("ca.pem") }
    }

    pub(crate) fn turn(&self, mode: Mode) {
        *self.state.mode.lock() = mode;
    }

    /// Lets what waits be answered, and what comes later.
    pub(crate) fn let_go(&self) {
        self.state.go.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// Bodies that it heard.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.state.heard.lock().clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.heard.lock().len()
    }

    /// Most calls at a time.
    pub(crate) fn busiest(&self) -> usize {
        self.state.busiest.load(Ordering::Relaxed)
    }

    /// Calls that followed a redirect.
    pub(crate) fn misled(&self) -> usize {
        self.state.misled.load(Ordering::Relaxed)
    }

    /// Calls whose signature was wrong or too old.
    pub(crate) fn unsigned(&self) -> usize {
        self.state.unsigned.load(Ordering::Relaxed)
    }
}

async fn mislead(State(state): State<Arc<Served>>) -> &'static str {
    state.misled.fetch_add(1, Ordering::Relaxed);
    r#"{"verdict": "allow"}"#
}

async fn answer(
    State(state): State<Arc<Served>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, StatusCode> {
    let busy = state.busy.fetch_add(1, Ordering::Relaxed) + 1;
    let leave = Leave(Arc::clone(&state));
    state.busiest.fetch_max(busy, Ordering::Relaxed);
    if !is_signed(&headers, &body) {
        state.unsigned.fetch_add(1, Ordering::Relaxed);
        return Err(StatusCode::FORBIDDEN);
    }
    state.heard.lock().push(serde_json::from_slice(&body).unwrap());
    let mode = state.mode.lock().clone();
    let response = match mode {
        Mode::Says(body) => axum::Json(body).into_response(),
        Mode::Waits => {
            state.go.acquire().await.unwrap().forget();
            axum::Json(json!({"verdict": "allow"})).into_response()
        }
        Mode::Status(status) => return Err(StatusCode::from_u16(status).unwrap()),
        Mode::Redirect => Redirect::temporary("/elsewhere").into_response(),
        Mode::Huge => vec![b' '; 1_000_000].into_response(),
        Mode::Breaks => std::panic::resume_unwind(Box::new("the connection is to break")),
    };
    drop(leave);
    Ok(response)
}

/// Counts a call out, also when the caller hung up.
struct Leave(Arc<Served>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// As a business server should look at it.
fn is_signed(headers: &HeaderMap, body: &[u8]) -> bool {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    let at_s = text(sign::TIME_HEADER).and_then(|it| it.parse::<u64>().ok());
    let signature = text(sign::SIGNATURE_HEADER).and_then(|it| it.strip_prefix("v1="));
    let (Some(at_s), Some(signature)) = (at_s, signature) else { return false };
    let now_s = kit::clock::Clock::system().wall().0 / 1000;
    let digits = sign::sign(SECRET, at_s, body).map(|it| format!("{it:02x}")).concat();
    signature == digits && now_s.abs_diff(at_s) <= sign::REPLAY_WINDOW.as_secs()
}
