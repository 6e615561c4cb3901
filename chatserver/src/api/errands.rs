//! What changes something is done to its end, whether or not whoever asked still listens: a write
//! without its announcement would bite nowhere before a restart.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use kit::task::Tasks;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use super::Api;
use super::no::No;

/// Requests that are being done, about 10 KiB each, most of them still listened to. More wait for
/// their turn.
const ERRANDS_MAX: usize = 4000;

/// The requests that are being done.
#[derive(Debug)]
pub(crate) struct Errands {
    places: Arc<Semaphore>,
    tasks: Mutex<Tasks>,
}

impl Default for Errands {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(ERRANDS_MAX)), tasks: Mutex::default() }
    }
}

/// Does the request in a task of its own, unless it only reads.
pub(super) async fn finish(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let Errands { places, tasks } = &api.errands;
    let Ok(place) = Arc::clone(places).acquire_owned().await else {
        return No::Fault.into_response();
    };
    let (answer, answered) = oneshot::channel();
    let errand = async move {
        // Whoever no longer listens has lost nothing.
        answer.send(next.run(request).await).ok();
        drop(place);
        Ok(())
    };
    {
        let mut tasks = tasks.lock();
        if let Err(error) = tasks.reap() {
            tracing::error!(error = format!("{error:#}"), "a request was not done to its end");
        }
        tasks.spawn("chatserver request", errand);
    }
    answered.await.unwrap_or_else(|_| No::Fault.into_response())
}
