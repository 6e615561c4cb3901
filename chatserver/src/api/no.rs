//! Every "no" of the business API: its status, its word for programs, its words for people.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chatserver_core::rank::NotAllowed;
use kit::problem::Problem;

use crate::store::StoreError;

/// When a caller should try again after something inside was away.
const AWAY_RETRY_MS: u32 = 1000;

/// Why a request was not done.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum No {
    #[error("an API key of an app is needed as a bearer token")]
    Unauthorized,
    #[error("there is no such resource")]
    Route,
    #[error("this resource has no such method")]
    Method,
    #[error("there is no such room in this app")]
    Room,
    #[error("the room is closed")]
    Closed,
    #[error("the room exists in another app")]
    Taken,
    #[error("it was changed by someone else")]
    Changed,
    #[error("it was changed by someone else, and has version {version} now")]
    Moved { version: u64 },
    #[error("nothing stands under this name")]
    Attribute,
    #[error("the viewer is on the room's allow-list")]
    Protected,
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("{field}: {why}")]
    Field { field: &'static str, why: String },
    /// axum's own status and words: no JSON, not this JSON, too large, no such query.
    #[error("{why}")]
    Form { status: StatusCode, why: String },
    #[error("the idempotency key came before, with other content, which is what counts")]
    KeyReused,
    #[error("the lane cannot show it soon enough")]
    OverShare { retry_after_ms: u32 },
    #[error("the app asks too often")]
    TooFast { retry_after_ms: u32 },
    #[error("there are as many of these as there may be")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("it is written and counts, and the others are told once they can be: do not repeat it")]
    Untold,
    #[error("the service failed")]
    Fault,
}

impl No {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::NotAllowed(_) => StatusCode::FORBIDDEN,
            Self::Route | Self::Room | Self::Attribute => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Closed | Self::Taken | Self::KeyReused | Self::TooMany | Self::Protected => {
                StatusCode::CONFLICT
            }
            Self::Changed | Self::Moved { .. } => StatusCode::PRECONDITION_FAILED,
            Self::Field { .. } => StatusCode::BAD_REQUEST,
            Self::Form { status, .. } => *status,
            Self::OverShare { .. } | Self::TooFast { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Store(_) | Self::Untold => StatusCode::SERVICE_UNAVAILABLE,
            Self::Fault => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Route => "not_found",
            Self::Method => "method_not_allowed",
            Self::Room => "no_room",
            Self::Closed => "room_closed",
            Self::Taken => "room_taken",
            Self::Changed | Self::Moved { .. } => "changed",
            Self::Attribute => "no_attribute",
            Self::Protected => "protected",
            Self::NotAllowed(_) => "not_allowed",
            Self::Field { .. } => "invalid_field",
            Self::Form { .. } => "invalid_form",
            Self::KeyReused => "key_reused",
            Self::OverShare { .. } => "over_share",
            Self::TooFast { .. } => "rate_limited",
            Self::TooMany => "too_many",
            Self::Store(_) => "unavailable",
            Self::Untold => "untold",
            Self::Fault => "fault",
        }
    }

    const fn retry_after_ms(&self) -> u32 {
        match self {
            Self::OverShare { retry_after_ms } | Self::TooFast { retry_after_ms } => {
                *retry_after_ms
            }
            Self::Store(_) => AWAY_RETRY_MS,
            Self::Unauthorized
            | Self::Route
            | Self::Method
            | Self::Room
            | Self::Closed
            | Self::Taken
            | Self::Changed
            | Self::Moved { .. }
            | Self::Attribute
            | Self::Protected
            | Self::NotAllowed(_)
            | Self::Field { .. }
            | Self::Form { .. }
            | Self::KeyReused
            | Self::TooMany
            | Self::Untold
            | Self::Fault => 0,
        }
    }
}

impl IntoResponse for No {
    fn into_response(self) -> Response {
        let problem = Problem::new(self.status(), self.code(), self.to_string());
        let mut response = problem.retry_after_ms(self.retry_after_ms()).into_response();
        if let Self::Unauthorized = self {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
        }
        if let Self::Moved { version } = self
            && let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\""))
        {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}
