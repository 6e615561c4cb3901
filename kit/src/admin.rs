//! What an operator asks a process: its metrics, whether it lives, whether it can do its job.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use crate::health::Health;
use crate::meter::Meter;
use crate::process;

/// `/metrics` (Prometheus), `/livez` (200 while the process answers), `/readyz` (200, or 503 with
/// the failing parts; either with the parts that warn).
pub fn router(meter: Meter, health: Health) -> Router {
    Router::new()
        .route("/metrics", get(metrics).with_state(meter))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready).with_state(health))
}

/// The answer of `/readyz`.
#[derive(Serialize)]
struct Readiness {
    ready: bool,
    failing: Vec<Said>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warning: Vec<Said>,
}

#[derive(Serialize)]
struct Said {
    part: &'static str,
    why: String,
}

async fn metrics(State(meter): State<Meter>) -> Response {
    process::measure(&meter);
    let text = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (text, meter.render()).into_response()
}

async fn ready(State(health): State<Health>) -> Response {
    let said = |parts: Vec<(&'static str, String)>| {
        parts.into_iter().map(|(part, why)| Said { part, why }).collect::<Vec<_>>()
    };
    let (failing, warning) = (said(health.failures()), said(health.warnings()));
    let readiness = Readiness { ready: failing.is_empty(), failing, warning };
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;
    use crate::meter::list;

    #[tokio::test]
    async fn readiness_names_what_fails_until_it_works() {
        let health = Health::default();
        let bus = health.part("bus");
        let store = health.part("store");
        let router = router(Meter::new(), health);
        store.ok();

        bus.fail("away");
        let (status, body) = ask(&router, "/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(body, r#"{"ready":false,"failing":[{"part":"bus","why":"away"}]}"#);

        bus.ok();
        let (status, body) = ask(&router, "/readyz").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(body, r#"{"ready":true,"failing":[]}"#);
    }

    #[tokio::test]
    async fn a_part_that_warns_is_named_and_the_process_stays_ready() {
        let health = Health::default();
        let keys = health.part("keys");
        let router = router(Meter::new(), health);

        keys.warn("known for 15 minutes only");

        let (status, body) = ask(&router, "/readyz").await;
        assert_eq!(status, StatusCode::OK);
        let warning = r#"[{"part":"keys","why":"known for 15 minutes only"}]"#;
        assert_eq!(body, format!(r#"{{"ready":true,"failing":[],"warning":{warning}}}"#));
    }

    #[tokio::test]
    async fn a_process_that_cannot_do_its_job_still_lives() {
        let health = Health::default();
        health.part("bus").fail("away");

        let (status, body) = ask(&router(Meter::new(), health), "/livez").await;

        assert_eq!((status, body.as_str()), (StatusCode::OK, "ok\n"));
    }

    #[tokio::test]
    async fn metrics_hold_the_list_and_the_process() {
        let meter = Meter::new();
        meter.gauge(list::LINK_SESSIONS, &[]).set(5);

        let (status, body) = ask(&router(meter, Health::default()), "/metrics").await;

        assert_eq!(status, StatusCode::OK);
        assert!(body.contains("link_sessions 5"), "{body}");
        assert!(body.contains("process_resident_bytes "), "{body}");
    }

    async fn ask(router: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}
