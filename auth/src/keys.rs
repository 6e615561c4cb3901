//! `POST /v1/keys/link` and `POST /v1/keys/masters`.

use std::sync::Arc;

use auth_core::keyring::{Keyring, TOKEN_KEYS_MAX};
use auth_core::node::NodeRole;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use kit::clock::Clock;
use kit::meter::{Meter, list};
use kit::problem::Problem;
use parking_lot::RwLock;
use proto::id::AppId;
use proto::keys::{LinkKeys, LinkKeysRequest, Masters};

use crate::node::Nodes;

/// Addresses of one link.
const ADDRESSES_MAX: usize = 64;
/// Bytes of one address: a host name of 253 bytes and a port.
const ADDRESS_BYTES_MAX: usize = 260;
/// When a node should ask again that came before the first epoch.
const NOT_READY_RETRY_MS: u32 = 500;

/// What the answers are made of.
pub(crate) struct Keys {
    pub(crate) clock: Clock,
    pub(crate) meter: Meter,
    pub(crate) nodes: Nodes,
    pub(crate) apps: Vec<AppId>,
    pub(crate) masters: Masters,
    pub(crate) keyring: RwLock<Keyring>,
}

/// The routes.
pub(crate) fn router(keys: Arc<Keys>) -> Router {
    Router::new()
        .route("/v1/keys/link", post(link))
        .route("/v1/keys/masters", post(masters))
        .with_state(keys)
}

async fn link(
    State(keys): State<Arc<Keys>>,
    headers: HeaderMap,
    body: Result<Json<LinkKeysRequest>, JsonRejection>,
) -> Response {
    let answer = keys.link(&headers, body);
    keys.respond("link", answer)
}

async fn masters(State(keys): State<Arc<Keys>>, headers: HeaderMap) -> Response {
    let answer = keys.nodes.authorize(&headers, NodeRole::Gslb).map(|_| keys.masters.clone());
    keys.respond("masters", answer)
}

impl Keys {
    fn link(
        &self,
        headers: &HeaderMap,
        body: Result<Json<LinkKeysRequest>, JsonRejection>,
    ) -> Result<LinkKeys, Box<Problem>> {
        let node = self.nodes.authorize(headers, NodeRole::Link)?;
        let Json(request) = body.map_err(|it| bad(it.body_text()))?;
        if request.node != node {
            let title = "a node fetches its own keys only";
            return Err(Box::new(Problem::new(StatusCode::FORBIDDEN, "other_node", title)));
        }
        if request.addresses.len() > ADDRESSES_MAX {
            return Err(bad(format!("more than {ADDRESSES_MAX} addresses")));
        }
        if request.addresses.iter().any(|it| it.len() > ADDRESS_BYTES_MAX) {
            return Err(bad(format!("an address of more than {ADDRESS_BYTES_MAX} bytes")));
        }
        let now = self.clock.wall();
        let keyring = self.keyring.read().needed_at(now);
        if keyring.horizon(now).is_zero() {
            let title = "the running epoch is not known yet";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_epoch", title);
            return Err(Box::new(problem.retry_after_ms(NOT_READY_RETRY_MS)));
        }
        if keyring.link_keys_count(request.addresses.len(), self.apps.len()) > TOKEN_KEYS_MAX {
            return Err(bad(format!("more than {TOKEN_KEYS_MAX} keys: name fewer addresses")));
        }
        Ok(keyring.link_keys(request.unit, &request.addresses, &self.apps))
    }

    /// Keys are never stored on the way.
    fn respond<T: serde::Serialize>(
        &self,
        kind: &str,
        answer: Result<T, Box<Problem>>,
    ) -> Response {
        let outcome = answer.as_ref().map_or_else(|it| it.0.code.as_str(), |_| "ok");
        self.meter.counter(list::AUTH_KEY_ANSWERS_TOTAL, &[kind, outcome]).inc();
        match answer {
            Ok(keys) => ([(header::CACHE_CONTROL, "no-store")], Json(keys)).into_response(),
            Err(problem) => problem.server_ms(self.clock.wall()).into_response(),
        }
    }
}

fn bad(title: impl Into<String>) -> Box<Problem> {
    Box::new(Problem::new(StatusCode::BAD_REQUEST, "bad_request", title))
}
