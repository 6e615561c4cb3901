//! Bytes that somebody made up: an error or a sound value, no panic, no large allocation.

use flatbuffers::FlatBufferBuilder;
use proptest::prelude::*;
use proto::decode::DecodeError;
use proto::envelope::{AcceptedBatch, LinkGauges, ReplyBatch, UplinkBatch};
use proto::frame::{Downlink, Uplink};
use proto::id::Seq;
use proto::item::{Body, Placed};
use proto::limits;
use proto::load::LoadReport;
use proto::segment::Segment;

use crate::counting;
use crate::vector::{self, Kind, Vector};

/// Bytes that decoding may hold at once: so many for each byte of the input, and a little more.
const HELD_FACTOR: usize = 16;
const HELD_EXTRA: usize = 1024;

/// Decodes with its memory counted; what is accepted must survive another turn unchanged.
fn attack(kind: Kind, bytes: &[u8], what: &str) -> Result<(), DecodeError> {
    let (decoded, held) = counting::peak(|| kind.decode(bytes));

    let held_max = bytes.len() * HELD_FACTOR + HELD_EXTRA;
    assert!(held <= held_max, "{what}: {held} bytes held for {} given", bytes.len());
    let value = decoded?;
    match kind.decode(&value.encode()) {
        // What the input shared stands apart here, so it may be too much now.
        Err(DecodeError::TooLarge { .. }) => {}
        again => assert!(again == Ok(value), "{what}: another value when written again"),
    }
    Ok(())
}

/// Puts a right checksum into a segment whose content was changed.
fn mend(kind: Kind, bytes: &mut [u8]) {
    if kind == Kind::Segment && bytes.len() > 8 {
        let crc = crc32fast::hash(&bytes[8..]).to_le_bytes();
        bytes[4..8].copy_from_slice(&crc);
    }
}

#[test]
fn every_prefix_of_every_vector_is_refused() {
    for Vector { name, kind, bytes, .. } in vector::all() {
        for length in 0..bytes.len() {
            let mut prefix = bytes[..length].to_vec();
            mend(kind, &mut prefix);

            let outcome = attack(kind, &prefix, &format!("{name}, {length} bytes"));

            // FlatBuffers pad strings and vectors: the last bytes may be missed by nobody.
            assert!(outcome.is_err() || bytes.len() - length < 8, "{name}, {length} bytes");
        }
    }
}

#[test]
fn every_flipped_bit_of_every_vector_is_harmless() {
    for Vector { name, kind, bytes, .. } in vector::all() {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            mend(kind, &mut flipped);

            let _outcome = attack(kind, &flipped, &format!("{name}, bit {bit}"));
        }
    }
}

