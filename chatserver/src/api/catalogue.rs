//! The gift catalogue of an app: its own JSON, which broadcasters publish beside the segments.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use proto::limits::CATALOGUE_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Api;
use super::caller::{Body, Caller};
use super::no::No;
use super::words::version;
use crate::store::rows::Record;

/// How often a catalogue is written again because another one came between.
const TRIES_MAX: usize = 5;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put {
    catalogue: Value,
}

#[derive(Debug, Serialize)]
struct Catalogue {
    /// 0: none was set.
    version: u32,
    catalogue: Value,
}

#[derive(Debug, Serialize)]
struct Replaced {
    version: u32,
    bytes: usize,
}

/// `GET /v1/catalogue`.
pub(crate) async fn read(State(api): State<Arc<Api>>, Caller(app): Caller) -> Result<Response, No> {
    let found = api.site.rows.catalogue(app).await?;
    let (version, text) = found.unwrap_or((0, String::new()));
    let catalogue = serde_json::from_str(&text).unwrap_or(Value::Null);
    Ok((tag(version), Json(Catalogue { version, catalogue })).into_response())
}

/// `PUT /v1/catalogue`: replaces the catalogue. With `If-Match: "version"` only that version is
/// replaced; 412 otherwise.
pub(crate) async fn put(
    State(api): State<Arc<Api>>,
    Caller(app): Caller,
    headers: HeaderMap,
    Body(Put { catalogue }): Body<Put>,
) -> Result<Response, No> {
    let refused = |why| No::Field { field: "catalogue", why };
    if !catalogue.is_object() && !catalogue.is_array() {
        return Err(refused("must be an object or an array".to_owned()));
    }
    let text = catalogue.to_string();
    let bytes = text.len();
    if bytes > CATALOGUE_BYTES_MAX {
        return Err(refused(format!("has {bytes} bytes; at most {CATALOGUE_BYTES_MAX} are kept")));
    }
    let wanted = version(&headers)?;
    let too_fast = |retry_after_ms| No::TooFast { retry_after_ms };
    api.catalogue_rates.check(app).map_err(too_fast)?;
    let tries = if wanted.is_some() { 1 } else { TRIES_MAX };
    for _ in 0..tries {
        let before = api.site.rows.catalogue_version(app).await?;
        if wanted.is_some_and(|it| it != u64::from(before)) {
            return Err(No::Moved { version: before.into() });
        }
        let value = Some(json!({ "bytes": bytes }));
        let record = Record { value, ..Record::new(api.site.clock.wall(), "catalogue") };
        let record = record.write(app, None)?;
        if let Some(facts) = api.site.rows.write_catalogue(app, before, &text, record).await? {
            api.site.tell(facts).await.map_err(|_| No::Untold)?;
            let version = before.saturating_add(1);
            return Ok((tag(version), Json(Replaced { version, bytes })).into_response());
        }
    }
    Err(No::Changed)
}

fn tag(version: u32) -> [(&'static str, String); 1] {
    [("etag", format!("\"{version}\""))]
}
