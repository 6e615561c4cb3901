//! Questions and answers over HTTP; any web page may ask.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CACHE_CONTROL,
    CONTENT_LENGTH, CONTENT_TYPE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, options, post};
use kit::http::{Asked, Fields, Heading, Hot, Unread};

use super::render::Form;
use super::{Answerer, Question, Refusal, nodes, peer, plain};

/// Bytes of a question: twice the longest ticket.
const BODY_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a usual answer.
const ANSWER_BYTES: usize = 2 * 1024;

/// The question that is asked most.
const ONE: &str = "/v1/enter";
/// A business server's, for many viewers.
const MANY: &str = "/v1/enter:batch";

/// What proxies write whom they speak for into.
const FORWARDED_FOR: &str = "x-forwarded-for";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Every path of the service, but for the questions that are asked most: those are [`Hot`].
pub(crate) fn router(enter: Arc<Answerer>) -> Router {
    Router::new()
        .route(ONE, options(async || preflight("POST", "content-type")))
        .route(
            "/v1/enter.txt",
            get(ask_plainly).options(async || preflight("GET", "authorization")),
        )
        .route(MANY, post(ask_for_many_without_key))
        .route("/v1/nodes", get(nodes::nodes))
        .method_not_allowed_fallback(async |State(enter): State<Arc<Answerer>>| {
            enter.refuse(&Refusal::Method)
        })
        .fallback(async |State(enter): State<Arc<Answerer>>| enter.refuse(&Refusal::NotFound))
        .layer(middleware::map_response(async |it| to_anyone(it)))
        .with_state(enter)
}

impl Hot for Answerer {
    fn body_bytes_max(&self, method: &str, path: &str, fields: Fields<'_>) -> Option<usize> {
        match path {
            ONE if method == "POST" => Some(BODY_BYTES_MAX),
            // Before the body: nobody else may have so much of it kept.
            MANY if method == "POST" && self.business(api_key(fields)).is_ok() => {
                Some(self.batch_bytes_max())
            }
            _ => None,
        }
    }

    fn heading(&self) -> &Heading {
        &self.heading
    }

    fn answer(
        &self,
        asked: &Asked<'_>,
        answer: &mut Vec<u8>,
    ) -> Result<(), Box<Response<Vec<u8>>>> {
        let Asked { path, fields, body, peer } = *asked;
        let from = peer::address(peer, fields.all(FORWARDED_FOR), self.config.trusted_hops);
        let api_key = api_key(fields);
        let answered = match body {
            Ok(body) if path == MANY => {
                let business = self.business(api_key);
                let answered = business.and_then(|it| self.answer_all(body, from, it, answer));
                answered.map_err(|it| self.admission.unread(from, it))
            }
            Ok(body) => Self::answer(self, &Question { body, from, api_key }, answer),
            Err(unread) => Err(self.admission.unread(from, unread.into())),
        };
        answered.map_err(|refusal| {
            self.counts.refused(&refusal);
            Box::new(to_anyone(refusal.problem(self.clock.wall()).into_bytes()))
        })
    }
}

/// The head of answers to the questions that are asked most.
pub(super) fn heading() -> Heading {
    Heading::new(answer_headers(JSON).into_iter().chain(for_anyone()))
}

impl From<Unread> for Refusal {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::TooLarge => Self::TooLarge,
            Unread::Broken => Self::Malformed,
            Unread::Late => Self::Late,
        }
    }
}

async fn ask_for_many_without_key(
    State(enter): State<Arc<Answerer>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let refusal = enter.business(bearer(&headers)).err().unwrap_or(Refusal::ApiKey);
    let from = client(peer, &headers, &enter);
    enter.refuse(&enter.admission.unread(from, refusal))
}

async fn ask_plainly(
    State(enter): State<Arc<Answerer>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    query: Result<Query<plain::Query>, QueryRejection>,
) -> Response {
    let mut answer = Vec::with_capacity(ANSWER_BYTES);
    let from = client(peer, &headers, &enter);
    let ask = match &query {
        Ok(Query(query)) => query.ask(bearer(&headers)),
        Err(_) => Err(Refusal::Malformed),
    };
    let asked = match ask {
        Ok(ask) => {
            let admitted = enter.admission.admit(from, None, None);
            admitted.and_then(|it| enter.answer_in(Form::Text, &ask, it, &mut answer))
        }
        Err(refusal) => Err(enter.admission.unread(from, refusal)),
    };
    match asked {
        Ok(()) => answered(TEXT, answer),
        Err(refusal) => {
            // Status and headers are those of the same problem in JSON.
            let (mut head, _) = enter.refuse(&refusal).into_parts();
            let text = HeaderValue::from_static(TEXT);
            head.headers.insert(CONTENT_TYPE, text);
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, plain::problem(&refusal, enter.clock.wall()).into())
        }
    }
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    bearer_in(headers.get(AUTHORIZATION)?.as_bytes())
}

fn api_key(fields: Fields<'_>) -> Option<&str> {
    fields.first(AUTHORIZATION.as_str()).and_then(bearer_in)
}

fn bearer_in(value: &[u8]) -> Option<&str> {
    str::from_utf8(value).ok()?.strip_prefix("Bearer ")
}

pub(super) fn client(peer: SocketAddr, headers: &HeaderMap, enter: &Answerer) -> IpAddr {
    let hops = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes);
    peer::address(peer, hops, enter.config.trusted_hops)
}

fn answered(content_type: &'static str, answer: Vec<u8>) -> Response {
    (answer_headers(content_type), answer).into_response()
}

fn answer_headers(content_type: &'static str) -> [(HeaderName, HeaderValue); 2] {
    [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]
}

/// What a browser asks before it asks.
fn preflight(method: &'static str, header: &'static str) -> impl IntoResponse {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, method),
        (ACCESS_CONTROL_ALLOW_HEADERS, header),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers)
}

fn to_anyone<B>(mut response: Response<B>) -> Response<B> {
    response.headers_mut().extend(for_anyone());
    response
}

fn for_anyone() -> [(HeaderName, HeaderValue); 2] {
    [
        (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
        (ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("date, retry-after")),
    ]
}

impl Answerer {
    pub(super) fn refuse(&self, refusal: &Refusal) -> Response {
        self.counts.refused(refusal);
        refusal.problem(self.clock.wall()).into_response()
    }
}
