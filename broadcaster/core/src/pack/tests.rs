//! Segments to bytes and back.

use proto::heat::Heat;
use proto::id::{Gen, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Lane, Role, Style};
use proto::time::Wall;

use super::*;

pub(crate) fn header() -> Header {
    Header {
        room: RoomId::parse("room-1").unwrap(),
        gen_no: Gen(1),
        slot: SlotNo(7),
        tier: Tier::Full,
        epoch_ms: Wall(1_800_000_000_000),
        interval_ms: 1000,
        now_ms: Wall(1_800_000_008_000),
        spread_ms: 300,
        next_tier: None,
        online: 1200,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    }
}

pub(crate) fn placed(seq: u64, lane: Lane) -> Placed {
    let text = format!("comment number {seq}");
    let body = Body::Comment { text, style: Style::default(), media_ms: None };
    let item = Item {
        id: ItemId(1000 + seq),
        lane,
        sender: SenderRef(seq % 5),
        role: Role::Viewer,
        at: Wall(1_800_000_007_000 + seq),
        body,
    };
    Placed { seq: Seq(seq), item }
}

#[test]
fn a_packed_segment_expands_to_itself() {
    let flushes = [vec![placed(1, Lane::Comment)], vec![placed(2, Lane::Notice)]];
    let segment = pack(header(), flushes.into(), Vec::new());

    let packed = Packed::of(&segment);

    assert_eq!(Segment::decode(&expand(&packed.bin).unwrap()), Ok(segment.clone()));
    assert_eq!(expand(&packed.json).unwrap(), segment.to_json().into_bytes());
    assert_eq!(Packed::of(&segment), packed);
}

#[test]
fn the_lite_tier_is_a_subset_of_each_flush_with_the_same_places() {
    let first = vec![placed(1, Lane::Notice), placed(2, Lane::Comment), placed(3, Lane::Comment)];
    let second = vec![placed(4, Lane::Comment), placed(5, Lane::Comment)];

    let segment = lite(header(), &[first, second], Vec::new(), 1);

    let seqs: Vec<u64> = segment.items.iter().map(|it| it.seq.0).collect();
    assert_eq!(seqs, [1, 2, 4]);
    assert_eq!(segment.header.tier, Tier::Lite);
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = compress(b"text");

    assert_eq!(expand(&bytes[..bytes.len() - 1]), Err(DecodeError::Malformed));
    assert_eq!(expand(b"not gzip"), Err(DecodeError::Malformed));
}

#[test]
fn bytes_that_expand_beyond_the_limit_are_refused() {
    let bytes = compress(&vec![0; SEGMENT_BYTES_MAX + 1]);

    assert!(matches!(expand(&bytes), Err(DecodeError::TooLarge { .. })));
}

#[test]
fn the_seal_counts_ids_in_order() {
    let items = [placed(1, Lane::Comment).item, placed(2, Lane::Comment).item];

    let mut bytes = Vec::new();
    for item in &items {
        bytes.extend_from_slice(&item.id.0.to_le_bytes());
    }

    assert_eq!(crc(&items), crc32fast::hash(&bytes));
    assert_ne!(crc(&items), crc(items.iter().rev()));
}
