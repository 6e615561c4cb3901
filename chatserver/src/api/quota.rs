//! What an app has, and what it may have and ask.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Api;
use super::caller::Caller;
use super::no::No;
use crate::quota::Quota;
use crate::store::rows::{APP_WORDS_MAX, LISTS_MAX, Used};

#[derive(Debug, Serialize)]
struct App {
    rooms: Part,
    acts: Part,
    words: Part,
    word_lists: Part,
    requests_per_s: u32,
    requests_burst: u32,
}

/// Some of what there may be.
#[derive(Debug, Serialize)]
struct Part {
    used: usize,
    max: usize,
}

/// `GET /v1/quota`.
pub(crate) async fn read(State(api): State<Arc<Api>>, Caller(app): Caller) -> Result<Response, No> {
    let Used { rooms, acts, words, lists } = api.site.rows.used(app).await?;
    let Quota { rooms_max, acts_max, requests_per_s, requests_burst } =
        api.site.config.quota_of(app);
    let part = |used: u32, max: u32| Part { used: size(used), max: size(max) };
    let quota = App {
        rooms: part(rooms, rooms_max),
        acts: part(acts, acts_max),
        words: Part { used: words, max: APP_WORDS_MAX },
        word_lists: Part { used: lists, max: LISTS_MAX },
        requests_per_s,
        requests_burst,
    };
    Ok(Json(quota).into_response())
}

/// On the machines this runs on, every u32 is a usize.
fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
