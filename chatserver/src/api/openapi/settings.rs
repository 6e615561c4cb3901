//! The shape of a room's settings.

use chatserver_core::settings::{LINK_HOSTS_MAX, ranges};
use proto::control::RoomSettings;
use serde_json::{Map, Value, json};

use super::reference;
use super::schemas::object;

/// Settings, and what they are made of.
pub(super) fn all() -> Value {
    let percent = json!({ "type": "integer", "minimum": 0, "maximum": 100 });
    let lanes = object(
        &json!({ "notice": percent, "high_gift": percent, "low_gift": percent, "comment": percent }),
        &["notice", "high_gift", "low_gift", "comment"],
    );
    json!({
        "Action": {
            "enum": ["allow", "mask", "shadow", "review", "refuse"],
            "description": "What is done about a text that holds something.",
        },
        "LaneShares": lanes,
        "RoomSettings": room_settings(),
    })
}

fn room_settings() -> Value {
    let settings = RoomSettings::default();
    let mut properties: Map<String, Value> = ranges(&settings)
        .into_iter()
        .map(|(name, _, range)| {
            let (minimum, maximum) = (range.start(), range.end());
            let number = json!({ "type": "integer", "minimum": minimum, "maximum": maximum });
            (name.to_owned(), number)
        })
        .collect();
    let or_null = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    // Up to what `hot_sessions` is.
    properties["cold_sessions"]["maximum"] = json!(u32::MAX);
    let lite = properties["lite_comments_per_s"].take();
    let mut longest = properties["interval_ms_max"].take();
    // From what `interval_ms` is.
    longest["minimum"] = properties["interval_ms"]["minimum"].clone();
    let is_led = json!({ "enum": ["allow", "shadow", "review", "refuse"] });
    let others = [
        ("lite_comments_per_s", or_null(lite)),
        ("interval_ms_max", or_null(longest)),
        ("links", is_led.clone()),
        ("contacts", is_led),
        ("link_hosts", link_hosts()),
        ("review", json!({ "enum": ["none", "listed", "all", null] })),
        ("speakers", json!({ "enum": ["all", "followers", "listed", "moderators"] })),
        (
            "excess",
            json!({
                "enum": ["wait", "sample"],
                "description": "What is done about comments beyond what the room shows: their \
                    senders get a time to come back, or lots are drawn every ten seconds.",
            }),
        ),
        (
            "merge_equal",
            json!({
                "type": "boolean",
                "description": "Whether plain comments of viewers with the same text that wait \
                    at the same time are shown as one with their count.",
            }),
        ),
        ("mute_all", json!({ "type": "boolean" })),
        ("guests", json!({ "type": "boolean" })),
        ("segments", json!({ "enum": ["auto", "always", "never"] })),
        (
            "sealed",
            json!({
                "type": "boolean",
                "description": "Whether segments are encrypted: only who may enter can read them, \
                    and there is no JSON and no video. A change takes effect with the next gen, \
                    some slots later.",
            }),
        ),
        (
            "archive",
            json!({
                "type": ["boolean", "null"],
                "description": "Whether what the room shows is kept after its slots expire; by \
                    default as the broadcaster is configured.",
            }),
        ),
        ("lanes", or_null(reference("LaneShares"))),
    ];
    properties.extend(others.map(|(name, schema)| (name.to_owned(), schema)));
    object(&Value::Object(properties), &[])
}

fn link_hosts() -> Value {
    json!({
        "type": "array",
        "maxItems": LINK_HOSTS_MAX,
        "items": {
            "type": "string",
            "maxLength": 253,
            "pattern": r"^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+$",
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proto::control::Review;

    use super::*;

    #[test]
    fn every_setting_is_in_the_schema_and_nothing_else() {
        let settings = RoomSettings {
            review: Some(Review::All),
            archive: Some(true),
            ..RoomSettings::default()
        };
        let settings = serde_json::to_value(settings).unwrap();
        let schema = room_settings();

        let names = |it: &Value| it.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();

        assert_eq!(names(&schema["properties"]), names(&settings));
    }
}
