//! The OpenAPI 3.1 document of the API, made from its calls: what is served is what is said.

mod schemas;
mod settings;
mod shown;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chatserver_core::gift;
use serde_json::{Map, Value, json};

use super::Api;
use super::call::{Answer, Call, Header, Query};
use super::words;
use crate::store::rows::WHY_BYTES_MAX;

/// Where the document is.
pub(super) const PATH: &str = "/openapi.json";
/// The type of lines of JSON.
const LINES: &str = "application/x-ndjson";

/// `GET /openapi.json`, for everyone: it tells what the API is, and nothing that is in it.
pub(super) async fn read(State(api): State<Arc<Api>>) -> Response {
    let kind = [(CONTENT_TYPE, "application/json")];
    (kind, Bytes::clone(&api.document)).into_response()
}

/// The document of these calls.
pub(super) fn document(calls: &[Call]) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for call in calls {
        paths.entry(call.path).or_default().insert(call.method.to_owned(), operation(call));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Business API",
            "version": "1",
            "description": "Rooms, what is shown in them, who may speak. Every refusal is a problem \
                document (RFC 9457) whose `code` is a stable word. Lengths of texts count bytes of \
                UTF-8 where a description says so; bodies have at most 256 KiB, lists of words 16 MiB.",
        },
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key of an app.",
                },
            },
            "schemas": schemas::all(),
        },
    })
}

fn operation(call: &Call) -> Value {
    let mut operation = json!({
        "operationId": call.name,
        "summary": call.summary,
        "responses": responses(call),
    });
    let parameters = parameters(call);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(schema) = call.body {
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": reference(schema) } },
        });
    }
    if call.path == PATH {
        operation["security"] = json!([]);
    }
    operation
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn parameters(call: &Call) -> Vec<Value> {
    let names = call.path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = names
        .map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": schemas::of_name(name) })
        })
        .collect();
    let query: &[(&str, &str, Value)] = &match call.query {
        Query::None => vec![],
        Query::Page => {
            vec![("after", "What the page before gave as `next`.", json!({ "type": "string" }))]
        }
        Query::Signed => vec![
            (
                "by",
                "The host or moderator of the room in whose name it is done; without it, the \
                 business server does it itself.",
                schemas::of_name("viewer"),
            ),
            (
                "why",
                "Why, for the record, in at most 512 bytes.",
                json!({ "type": "string", "maxLength": WHY_BYTES_MAX }),
            ),
            (
                "on_role",
                "What the person to whom it is done is by ticket, if that is more than what the \
                 room says.",
                reference("Role"),
            ),
        ],
        Query::Evidence => vec![
            ("from_ms", "From then on; the beginning.", schemas::instant()),
            ("until_ms", "Before then; now.", schemas::instant()),
            ("room", "Of this room only.", schemas::of_name("room")),
            ("account", "Of this account only.", schemas::of_name("account")),
        ],
    };
    parameters.extend(query.iter().map(|(name, description, schema)| {
        json!({ "name": name, "in": "query", "description": description, "schema": schema })
    }));
    parameters.extend(call.headers.iter().map(|it| header(*it)));
    parameters
}

fn header(header: Header) -> Value {
    match header {
        Header::IfMatch => json!({
            "name": "If-Match",
            "in": "header",
            "description": "The version that must be there, in quotes; `\"0\"`: nothing, `*`: any.",
            "schema": { "type": "string", "pattern": "^(\\*|\"[0-9]{1,19}\")$" },
        }),
        Header::Key | Header::MayKey => json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": header == Header::Key,
            "description": "Requests with the same key, within 24 hours, show one item.",
            "schema": {
                "type": "string",
                "pattern": format!("^[!-~]{{1,{}}}$", gift::KEY_BYTES_MAX),
            },
        }),
    }
}

fn responses(call: &Call) -> Map<String, Value> {
    let given = call.answers.iter().map(|it| (it.status, answer(call, *it)));
    let refused = refusals(call).into_iter().map(|it| (it, problem(it, call)));
    given.chain(refused).map(|(status, response)| (status.to_string(), response)).collect()
}

fn answer(call: &Call, Answer { status, schema }: Answer) -> Value {
    let description = match status {
        201 => "Made.",
        202 => "Taken, and durable.",
        204 => "Done.",
        _ => "As it is now.",
    };
    let mut response = json!({ "description": description });
    if let Some(schema) = schema {
        let kind = if schema == "Evidence" { LINES } else { "application/json" };
        response["content"] = json!({ kind: { "schema": reference(schema) } });
    }
    if call.is_tagged && schema.is_some() {
        response["headers"] = json!({
            "ETag": {
                "description": "The version, for `If-Match`.",
                "required": true,
                "schema": { "type": "string" },
            },
        });
    }
    response
}

/// The statuses of problems.
fn refusals(call: &Call) -> Vec<u16> {
    let mut statuses = call.refusals.clone();
    if call.path == PATH {
        return vec![];
    }
    // No key, too many requests, the store is away.
    statuses.extend([401, 429, 503]);
    let takes = call.path.contains('{') || !call.headers.is_empty() || call.query != Query::None;
    statuses.extend(takes.then_some(400));
    statuses.extend(call.path.contains("{room}").then_some(404));
    if call.query == Query::Signed {
        statuses.insert(403);
    }
    if call.body.is_some() {
        statuses.extend([400, 413, 415, 422]);
    }
    statuses.into_iter().collect()
}

fn problem(status: u16, call: &Call) -> Value {
    let bytes_max = if call.body == Some("PutWords") { words::BODY_BYTES_MAX } else { 256 * 1024 };
    let description = match status {
        400 => "A field, a parameter or the body is not as it must be.".to_owned(),
        401 => "The key is missing or wrong.".to_owned(),
        403 => "The person in whose name it was asked for may not do it.".to_owned(),
        404 => "There is no such thing in this app.".to_owned(),
        409 => "It cannot be done as things are: `code` says why.".to_owned(),
        412 => "Somebody else changed it.".to_owned(),
        413 => format!("The body has more than {bytes_max} bytes."),
        415 => "The body is not said to be JSON.".to_owned(),
        422 => "The body is JSON of another shape.".to_owned(),
        429 => "Too much of it for now; the answer says when to come back.".to_owned(),
        _ => "The room store does not answer, or not everyone could be told.".to_owned(),
    };
    let mut response = json!({
        "description": description,
        "content": { "application/problem+json": { "schema": reference("Problem") } },
    });
    if status == 429 {
        response["headers"] = json!({
            "Retry-After": {
                "description": "When to come back, in seconds.",
                "required": true,
                "schema": { "type": "integer", "minimum": 1 },
            },
        });
    }
    response
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::calls;
    use super::*;

    #[test]
    fn every_schema_that_is_named_is_there_and_every_one_is_named() {
        let document = document(&calls::all());
        let text = document.to_string();
        let known = document["components"]["schemas"].as_object().unwrap();
        let prefix = "\"#/components/schemas/";
        let named: BTreeSet<&str> =
            text.split(prefix).skip(1).filter_map(|it| it.split('"').next()).collect();

        assert_eq!(named, known.keys().map(String::as_str).collect());
    }

    #[test]
    fn names_of_calls_are_unique() {
        let calls = calls::all();
        let names: BTreeSet<&str> = calls.iter().map(|it| it.name).collect();
        let places: BTreeSet<_> = calls.iter().map(|it| (it.method, it.path)).collect();

        assert_eq!((names.len(), places.len()), (calls.len(), calls.len()));
        assert!(calls.iter().all(|it| !it.summary.is_empty() && !it.answers.is_empty()));
    }
}
