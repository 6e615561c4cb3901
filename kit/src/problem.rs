//! "No" over HTTP: an `application/problem+json` response (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use proto::time::Wall;

/// A [`proto::enter::Problem`] that can be returned from an axum handler.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem(pub proto::enter::Problem);

impl Problem {
    /// A problem with a stable word for programs and a title for people.
    #[must_use]
    pub fn new(status: StatusCode, code: &str, title: impl Into<String>) -> Self {
        Self(proto::enter::Problem {
            status: status.as_u16(),
            code: code.to_owned(),
            title: title.into(),
            retry_after_ms: 0,
            server_ms: Wall(0),
        })
    }

    /// Says when to try again; also as the header `retry-after`, in whole seconds, rounded up.
    #[must_use]
    pub fn retry_after_ms(mut self, retry_after_ms: u32) -> Self {
        self.0.retry_after_ms = retry_after_ms;
        self
    }

    /// The response, its body as bytes.
    #[must_use]
    pub fn into_bytes(self) -> Response<Vec<u8>> {
        let Self(problem) = self;
        let body = serde_json::to_vec(&problem).expect("numbers and texts are JSON");
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        let problem_json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem_json);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if problem.retry_after_ms > 0 {
            let seconds = problem.retry_after_ms.div_ceil(1000);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// Tells the server's time, for clients whose clock is wrong.
    #[must_use]
    pub fn server_ms(mut self, now: Wall) -> Self {
        self.0.server_ms = now;
        self
    }
}

impl From<proto::enter::Problem> for Problem {
    fn from(problem: proto::enter::Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> axum::response::Response {
        self.into_bytes().map(Body::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_problem_says_when_to_come_back() {
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "busy", "come back later")
            .retry_after_ms(1001)
            .server_ms(Wall(5));

        let response = problem.clone().into_response();

        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.headers()["retry-after"], "2");
        let body = axum::body::to_bytes(response.into_body(), 1024).await.unwrap();
        assert_eq!(serde_json::from_slice::<proto::enter::Problem>(&body).unwrap(), problem.0);
    }

    #[test]
    fn a_final_no_has_no_retry_after() {
        let response = Problem::new(StatusCode::FORBIDDEN, "banned", "banned").into_response();

        assert_eq!(response.headers().get("retry-after"), None);
    }
}
