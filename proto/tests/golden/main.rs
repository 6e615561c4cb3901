//! The golden vectors: each decodes to the value beside it, and hostile variations of its bytes
//! neither panic nor cost memory.
//!
//! `BLESS=1 cargo test -p proto --test golden -- --test-threads=1` writes the bytes of vectors that have none yet.
//! Bytes that exist are never rewritten: what was once sent must stay readable.

mod counting;
mod facts;
mod hostile;
mod vector;

use std::collections::BTreeSet;

use proto::segment::Segment;
use serde_json::json;
use vector::{Kind, Vector};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

#[test]
fn every_vector_decodes_to_its_value() {
    for it in vector::all() {
        let decoded = it.kind.decode(&it.bytes).unwrap_or_else(|why| panic!("{}: {why}", it.name));

        assert_eq!(decoded.to_json(), it.value, "{}", it.name);
    }
}

#[test]
fn every_vector_keeps_its_value_when_written_again() {
    for it in vector::all() {
        let value = it.kind.decode(&it.bytes).unwrap();

        let again = it.kind.decode(&value.encode()).unwrap();

        assert_eq!(again, value, "{}", it.name);
    }
}

#[test]
fn every_kind_of_frame_has_a_vector() {
    let kinds: BTreeSet<u8> = vector::all()
        .iter()
        .filter(|it| matches!(it.kind, Kind::Uplink | Kind::Downlink))
        .map(|it| it.bytes[0])
        .collect();

    let expected: BTreeSet<u8> = (1..=9).chain(129..=139).collect();
    assert_eq!(kinds, expected);
}

#[test]
fn a_segment_s_json_is_what_integrators_were_promised() {
    let bytes = vector::read("segment").bytes;

    let page: serde_json::Value =
        serde_json::from_str(&Segment::decode(&bytes).unwrap().to_json()).unwrap();

    let style = json!({"color": 0xfe_0302, "mode": "top", "size": "large"});
    let comment = json!({
        "id": "940597837824000001", "seq": 101, "kind": "comment", "lane": "comment",
        "sender": "12", "role": "host", "at_ms": 1_800_000_000_010_u64,
        "text": "second", "style": style, "media_ms": 5000,
    });
    let gift = json!({
        "id": "18446744073709551615", "seq": 102, "kind": "gift", "lane": "high_gift",
        "sender": "18446744073709551615", "role": "vip", "at_ms": 1_799_999_999_990_u64,
        "text": "生日快乐", "gift": {"gift_no": 7, "count": 99},
    });
    let recall = json!({
        "id": "940597837822000000", "gen": 2, "seq": 5000, "kind": "tombstone", "lane": "notice",
        "sender": "0", "role": "host", "at_ms": 1_799_999_990_000_u64, "of": "1",
    });
    assert_eq!(page["items"][1], comment);
    assert_eq!(page["items"][2], gift);
    assert_eq!(page["repeats"][1], recall);
    assert_eq!(page["gen"], 3);
    assert_eq!(page["next"]["gen"], 4);
}

#[test]
fn the_token_vector_is_its_body_and_mac_in_base64() {
    let Vector { bytes, value, .. } = vector::read("token");

    let text = std::str::from_utf8(&bytes).unwrap();
    let part = |name: &str| hex::decode(value[name].as_str().unwrap()).unwrap();
    let packed = base64::Engine::decode(
        &base64::engine::general_purpose::URL_SAFE_NO_PAD,
        text.strip_prefix("dm1.").unwrap(),
    );

    assert_eq!(value["text"], text);
    assert_eq!(packed.unwrap(), [part("body"), part("mac")].concat());
}
