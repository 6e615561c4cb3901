//! Rings, cursors, skipping, switching and resuming, through an outbox.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names what it expects")]

mod resuming;

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use link_core::framing::Framing;
use link_core::outbox::Outbox;
use link_core::resume;
use link_core::ring::{Cursor, Limits, Reading, Ring, Slow, Switch, Wake};
use proptest::prelude::*;
use proto::frame::{Batch, Control, Downlink, Place, Resumed, Seal};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::time::{Mono, Wall};

const LIMITS: Limits =
    Limits { bytes_max: 1 << 20, kept_bytes_max: 1 << 18, keep: Duration::from_secs(60) };

#[test]
fn a_session_gets_what_is_flushed_after_it_came() {
    let mut ring = ring(LIMITS);
    ring.flush(comments(0, 1..=2), Mono(0));
    let mut reader = Reader::new(&ring, Reading::Auto);

    assert_eq!(ring.flush(comments(0, 3..=4), Mono(200)), Wake::Push);
    ring.seal(seal(0), Mono(1000));

    assert_eq!(reader.read(&ring), ["3 4", "seal 0"]);
    assert_eq!(reader.read(&ring), Vec::<String>::new());
}

#[test]
fn a_flush_that_comes_again_is_left_out() {
    let mut ring = ring(LIMITS);
    let mut reader = Reader::new(&ring, Reading::Auto);
    ring.flush(comments(0, 1..=3), Mono(0));

    assert_eq!(ring.flush(comments(0, 1..=3), Mono(1)), Wake::Nobody);
    ring.flush(comments(0, 2..=5), Mono(2));
    let older = Batch { gen_no: Gen(0), ..comments(0, 9..=9) };
    assert_eq!(ring.flush(older, Mono(3)), Wake::Nobody);

    assert_eq!(reader.read(&ring), ["1 2 3", "4 5"]);
}

#[test]
fn a_lagging_session_skips_comments_but_no_gift() {
    let mut ring = ring(LIMITS);
    let mut slow = Reader::with_bytes(&ring, Reading::Auto, 2000);
    for seq in 1..=40 {
        let mut flush = comments(seq / 5, seq..=seq);
        if seq == 7 {
            flush.items[0].item.lane = Lane::HighGift;
        }
        ring.flush(flush, Mono(seq * 200));
    }

    let read = slow.read(&ring);

    assert_eq!(read[0], "7");
    let skipped: u64 = read[1].strip_prefix("skipped ").unwrap().parse().unwrap();
    let rest: Vec<u64> = read[2..].iter().map(|it| it.parse().unwrap()).collect();
    assert_eq!(rest, ((skipped + 2)..=40).collect::<Vec<_>>());
    assert!(rest.len() < 20, "half of what is allowed waits: {rest:?}");
}

#[test]
fn a_session_behind_the_ring_skips_what_fell_off() {
    let mut ring = ring(Limits { bytes_max: 1500, ..LIMITS });
    let mut slow = Reader::new(&ring, Reading::Auto);
    for seq in 1..=100 {
        ring.flush(comments(0, seq..=seq), Mono(0));
    }

    let read = slow.read(&ring);

    let skipped: usize = read[0].strip_prefix("skipped ").unwrap().parse().unwrap();
    assert_eq!(skipped + read.len() - 1, 100);
}

#[test]
fn a_session_that_would_miss_gifts_is_slow() {
    let mut ring = ring(Limits { bytes_max: 1500, kept_bytes_max: 1500, ..LIMITS });
    let mut slow = Reader::new(&ring, Reading::Auto);
    let mut idle = Reader::new(&ring, Reading::Segments);
    for seq in 1..=100 {
        let mut flush = comments(0, seq..=seq);
        flush.items[0].item.lane = Lane::LowGift;
        ring.flush(flush, Mono(0));
    }

    assert_eq!(slow.try_read(&ring), Err(Slow));
    assert_eq!(idle.read(&ring), Vec::<String>::new(), "gifts are not for this one");
}

#[test]
fn a_full_own_queue_is_slow() {
    let mut outbox = <Outbox>::new(Framing::Stream, 100);

    assert_eq!(outbox.push(&[0; 90]), Ok(()));
    assert_eq!(outbox.push(&[0; 90]), Err(Slow));

    let mut out = Vec::new();
    assert_eq!(outbox.take_own(&mut out), 94);
    assert_eq!(outbox.push(&[0; 90]), Ok(()));
}

#[test]
fn blocks_fall_off_with_age() {
    let mut ring = ring(LIMITS);
    ring.flush(comments(0, 1..=2), Mono(0));
    assert!(ring.bytes() > 0);

    ring.tick(Mono(60_000));
    assert!(ring.bytes() > 0);
    ring.tick(Mono(60_001));

    assert_eq!(ring.bytes(), 0);
}

