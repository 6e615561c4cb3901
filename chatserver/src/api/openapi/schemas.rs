//! The shapes of bodies, parameters and answers, with their bounds.

use chatserver_core::words::{WORD_BYTES_MAX, WORDS_MAX};
use proto::attribute::COUNT_MAX;
use proto::item::Role;
use proto::limits::CATALOGUE_BYTES_MAX;
use proto::limits::{
    ACCOUNT_BYTES_MAX, ATTRIBUTE_NAME_BYTES_MAX, DEVICE_BYTES_MAX, ROOM_BYTES_MAX, TEXT_BYTES_MAX,
};
use serde_json::{Map, Value, json};

use super::{reference, settings, shown};
use crate::api::people::SECONDS_MAX;
use crate::api::standing::VIEWERS_MAX;

/// Milliseconds that every reader of JSON counts exactly.
const WALL_MAX: u64 = (1 << 53) - 1;

const ROLES: [Role; 5] = [Role::Guest, Role::Viewer, Role::Vip, Role::Moderator, Role::Host];

/// All of them.
pub(super) fn all() -> Map<String, Value> {
    let groups = [
        settings::all(),
        rooms(),
        shown::asked(),
        shown::told(),
        people(),
        boards(),
        lists(),
        records(),
    ];
    groups
        .into_iter()
        .flat_map(|it| match it {
            Value::Object(schemas) => schemas,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        })
        .collect()
}

/// The schema of the name of something, as paths have it.
pub(super) fn of_name(name: &str) -> Value {
    let word =
        |max: usize| json!({ "type": "string", "pattern": format!("^[A-Za-z0-9_-]{{1,{max}}}$") });
    match name {
        "room" => word(ROOM_BYTES_MAX),
        "name" => word(ATTRIBUTE_NAME_BYTES_MAX),
        "device" => {
            json!({ "type": "string", "pattern": format!("^[!-~]{{1,{DEVICE_BYTES_MAX}}}$") })
        }
        "id" => json!({ "type": "string", "pattern": "^[0-9]{1,20}$" }),
        "range" => json!({
            "type": "string",
            "description": "An address, or the first of a range, `/` and the bits that they share.",
            "examples": ["203.0.113.0/24"],
        }),
        _ => json!({
            "type": "string",
            "minLength": 1,
            "maxLength": ACCOUNT_BYTES_MAX,
            "pattern": r"^[^\u0000-\u001f\u007f-\u009f]+$",
            "description": "An account's name: 1 to 64 bytes without control characters.",
        }),
    }
}

/// An instant, in milliseconds since 1970.
pub(super) fn instant() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": WALL_MAX })
}

/// An object that has these and no others.
pub(super) fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A page of rows under `name`.
pub(super) fn page(name: &str, schema: &str) -> Value {
    let next = json!({ "type": "string", "description": "Give it as `after`; absent at the end." });
    let rows = json!({ "type": "array", "items": reference(schema) });
    object(&json!({ name: rows, "next": next }), &[name])
}

/// A text that is shown.
pub(super) fn text() -> Value {
    json!({
        "type": "string",
        "maxLength": TEXT_BYTES_MAX,
        "description": "At most 2048 bytes of characters that can be shown.",
    })
}

fn version() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn seconds() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": SECONDS_MAX })
}

fn rooms() -> Value {
    json!({
        "Document": { "type": "object" },
        "Problem": object(
            &json!({
                "status": { "type": "integer" },
                "code": { "type": "string", "pattern": "^[a-z_]+$" },
                "title": { "type": "string" },
                "retry_after_ms": { "type": "integer", "minimum": 0 },
                "server_ms": instant(),
            }),
            &["status", "code", "title", "retry_after_ms", "server_ms"],
        ),
        "Role": { "enum": ROLES.map(Role::name) },
        "CreateRoom": object(
            &json!({ "room": of_name("room"), "settings": reference("RoomSettings") }),
            &["room"],
        ),
        "Room": object(
            &json!({
                "app": { "type": "integer" },
                "room": of_name("room"),
                "version": version(),
                "open": { "type": "boolean" },
                "settings": reference("RoomSettings"),
            }),
            &["app", "room", "version", "open", "settings"],
        ),
        "Rooms": page("rooms", "Room"),
        "Online": object(
            &json!({
                "room": of_name("room"),
                "people": { "type": "integer", "minimum": 0 },
                "sessions": { "type": "integer", "minimum": 0 },
            }),
            &["room", "people", "sessions"],
        ),
    })
}

