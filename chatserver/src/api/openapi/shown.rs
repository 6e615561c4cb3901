//! The shapes of what is shown: as business servers ask for it, and as they are told of it.

use proto::item::Lane;
use proto::limits::TEXT_BYTES_MAX;
use serde_json::{Value, json};

use super::reference;
use super::schemas::{instant, object, of_name, page, text};

/// What is asked for.
pub(super) fn asked() -> Value {
    json!({
        "Gift": object(
            &json!({
                "viewer": of_name("viewer"),
                "gift_no": number(),
                "count": { "type": "integer", "minimum": 1, "maximum": u32::MAX },
                "text": text(),
                "lane": { "enum": ["high", "low"] },
            }),
            &["viewer", "gift_no", "count", "lane"],
        ),
        "Notice": object(&json!({ "text": text() }), &["text"]),
        "Effect": object(
            &json!({
                "viewer": of_name("viewer"),
                "effect_no": number(),
                "text": text(),
                "lane": { "enum": ["high", "low"] },
            }),
            &["viewer", "effect_no", "lane"],
        ),
        "Custom": object(
            &json!({
                "name": of_name("name"),
                "text": {
                    "type": "string",
                    "maxLength": TEXT_BYTES_MAX,
                    "description": "At most 2048 bytes, which the app's own clients read.",
                },
                "viewer": { "anyOf": [of_name("viewer"), { "type": "null" }] },
                "lane": { "enum": ["notice", "high", "low"] },
            }),
            &["name", "lane"],
        ),
    })
}

/// What is told.
pub(super) fn told() -> Value {
    json!({
        "Shown": object(&json!({ "id": id() }), &["id"]),
        "Item": object(
            &json!({
                "id": id(),
                "gen": number(),
                "seq": { "type": "integer", "minimum": 0 },
                "kind": {
                    "enum": [
                        "comment", "gift", "like", "entry", "notice", "tombstone", "system",
                        "effect", "custom",
                    ],
                },
                "lane": { "enum": Lane::ALL.map(Lane::name) },
                "sender": id(),
                "role": reference("Role"),
                "at_ms": instant(),
                "text": { "type": "string" },
                "style": style(),
                "media_ms": instant(),
                "gift": gift(),
                "count": number(),
                "of": id(),
                "effect_no": number(),
                "name": of_name("name"),
            }),
            &["id", "gen", "seq", "kind", "lane", "sender", "role", "at_ms"],
        ),
        "HeldComment": object(
            &json!({
                "id": id(),
                "account": { "type": "string" },
                "role": reference("Role"),
                "at_ms": instant(),
                "until_ms": instant(),
                "text": { "type": "string" },
            }),
            &["id", "account", "role", "at_ms", "until_ms", "text"],
        ),
        "HeldComments": page("rows", "HeldComment"),
        "Items": object(
            &json!({
                "room": of_name("room"),
                "items": { "type": "array", "items": reference("Item") },
            }),
            &["room", "items"],
        ),
    })
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
}

/// An id of 64 bits.
fn id() -> Value {
    json!({ "type": "string", "pattern": "^[0-9]{1,20}$" })
}

fn gift() -> Value {
    object(&json!({ "gift_no": number(), "count": number() }), &["gift_no", "count"])
}

fn style() -> Value {
    object(
        &json!({
            "color": { "type": "integer", "minimum": 0, "maximum": 0x00FF_FFFF },
            "mode": { "enum": ["scroll", "top", "bottom", "reverse"] },
            "size": { "enum": ["normal", "small", "large"] },
        }),
        &["color", "mode", "size"],
    )
}
