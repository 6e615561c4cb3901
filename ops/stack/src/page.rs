//! The demo page of `barrage up`: three static files and one that says where the room is.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use kit::http::{Plain, Server};
use kit::meter::Meter;
use proto::id::RoomId;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Where the page finds its room.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The demo room.
    pub room: RoomId,
    /// Base of its segments, without a slash at the end.
    pub origin: String,
}

/// Serves the page on `listener` until `stop`.
///
/// # Errors
/// When the server failed.
pub async fn serve(
    listener: TcpListener,
    place: Place,
    meter: &Meter,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let server = Server::new(kit::http::Limits::default(), meter, "page");
    server.serve(listener, Plain, router(place), stop).await
}

/// The page's routes.
fn router(place: Place) -> Router {
    let place = Arc::new(place);
    Router::new()
        .route("/", get(|| file("text/html; charset=utf-8", include_str!("page/index.html"))))
        .route("/page.css", get(|| file("text/css; charset=utf-8", include_str!("page/page.css"))))
        .route(
            "/page.js",
            get(|| file("text/javascript; charset=utf-8", include_str!("page/page.js"))),
        )
        .route("/page.json", get(move || async move { axum::Json(place.as_ref().clone()) }))
}

/// Scripts come from this page only, and nothing a viewer wrote can become one.
#[expect(clippy::unused_async, reason = "a handler is async")]
async fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
        connect-src *; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text)
}
