//! Lists of words: an app's, for all its rooms, and a room's own.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chatserver_core::rank::Act;
use chatserver_core::words::Word;
use proto::id::AppId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use super::Api;
use super::acts::{Signed, What};
use super::caller::{Asked, Body, Caller, Names, header};
use super::no::No;
use crate::lists;
use crate::store::Write;
use crate::store::rows::{APP_WORDS_MAX, LISTS_MAX, List, Record, Scope};

/// Bytes of a list as JSON.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Words of one room; an app has [`chatserver_core::words::WORDS_MAX`].
const ROOM_WORDS_MAX: usize = 10_000;
/// How often a list is written again because another one came between.
const TRIES_MAX: usize = 5;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put {
    words: Vec<Word>,
}

#[derive(Debug, Serialize)]
struct Listed {
    version: u64,
    words: Vec<Word>,
}

#[derive(Debug, Serialize)]
struct Replaced {
    version: u64,
    /// Words that read differently.
    words: usize,
}

/// `GET /v1/words`.
pub(crate) async fn read_app(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
) -> Result<Response, No> {
    api.read_words(Scope { app, room: None }).await
}

/// `GET /v1/rooms/{room}/words`.
pub(crate) async fn read_room(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
) -> Result<Response, No> {
    let scope = api.room_scope(app, &room).await?;
    api.read_words(scope).await
}

/// `PUT /v1/words`: replaces the list. With `If-Match: "version"` only that version is replaced;
/// 412 otherwise.
pub(crate) async fn put_app(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    _turn: Turn,
    headers: HeaderMap,
    Body(Put { words }): Body<Put>,
) -> Result<Response, No> {
    let record = Record::new(api.site.clock.wall(), "words");
    api.put_words(Scope { app, room: None }, &headers, words, record, Vec::new()).await
}

/// `PUT /v1/rooms/{room}/words`: the same for one room.
pub(crate) async fn put_room(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(room): Names<String>,
    Asked(signed): Asked<Signed>,
    _turn: Turn,
    headers: HeaderMap,
    Body(Put { words }): Body<Put>,
) -> Result<Response, No> {
    let deed = api.deed(app, &room, signed).await?;
    deed.allow(Act::Arrange)?;
    if words.len() > ROOM_WORDS_MAX {
        let why = format!("a room lists at most {ROOM_WORDS_MAX} words of its own");
        return Err(No::Field { field: "words", why });
    }
    let record = deed.record(&api, "words", What::default());
    let scope = Scope { app, room: Some(deed.room) };
    api.put_words(scope, &headers, words, record, deed.guards).await
}

impl Api {
    async fn room_scope(&self, app: AppId, room: &str) -> Result<Scope, No> {
        Ok(Scope { app, room: Some(self.own_room(app, room).await?.room) })
    }

    async fn read_words(&self, scope: Scope) -> Result<Response, No> {
        let List { version, words } = self.site.rows.words(&scope).await?;
        let tag = [("etag", format!("\"{version}\""))];
        Ok((tag, Json(Listed { version, words })).into_response())
    }

    async fn put_words(
        &self,
        scope: Scope,
        headers: &HeaderMap,
        words: Vec<Word>,
        record: Record,
        mut beside: Vec<Write>,
    ) -> Result<Response, No> {
        let value = Some(json!({ "words": words.len() }));
        beside.push(Record { value, ..record }.write(scope.app, scope.room.as_ref())?);
        let wanted = version(headers)?;
        let compiled = lists::compile(words.clone())
            .await
            .map_err(|error| No::Field { field: "words", why: error.to_string() })?;
        let (others, other_words) = self.site.rows.other_words(&scope).await?;
        if others >= LISTS_MAX || other_words + words.len() > APP_WORDS_MAX {
            return Err(No::TooMany);
        }
        let tries = if wanted.is_some() { 1 } else { TRIES_MAX };
        let mut list = List { version: 0, words };
        for _ in 0..tries {
            let before = self.site.rows.words_version(&scope).await?;
            // By the clock, so that it rises also after an empty list, which leaves no version.
            list.version = self.site.clock.wall().0.max(before + 1);
            if wanted.is_some_and(|it| it != before) {
                return Err(No::Moved { version: before });
            }
            // Dropped before it is done, the list is read again: the write may have happened.
            let change = self.lists.change(scope.clone(), list.version);
            if self.site.rows.write_words(&scope, before, &list, beside.clone()).await? {
                let answer = Replaced { version: list.version, words: compiled.len() };
                change.done(compiled).await.map_err(|_| No::Untold)?;
                let tag = [("etag", format!("\"{}\"", answer.version))];
                return Ok((tag, Json(answer)).into_response());
            }
        }
        Err(No::Changed)
    }
}

/// Whoever replaces a list waits for it, before the body is read: each may hold a list of the
/// largest size, and its automaton.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "it is held")] OwnedMutexGuard<()>);

impl FromRequestParts<Arc<Api>> for Turn {
    type Rejection = No;

    async fn from_request_parts(_: &mut Parts, api: &Arc<Api>) -> Result<Self, No> {
        Ok(Self(Arc::clone(&api.words_turn).lock_owned().await))
    }
}

/// The version that `If-Match` names.
pub(super) fn version(headers: &HeaderMap) -> Result<Option<u64>, No> {
    match header(headers, "if-match", 32)? {
        None | Some("*") => Ok(None),
        Some(text) => {
            let version = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let version = version.filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
            let why = || "must be a version in quotes, or *".to_owned();
            let version = version.and_then(|it| it.parse().ok());
            version.map(Some).ok_or_else(|| No::Field { field: "if-match", why: why() })
        }
    }
}
