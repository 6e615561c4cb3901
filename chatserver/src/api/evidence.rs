//! The evidence ledger of this chatserver: exports, and the erasure of what an account said.
//!
//! Rooms' comments are spread over all chatservers: whoever wants all of them asks each.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chatserver_core::ledger::Filter;
use futures_util::stream;
use proto::id::{RoomId, ViewerId};
use proto::time::Wall;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Api;
use super::caller::{Asked, Caller, Names};
use super::no::No;
use crate::evidence::Untaken;
use crate::store::StoreError;
use crate::store::rows::Record;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// From then on; the beginning.
    #[serde(default)]
    from_ms: u64,
    /// Before then; now.
    until_ms: Option<u64>,
    room: Option<String>,
    account: Option<String>,
}

#[derive(Debug, Serialize)]
struct Erased {
    account: ViewerId,
    until_ms: u64,
}

/// `GET /v1/evidence?from_ms=&until_ms=&room=&account=`: the app's records as lines of JSON. The
/// last line has `end`; without it the answer is cut short. That it was asked for is a record.
pub(crate) async fn export(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Asked(wanted): Asked<Wanted>,
) -> Result<Response, No> {
    let export = api.ledger.export.as_ref().ok_or(No::Route)?;
    let now = api.site.clock.wall();
    let filter = Filter {
        from: Wall(wanted.from_ms),
        until: wanted.until_ms.map_or(Wall(u64::MAX), Wall),
        room: wanted.room.as_deref().map(RoomId::parse).transpose().map_err(bad("room"))?,
        account: wanted.account.as_deref().map(account).transpose()?,
    };
    let record = Record {
        on: wanted.account.clone().or_else(|| wanted.room.clone()),
        value: Some(
            json!({"from_ms": wanted.from_ms, "until_ms": wanted.until_ms, "room": wanted.room}),
        ),
        ..Record::new(now, "evidence_export")
    };
    api.site.rows.write_record(record.write(app, None)?).await?;
    let parts = export.give(app, filter).await.map_err(|_| No::TooMany)?;
    let parts = stream::unfold(parts, async |mut parts| {
        let part = parts.recv().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(part), parts))
    });
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(parts)).into_response())
}

/// `DELETE /v1/evidence/{account}`: 202; what the account said up to now is exported no more from
/// this answer on, and soon in no file.
pub(crate) async fn erase(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    Names(name): Names<String>,
) -> Result<Response, No> {
    let eraser = api.ledger.eraser.as_ref().ok_or(No::Route)?;
    let account = account(&name)?;
    let record = Record::new(api.site.clock.wall(), "evidence_erasure");
    let record = Record { on: Some(name), ..record };
    api.site.rows.write_record(record.write(app, None)?).await?;
    let erasure = eraser.erase(app, account).await.map_err(|error| match error {
        Untaken::Full => No::TooMany,
        Untaken::Disk(error) => {
            StoreError::Away { why: format!("the evidence ledger: {error}") }.into()
        }
    })?;
    let erased = Erased { account: erasure.account, until_ms: erasure.until.0 };
    Ok((StatusCode::ACCEPTED, Json(erased)).into_response())
}

fn account(name: &str) -> Result<ViewerId, No> {
    ViewerId::parse(name).map_err(bad("account"))
}

fn bad<E: std::fmt::Display>(field: &'static str) -> impl Fn(E) -> No {
    move |error| No::Field { field, why: error.to_string() }
}
