//! What a returning session is told of what it skips: what it missed, and nothing that it knows.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names what it expects")]

use std::time::Duration;

use bytes::Bytes;
use link_core::framing::Framing;
use link_core::outbox::Outbox;
use link_core::resume;
use link_core::ring::{Limits, Reading, Ring, Switch};
use proto::frame::{Batch, Downlink, Place, Resumed, Seal};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::time::{Mono, Wall};

const LIMITS: Limits =
    Limits { bytes_max: 1 << 20, kept_bytes_max: 1 << 18, keep: Duration::from_secs(60) };
/// So little that a session skips all but the last flushes.
const OUTBOX_BYTES_MAX: usize = 1_000;

#[test]
fn what_a_hot_room_pushes_to_others_is_not_told_as_skipped() {
    let mut ring = Ring::new(room(), LIMITS);
    comment(&mut ring, 0, 1..=10);
    let mut outbox = returning(&ring, 1, Resumed::Recovered { items: 9 });
    ring.switch(Switch { heat: Heat::Hot, gen_no: Gen(1), slot: SlotNo(1) }, Mono(0));
    comment(&mut ring, 1, 11..=60);

    let told = read(&mut outbox, &ring);

    let skipped: u64 =
        told.iter().filter_map(|it| it.strip_prefix("skipped ")?.parse::<u64>().ok()).sum();
    let read = told.iter().filter(|it| it.parse::<u64>().is_ok()).count();
    assert_eq!(skipped + read as u64, 9, "{told:?}");
}

#[test]
fn items_of_a_flush_that_are_known_are_neither_skipped_nor_told_again() {
    let mut ring = Ring::new(room(), LIMITS);
    let mut first = flush(0, 1, Lane::HighGift);
    first.items.extend([item(2, Lane::Comment), item(3, Lane::Comment), item(4, Lane::LowGift)]);
    ring.flush(first, Mono(0));
    let mut outbox = returning(&ring, 2, Resumed::Recovered { items: 2 });
    comment(&mut ring, 0, 5..=60);

    let told = read(&mut outbox, &ring);

    assert_eq!(told[0], "4", "a gift that it did not know, and none that it knew: {told:?}");
    let skipped: u64 = told[1].strip_prefix("skipped ").unwrap().parse().unwrap();
    let rest = told.len() as u64 - 2;
    assert_eq!(skipped + rest, 57, "3, and 5 to 60: {told:?}");
}

#[test]
fn what_a_session_ahead_of_the_node_knows_is_no_backlog_of_it() {
    let mut ring = Ring::new(room(), LIMITS);
    comment(&mut ring, 0, 1..=3);
    let mut outbox = returning(&ring, 40, Resumed::Recovered { items: 0 });
    comment(&mut ring, 0, 4..=20);
    ring.seal(Seal { room: room(), gen_no: Gen(1), slot: SlotNo(0), items: 20, crc: 0 }, Mono(0));
    comment(&mut ring, 1, 21..=42);

    assert_eq!(read(&mut outbox, &ring), ["seal", "41", "42"]);

    comment(&mut ring, 1, 43..=90);
    let told = read(&mut outbox, &ring);
    let skipped: u64 = told[0].strip_prefix("skipped ").unwrap().parse().unwrap();
    assert_eq!(skipped + told.len() as u64 - 1, 48, "{told:?}");
}

/// A session that has shown everything up to `seq`.
fn returning(ring: &Ring, seq: u64, resumed: Resumed) -> Outbox {
    let plan = resume::plan(ring, Place { gen_no: Gen(1), seq: Seq(seq) }, Reading::Auto);
    assert_eq!(plan.resumed, resumed);
    let mut outbox = Outbox::new(Framing::Stream, OUTBOX_BYTES_MAX);
    outbox.follow(room(), plan.cursor);
    outbox
}

fn read(outbox: &mut Outbox, ring: &Ring) -> Vec<String> {
    let mut out = Vec::new();
    while outbox.take(ring, &mut out).unwrap().more {}
    out.iter().flat_map(told).collect()
}

fn told(bytes: &Bytes) -> Vec<String> {
    match Downlink::decode(&bytes[4..]).unwrap() {
        Downlink::Batch(it) => it.items.iter().map(|it| it.seq.to_string()).collect(),
        Downlink::Skipped { items, .. } => vec![format!("skipped {items}")],
        Downlink::Control(_) => vec!["news".to_owned()],
        Downlink::Seal(_) => vec!["seal".to_owned()],
        other => panic!("unexpected {other:?}"),
    }
}

/// A flush for each comment.
fn comment(ring: &mut Ring, slot: u64, seqs: std::ops::RangeInclusive<u64>) {
    for seq in seqs {
        ring.flush(flush(slot, seq, Lane::Comment), Mono(0));
    }
}

fn flush(slot: u64, seq: u64, lane: Lane) -> Batch {
    let items = vec![item(seq, lane)];
    Batch { room: room(), gen_no: Gen(1), slot: SlotNo(slot), part: 0, items }
}

fn item(seq: u64, lane: Lane) -> Placed {
    let body = Body::Comment {
        text: format!("text {seq}").into(),
        style: Style::default(),
        media_ms: None,
        count: 1,
    };
    let item =
        Item { id: ItemId(seq), lane, sender: SenderRef(1), role: Role::Viewer, at: Wall(1), body };
    Placed { seq: Seq(seq), item }
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}
