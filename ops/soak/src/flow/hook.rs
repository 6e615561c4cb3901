//! A review hook that allows everything, and counts its calls.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use axum::Router;
use axum::routing::post;
use kit::http;
use kit::task::Tasks;
use proto::id::AppId;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What questions are signed with; nobody looks.
const SECRET: &str = "a secret of the soak";
/// Time for an answer: more than a busy machine takes.
const DEADLINE_MS: u32 = 5_000;
/// Calls at a time: a burst is asked about at once.
const CALLS_MAX: u32 = 1_024;

/// The hook.
#[derive(Debug)]
pub(super) struct Hook {
    addr: SocketAddr,
    calls: Arc<AtomicU64>,
    stop: CancellationToken,
    server: Tasks,
}

impl Hook {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let calls = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&calls);
        let answer = move || async move {
            counted.fetch_add(1, Ordering::Relaxed);
            axum::Json(json!({ "verdict": "allow" }))
        };
        let router = Router::new().route("/review", post(answer));
        let stop = CancellationToken::new();
        let mut server = Tasks::default();
        server.spawn("review hook", http::serve(listener, http::Plain, router, stop.clone()));
        Ok(Self { addr, calls, stop, server })
    }

    /// `[[chatserver.review]]`: it is asked about every comment of the app.
    pub(super) fn review<T: DeserializeOwned>(&self, app: AppId) -> anyhow::Result<T> {
        let url = format!("http://{}/review", self.addr);
        let hook = json!({
            "app": app,
            "url": url,
            "secret": SECRET,
            "when": "all",
            "deadline_ms": DEADLINE_MS,
            "calls_max": CALLS_MAX,
        });
        serde_json::from_value(json!([hook])).context("the hook's configuration")
    }

    /// `[chatserver.outward]`: it may be called.
    pub(super) fn outward<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        let network = format!("{}/32", self.addr.ip());
        serde_json::from_value(json!({ "networks": [network] })).context("the hook's network")
    }

    /// How often it was asked.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.server.next().await {
            ended?;
        }
        Ok(())
    }
}