#[test]
fn every_oversized_number_in_every_vector_is_harmless() {
    for Vector { name, kind, bytes, .. } in vector::all() {
        for at in 0..bytes.len().saturating_sub(3) {
            for number in [u32::MAX, i32::MAX as u32, 0x8000_0000, 1_000_000, 4096, 0] {
                let mut spoiled = bytes.clone();
                spoiled[at..at + 4].copy_from_slice(&number.to_le_bytes());
                mend(kind, &mut spoiled);

                let _outcome = attack(kind, &spoiled, &format!("{name}, {number} at {at}"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn several_changed_bytes_are_harmless(
        vector in prop::sample::select(vector::all()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut spoiled = vector.bytes.clone();
        for (at, byte) in changes {
            spoiled[at.index(vector.bytes.len())] = byte;
        }
        mend(vector.kind, &mut spoiled);

        let _outcome = attack(vector.kind, &spoiled, &vector.name);
    }
}

#[test]
fn a_flipped_bit_of_a_segment_is_noticed() {
    let Vector { bytes, .. } = vector::read("segment");
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);

        let expected = if bit < 32 { DecodeError::Malformed } else { DecodeError::Checksum };
        assert_eq!(Segment::decode(&flipped), Err(expected), "bit {bit}");
    }
}

#[test]
fn the_length_is_judged_before_the_content() {
    let too_large = |bytes, max| Err(DecodeError::TooLarge { bytes, max });
    let max = limits::UPLINK_FRAME_BYTES_MAX;
    assert_eq!(Uplink::decode(&vec![9; max + 1]).map(drop), too_large(max + 1, max));
    let max = limits::DOWNLINK_FRAME_BYTES_MAX;
    assert_eq!(Downlink::decode(&vec![138; max + 1]).map(drop), too_large(max + 1, max));
    let max = limits::RECORD_BYTES_MAX;
    assert_eq!(UplinkBatch::decode(&vec![0; max + 1]).map(drop), too_large(max + 1, max));
    let max = limits::SEGMENT_BYTES_MAX;
    assert_eq!(Segment::decode(&vec![0; max + 1]).map(drop), too_large(max + 1, max));
    let max = limits::REPORT_BYTES_MAX;
    assert_eq!(LoadReport::decode(&vec![0; max + 1]).map(drop), too_large(max + 1, max));
}

#[test]
fn unknown_kinds_and_flags_are_refused() {
    let Vector { bytes: ping, .. } = vector::read("uplink_ping");
    for kind in (0..=0).chain(10..=255) {
        let mut frame = ping.clone();
        frame[0] = kind;
        assert_eq!(Uplink::decode(&frame), Err(DecodeError::UnknownKind { kind, flags: 0 }));
    }
    for flags in 1..=255 {
        let mut frame = ping.clone();
        frame[1] = flags;
        assert_eq!(Uplink::decode(&frame), Err(DecodeError::UnknownKind { kind: 9, flags }));
    }
}

/// An uplink batch whose list names one entry many times, and bytes that nothing refers to, which
/// raise the apparent size that the verifier allows.
fn shared_entry(text: &str, entries: usize, unused: usize) -> Vec<u8> {
    let mut b = FlatBufferBuilder::new();
    b.create_vector(&vec![0_u8; unused]);
    let text = b.create_string(text);
    let name = b.create_string("r");
    let start = b.start_table();
    b.push_slot_always(6, name);
    let room = b.end_table(start);
    let rooms = b.create_vector(&[room]);
    let start = b.start_table();
    b.push_slot_always(10, name);
    b.push_slot_always(12, text);
    b.push_slot_always(24, 3_u8);
    let entry = b.end_table(start);
    let list = b.create_vector(&vec![entry; entries]);
    let start = b.start_table();
    b.push_slot_always(6, rooms);
    b.push_slot_always(8, list);
    let root = b.end_table(start);
    b.finish_minimal(root);
    b.finished_data().to_vec()
}

#[test]
fn a_shared_table_costs_no_more_than_its_apparent_size() {
    for text in ["", &"x".repeat(100)] {
        for entries in [1, 10, 100, limits::ENVELOPE_ENTRIES_MAX] {
            let mut accepted = 0;
            for unused in (0..32).map(|it| it * entries * (32 + text.len()) / 32) {
                let bytes = shared_entry(text, entries, unused);
                let what = format!("{entries} × {} bytes, {unused} unused", text.len());
                let outcome = attack(Kind::UplinkBatch, &bytes, &what);
                accepted += usize::from(outcome.is_ok());
            }
            assert!(accepted > 0, "{entries} × {} bytes never passed", text.len());
        }
    }
}

#[test]
fn a_shared_table_beyond_its_apparent_size_is_refused() {
    let bytes = shared_entry(&"x".repeat(2048), 1000, 0);

    assert_eq!(attack(Kind::UplinkBatch, &bytes, "shared"), Err(DecodeError::Malformed));
}

/// A room batch whose entries all name one flush, of items that are as small as they can be.
fn shared_flush(items: usize, entries: usize) -> Vec<u8> {
    let mut b = FlatBufferBuilder::new();
    let senders = b.create_vector(&vec![0_u64; items]);
    let zeros = b.create_vector(&vec![0_u8; items]);
    let rising = b.create_vector(&vec![2_u8; items]);
    let entries_only = b.create_vector(&vec![4_u8; items]);
    let start = b.start_table();
    b.push_slot_always(4, senders);
    b.push_slot_always(6, zeros);
    b.push_slot_always(8, rising);
    b.push_slot_always(10, zeros);
    b.push_slot_always(12, entries_only);
    let columns = b.end_table(start);
    let start = b.start_table();
    b.push_slot_always(12, columns);
    let flush = b.end_table(start);
    let start = b.start_table();
    b.push_slot_always(4, 2_u8);
    b.push_slot_always(6, flush);
    let entry = b.end_table(start);
    let list = b.create_vector(&vec![entry; entries]);
    let name = b.create_string("r");
    let start = b.start_table();
    b.push_slot_always(6, name);
    let room = b.end_table(start);
    let rooms = b.create_vector(&[room]);
    let start = b.start_table();
    b.push_slot_always(4, rooms);
    b.push_slot_always(6, list);
    let root = b.end_table(start);
    b.finish_minimal(root);
    b.finished_data().to_vec()
}

#[test]
fn a_shared_flush_may_not_pass_for_more_items_than_it_has_senders() {
    let attack = |entries| {
        let bytes = shared_flush(limits::FLUSH_ITEMS_MAX, entries);
        attack(Kind::RoomBatch, &bytes, &format!("{entries} entries, one flush"))
    };

    assert_eq!(attack(1), Ok(()));
    assert_eq!(attack(3), Err(DecodeError::Value { field: "items" }));
}

#[test]
fn the_smallest_items_cost_no_more_than_others() {
    let mut segment = Segment::decode(&vector::read("segment").bytes).unwrap();
    let mut accepted = AcceptedBatch::decode(&vector::read("accepted_batch").bytes).unwrap();
    let mut repeat = segment.repeats[0].clone();
    repeat.placed.item.body = Body::Entry;
    let place = |seq| Placed { seq: Seq(seq), ..repeat.placed.clone() };
    accepted.entries.truncate(1);
    accepted.entries[0].item.body = Body::Entry;

    segment.items = (1..=limits::SEGMENT_ITEMS_MAX as u64).map(place).collect();
    segment.repeats = vec![repeat.clone(); limits::SEGMENT_REPEATS_MAX];
    accepted.entries = vec![accepted.entries[0].clone(); limits::ENVELOPE_ENTRIES_MAX];

    assert_eq!(attack(Kind::Segment, &segment.encode(), "segment"), Ok(()));
    assert_eq!(attack(Kind::AcceptedBatch, &accepted.encode(), "accepted"), Ok(()));
}

#[test]
fn more_tables_than_the_verifier_visits_are_refused() {
    let bytes = shared_entry("", limits::VERIFIER_TABLES_MAX, 1_000_000);

    assert_eq!(attack(Kind::UplinkBatch, &bytes, "tables"), Err(DecodeError::Malformed));
}

#[test]
fn more_entries_than_allowed_are_refused() {
    let one = |name| vector::read(name).bytes;
    let mut replies = ReplyBatch::decode(&one("reply_batch")).unwrap();
    replies.entries = vec![replies.entries[0].clone(); limits::ENVELOPE_ENTRIES_MAX + 1];
    let mut gauges = LinkGauges::decode(&one("link_gauges")).unwrap();
    gauges.rooms = vec![gauges.rooms[0].clone(); limits::ENVELOPE_ENTRIES_MAX + 1];

    let refused = |field| Err(DecodeError::Value { field });
    assert_eq!(ReplyBatch::decode(&replies.encode()).map(drop), refused("entries"));
    assert_eq!(LinkGauges::decode(&gauges.encode()).map(drop), refused("rooms"));
}
