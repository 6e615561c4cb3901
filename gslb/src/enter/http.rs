//! The question and the answer over HTTP; any web page may ask.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CACHE_CONTROL,
    CONTENT_TYPE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use kit::meter::list;

use super::refusal::Refusal;
use super::{Answerer, Question, peer};

/// Bytes of a question: twice the longest ticket.
const BODY_BYTES_MAX: usize = 8 * 1024;

/// `POST /v1/enter`, and nothing else.
pub(crate) fn router(enter: Arc<Answerer>) -> Router {
    Router::new()
        .route("/v1/enter", post(ask).options(preflight))
        .method_not_allowed_fallback(async |State(enter): State<Arc<Answerer>>| {
            enter.refuse(&Refusal::Method)
        })
        .fallback(async |State(enter): State<Arc<Answerer>>| enter.refuse(&Refusal::NotFound))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::map_response(to_anyone))
        .with_state(enter)
}

async fn ask(
    State(enter): State<Arc<Answerer>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return enter.refuse(&Refusal::TooLarge);
        }
        Err(_) => return enter.refuse(&Refusal::Malformed),
    };
    let authorization = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
    let question = Question {
        body: &body,
        from: peer::address(peer, &headers, enter.config.trusted_hops),
        api_key: authorization.and_then(|it| it.strip_prefix("Bearer ")),
    };
    let mut answer = Vec::new();
    match enter.answer(&question, enter.clock.wall(), &mut answer) {
        Ok(()) => {
            let json = HeaderValue::from_static("application/json");
            let no_store = HeaderValue::from_static("no-store");
            ([(CONTENT_TYPE, json), (CACHE_CONTROL, no_store)], answer).into_response()
        }
        Err(refusal) => enter.refuse(&refusal),
    }
}

/// What a browser asks before it asks.
async fn preflight() -> impl IntoResponse {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers)
}

async fn to_anyone(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("date, retry-after"));
    response
}

impl Answerer {
    fn refuse(&self, refusal: &Refusal) -> Response {
        self.meter.counter(list::GSLB_REFUSALS_TOTAL, &[refusal.code()]).inc();
        refusal.problem(self.clock.wall()).into_response()
    }
}