fn people() -> Value {
    let viewer = || of_name("viewer");
    let any_seconds = json!({ "anyOf": [seconds(), { "type": "null" }] });
    let any_text = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    json!({
        "Mute": object(&json!({ "viewer": viewer(), "seconds": seconds() }), &["viewer", "seconds"]),
        "Ban": object(&json!({ "viewer": viewer(), "seconds": any_seconds }), &["viewer"]),
        "Kick": object(&json!({ "viewer": viewer() }), &["viewer"]),
        "Until": object(
            &json!({ "room": of_name("room"), "viewer": viewer(), "until": instant() }),
            &["room", "viewer", "until"],
        ),
        "Exclude": object(
            &json!({
                "device": any_text(of_name("device")),
                "range": any_text(of_name("range")),
                "seconds": any_seconds,
            }),
            &[],
        ),
        "ExcludedUntil": object(
            &json!({
                "device": of_name("device"),
                "range": { "type": "string" },
                "until": instant(),
            }),
            &["until"],
        ),
        "Sanction": object(
            &json!({
                "viewer": { "type": "string" },
                "device": { "type": "string" },
                "range": { "type": "string" },
                "until": instant(),
            }),
            &["until"],
        ),
        "Sanctions": page("rows", "Sanction"),
        "Standing": object(
            &json!({
                "role": { "anyOf": [reference("Role"), { "type": "null" }] },
                "listed": { "type": "boolean" },
                "follows": { "type": "boolean" },
            }),
            &[],
        ),
        "People": object(
            &json!({
                "viewers": { "type": "array", "items": viewer(), "maxItems": VIEWERS_MAX },
                "standing": reference("Standing"),
            }),
            &["viewers", "standing"],
        ),
        "Person": object(
            &json!({
                "viewer": { "type": "string" },
                "role": reference("Role"),
                "listed": { "type": "boolean" },
                "follows": { "type": "boolean" },
            }),
            &["viewer", "listed", "follows"],
        ),
        "Persons": page("rows", "Person"),
    })
}

fn boards() -> Value {
    let count = || json!({ "type": "integer", "minimum": -COUNT_MAX, "maximum": COUNT_MAX });
    let value = json!({ "anyOf": [count(), { "type": "string", "maxLength": TEXT_BYTES_MAX }] });
    json!({
        "PutAttribute": object(&json!({ "value": value }), &["value"]),
        "Add": object(&json!({ "add": count() }), &["add"]),
        "Attribute": object(
            &json!({ "name": of_name("name"), "version": version(), "value": value }),
            &["name", "version"],
        ),
        "Attributes": page("rows", "Attribute"),
    })
}

fn lists() -> Value {
    let word = object(
        &json!({
            "text": { "type": "string", "minLength": 1, "maxLength": WORD_BYTES_MAX },
            "action": reference("Action"),
        }),
        &["text", "action"],
    );
    let words = || json!({ "type": "array", "items": reference("Word"), "maxItems": WORDS_MAX });
    let catalogue = || {
        json!({
            "type": ["object", "array"],
            "description": format!("The app's own JSON, at most {CATALOGUE_BYTES_MAX} bytes."),
        })
    };
    json!({
        "PutCatalogue": object(&json!({ "catalogue": catalogue() }), &["catalogue"]),
        "Catalogue": object(
            &json!({
                "version": version(),
                "catalogue": { "type": ["object", "array", "null"] },
            }),
            &["version", "catalogue"],
        ),
        "CatalogueReplaced": object(
            &json!({ "version": version(), "bytes": { "type": "integer", "minimum": 0 } }),
            &["version", "bytes"],
        ),
        "Word": word,
        "PutWords": object(&json!({ "words": words() }), &["words"]),
        "Words": object(&json!({ "version": version(), "words": words() }), &["version", "words"]),
        "WordsReplaced": object(
            &json!({ "version": version(), "words": { "type": "integer", "minimum": 0 } }),
            &["version", "words"],
        ),
    })
}

fn records() -> Value {
    let size = || json!({ "type": "integer", "minimum": 0 });
    let part = || object(&json!({ "used": size(), "max": size() }), &["used", "max"]);
    let quota = json!({
        "rooms": part(),
        "acts": part(),
        "words": part(),
        "word_lists": part(),
        "requests_per_s": size(),
        "requests_burst": size(),
    });
    let parts = ["rooms", "acts", "words", "word_lists", "requests_per_s", "requests_burst"];
    json!({
        "Quota": object(&quota, &parts),
        "Record": object(
            &json!({
                "at": instant(),
                "by": { "type": "string" },
                "act": { "type": "string" },
                "on": { "type": "string" },
                "until": instant(),
                "value": {},
                "why": { "type": "string" },
            }),
            &["at", "act"],
        ),
        "Records": page("rows", "Record"),
        "Evidence": { "type": "string", "description": "Lines of JSON; the last one has `end`." },
        "Erased": object(
            &json!({ "account": of_name("account"), "until_ms": instant() }),
            &["account", "until_ms"],
        ),
    })
}
