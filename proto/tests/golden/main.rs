//! The golden vectors: each decodes to the value beside it, and hostile variations of its bytes
//! neither panic nor cost memory.
//!
//! `BLESS=1 cargo test -p proto --test golden -- --test-threads=1` writes the bytes of vectors that have none yet.
//! Bytes that exist are never rewritten: what was once sent must stay readable.

mod counting;
mod hostile;
mod vector;

use std::collections::BTreeSet;

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
