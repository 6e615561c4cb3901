//! `GET /v1/nodes`: what operators see.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use proto::time::Wall;
use serde::Serialize;

use super::{Answerer, Refusal, http};
use crate::nodes::View;

#[derive(Serialize)]
struct Nodes {
    server_ms: Wall,
    #[serde(flatten)]
    view: View,
}

/// The fleet, for whoever shows an operator's key.
pub(super) async fn nodes(
    State(enter): State<Arc<Answerer>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let from = http::client(peer, &headers, &enter);
    if let Err(refusal) = enter.admission.operator(from, http::bearer(&headers)) {
        return enter.refuse(&refusal);
    }
    let Ok(view) = enter.desk.view().await else {
        let retry_after_ms = enter.admission.returns.next_ms();
        return enter.refuse(&Refusal::Busy { retry_after_ms });
    };
    let no_store = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (no_store, Json(Nodes { server_ms: enter.clock.wall(), view })).into_response()
}