#[test]
fn a_hot_room_pushes_only_to_those_who_keep_it() {
    let mut ring = ring(LIMITS);
    let mut auto = Reader::new(&ring, Reading::Auto);
    let mut host = Reader::new(&ring, Reading::Promoted);
    let mut poller = Reader::new(&ring, Reading::Segments);

    ring.flush(comments(4, 1..=1), Mono(0));
    ring.switch(switch(Heat::Hot, 6), Mono(0));
    ring.flush(comments(5, 2..=2), Mono(0));
    assert_eq!(ring.flush(comments(6, 3..=3), Mono(0)), Wake::Promoted);
    ring.seal(seal(5), Mono(0));
    ring.seal(seal(6), Mono(0));

    assert_eq!(auto.read(&ring), ["1", "heat Hot 6", "2", "seal 5"]);
    assert_eq!(host.read(&ring), ["1", "heat Hot 6", "2", "3", "seal 5", "seal 6"]);
    assert_eq!(poller.read(&ring), ["heat Hot 6"]);
}

#[test]
fn a_switch_back_announced_late_loses_nothing() {
    let mut ring = ring(LIMITS);
    let mut auto = Reader::new(&ring, Reading::Auto);
    let mut host = Reader::new(&ring, Reading::Promoted);
    ring.switch(switch(Heat::Hot, 0), Mono(0));
    ring.flush(comments(8, 1..=1), Mono(0));
    ring.flush(comments(9, 2..=3), Mono(0));
    let mut before = auto.read(&ring);

    ring.switch(switch(Heat::Cold, 9), Mono(0));
    ring.flush(comments(9, 4..=4), Mono(0));

    before.extend(auto.read(&ring));
    assert_eq!(before, ["heat Hot 0", "2 3", "heat Cold 9", "4"]);
    assert_eq!(host.read(&ring), ["heat Hot 0", "1", "2 3", "heat Cold 9", "4"]);
}

#[test]
fn a_switch_back_brings_the_gifts_that_fell_off_the_ring() {
    let mut ring = ring(Limits { bytes_max: 1500, ..LIMITS });
    let mut auto = Reader::new(&ring, Reading::Auto);
    ring.switch(switch(Heat::Hot, 0), Mono(0));
    let gift = |slot, seqs| {
        let mut flush = comments(slot, seqs);
        flush.items[0].item.lane = Lane::HighGift;
        flush
    };
    ring.flush(gift(7, 1..=1), Mono(0));
    ring.flush(gift(8, 2..=3), Mono(0));
    for seq in 4..=40 {
        ring.flush(comments(8, seq..=seq), Mono(0));
    }
    ring.flush(gift(8, 41..=42), Mono(0));

    ring.switch(switch(Heat::Cold, 8), Mono(0));

    let read = auto.read(&ring);
    let gifts = read.iter().filter(|it| ["1", "2", "2 3", "41", "41 42"].contains(&it.as_str()));
    assert_eq!(gifts.collect::<Vec<_>>(), ["2", "41 42"], "{read:?}");
}

#[test]
fn the_same_switch_twice_is_told_once() {
    let mut ring = ring(LIMITS);

    assert_eq!(ring.switch(switch(Heat::Hot, 5), Mono(0)), Wake::Everyone);
    assert_eq!(ring.switch(switch(Heat::Hot, 5), Mono(0)), Wake::Nobody);
    assert_eq!(ring.switch(switch(Heat::Cold, 4), Mono(0)), Wake::Nobody);
    assert_eq!(ring.heat(), Heat::Hot);
}

#[test]
fn people_who_were_counted_long_ago_fill_no_room() {
    let mut ring = ring(LIMITS);
    assert_eq!(ring.people_lately(Mono(0)), 0);

    ring.count_people(9, Mono(1_000));

    assert_eq!((ring.people_lately(Mono(11_000)), ring.people_lately(Mono(11_001))), (9, 0));
    assert_eq!(ring.people(), 9);
    ring.count_people(7, Mono(20_000));
    assert_eq!(ring.people_lately(Mono(20_000)), 7);
}

#[test]
fn news_reaches_everyone_even_behind_the_ring() {
    let mut ring = ring(Limits { bytes_max: 500, ..LIMITS });
    let mut poller = Reader::new(&ring, Reading::Segments);
    let mut slow = Reader::new(&ring, Reading::Auto);
    ring.news(Control::Closed { room: room() }, Mono(0));
    for seq in 1..=50 {
        ring.flush(comments(0, seq..=seq), Mono(0));
    }

    assert_eq!(poller.read(&ring), ["closed"]);
    assert_eq!(slow.read(&ring)[0], "closed");
}

proptest! {
    /// Whatever the flushes, switches and pauses: an auto session on push and the segments before
    /// and after it hold every item once, in order; skips tell exactly what is missing.
    #[test]
    fn nothing_is_lost_or_repeated(
        steps in prop::collection::vec((0..3_u8, any::<bool>()), 1..120),
        bytes_max in 600_usize..4000,
    ) {
        let mut ring = ring(Limits { bytes_max, ..LIMITS });
        let mut host = Reader::with_bytes(&ring, Reading::Promoted, bytes_max);
        let mut auto = Reader::new(&ring, Reading::Auto);
        let (mut read, mut skipped, mut seq) = (Vec::new(), 0_u64, 0_u64);
        let mut pushed = Vec::new();
        let mut cold = BTreeSet::new();

        for (slot, &(kind, reads)) in (0_u64..).zip(&steps) {
            if kind == 0 {
                let heat = if ring.heat() == Heat::Cold { Heat::Hot } else { Heat::Cold };
                ring.switch(switch(heat, slot), Mono(slot));
            }
            seq += 1;
            ring.flush(comments(slot, seq..=seq), Mono(slot));
            if ring.heat() == Heat::Cold {
                cold.insert(seq);
            }
            pushed.extend(auto.read(&ring).iter().filter_map(|it| it.parse::<u64>().ok()));
            if reads {
                collect(&host.read(&ring), &mut read, &mut skipped);
            }
        }
        collect(&host.read(&ring), &mut read, &mut skipped);

        prop_assert!(read.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(read.len() as u64 + skipped, seq);
        prop_assert_eq!(pushed, cold.into_iter().collect::<Vec<_>>());
    }
}

fn collect(lines: &[String], read: &mut Vec<u64>, skipped: &mut u64) {
    for line in lines {
        match line.strip_prefix("skipped ") {
            Some(items) => *skipped += items.parse::<u64>().unwrap(),
            None => read.extend(line.parse::<u64>()),
        }
    }
}

/// An outbox in one room.
struct Reader(Outbox);

impl Reader {
    fn new(ring: &Ring, reading: Reading) -> Self {
        Self::with_bytes(ring, reading, 1 << 20)
    }

    fn with_bytes(ring: &Ring, reading: Reading, bytes_max: usize) -> Self {
        Self::at(ring.cursor(reading), bytes_max)
    }

    fn at(cursor: Cursor, bytes_max: usize) -> Self {
        let mut outbox = Outbox::new(Framing::Stream, bytes_max);
        outbox.follow(room(), cursor);
        Self(outbox)
    }

    fn read(&mut self, ring: &Ring) -> Vec<String> {
        self.try_read(ring).unwrap()
    }

    fn try_read(&mut self, ring: &Ring) -> Result<Vec<String>, Slow> {
        let mut out = Vec::new();
        while self.0.take(ring, &mut out)?.more {}
        Ok(out.iter().map(told).collect())
    }
}

fn told(bytes: &Bytes) -> String {
    match Downlink::decode(&bytes[4..]).unwrap() {
        Downlink::Batch(it) => {
            it.items.iter().map(|it| it.seq.to_string()).collect::<Vec<_>>().join(" ")
        }
        Downlink::Seal(it) => format!("seal {}", it.slot),
        Downlink::Skipped { items, .. } => format!("skipped {items}"),
        Downlink::Control(Control::Heat { heat, slot, .. }) => format!("heat {heat:?} {slot}"),
        Downlink::Control(Control::Closed { .. }) => "closed".to_owned(),
        other => panic!("unexpected {other:?}"),
    }
}

fn resume_at(ring: &Ring, seq: u64) -> (Resumed, Vec<String>) {
    let plan = resume::plan(ring, place(seq), Reading::Auto);
    let read = Reader::at(plan.cursor, 1 << 20).read(ring);
    (plan.resumed, read)
}

const fn place(seq: u64) -> Place {
    Place { gen_no: Gen(1), seq: Seq(seq) }
}

fn comments(slot: u64, seqs: std::ops::RangeInclusive<u64>) -> Batch {
    Batch {
        room: room(),
        gen_no: Gen(1),
        slot: SlotNo(slot),
        part: 0,
        items: seqs.map(placed).collect(),
    }
}

fn placed(seq: u64) -> Placed {
    let body = Body::Comment {
        text: format!("text {seq}").into(),
        style: Style::default(),
        media_ms: None,
        count: 1,
    };
    let item = Item {
        id: ItemId(seq),
        lane: Lane::Comment,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: Wall(1),
        body,
    };
    Placed { seq: Seq(seq), item }
}

fn seal(slot: u64) -> Seal {
    Seal { room: room(), gen_no: Gen(1), slot: SlotNo(slot), items: 0, crc: 0 }
}

fn switch(heat: Heat, slot: u64) -> Switch {
    Switch { heat, gen_no: Gen(1), slot: SlotNo(slot) }
}

fn ring(limits: Limits) -> Ring {
    Ring::new(room(), limits)
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}
