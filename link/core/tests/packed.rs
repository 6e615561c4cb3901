//! Sessions that take a room's frames compressed, beside others that take them as they are.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]

use std::time::Duration;

use bytes::Bytes;
use link_core::framing::Framing;
use link_core::outbox::Outbox;
use link_core::ring::{Limits, Reading, Ring, Taken};
use proto::frame::{Batch, Codec, Control, Downlink, expand};
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::time::{Mono, Wall};

#[test]
fn all_get_the_same_items_and_the_shared_bytes_are_made_once() {
    let mut ring = ring(1 << 20);
    let mut plain = reader(&ring, Codec::Identity, 1 << 20);
    let mut packed = [(); 2].map(|()| reader(&ring, Codec::Deflate, 1 << 20));
    let (one, ten) = (comments(1..=1), comments(2..=11));
    ring.flush(one.clone(), Mono(0));
    ring.flush(ten.clone(), Mono(200));
    ring.news(Control::Closed { room: room() }, Mono(300));

    let (plainly, whole) = read(&mut plain, &ring);
    let [(first, taken), (second, _)] = packed.each_mut().map(|it| read(it, &ring));

    let said = [Downlink::Batch(one), Downlink::Batch(ten)];
    let closed = Downlink::Control(Control::Closed { room: room() });
    let said: Vec<_> = said.into_iter().chain([closed]).collect();
    assert_eq!(decoded(&plainly), said);
    assert_eq!(decoded(&first), said);
    assert!(first[1].len() < plainly[1].len() * 2 / 3, "{} bytes", first[1].len());
    assert_eq!((&first[0], &first[2]), (&plainly[0], &plainly[2]), "short frames and news");
    assert_eq!(taken.bytes + taken.saved_bytes, whole.bytes);
    assert_eq!(whole.saved_bytes, 0);
    let places = |it: &[Bytes]| it.iter().map(|it| it.as_ptr()).collect::<Vec<_>>();
    assert_eq!(places(&first), places(&second));
}

#[test]
fn who_skips_gets_the_gifts_compressed() {
    let mut ring = ring(1 << 20);
    let mut slow = reader(&ring, Codec::Deflate, 4_000);
    let mut gifts = comments(1..=20);
    gifts.items.iter_mut().for_each(|it| it.item.lane = Lane::HighGift);
    ring.flush(gifts.clone(), Mono(0));
    for seq in 3..=40 {
        ring.flush(comments(seq * 10..=seq * 10 + 9), Mono(seq * 200));
    }

    let (read, taken) = read(&mut slow, &ring);

    assert_eq!(decoded(&read)[0], Downlink::Batch(gifts));
    assert!(taken.saved_bytes > 0 && taken.skipped > 0, "{taken:?}");
}

#[test]
fn what_a_session_knows_already_of_a_batch_is_left_out_and_saves_nothing() {
    let mut ring = ring(1 << 20);
    ring.flush(comments(1..=20), Mono(0));
    let place = proto::frame::Place { gen_no: Gen(1), seq: Seq(5) };
    let plan = link_core::resume::plan(&ring, place, Reading::Auto);
    let mut outbox = Outbox::new(Framing::Stream, 1 << 20);
    outbox.pack(Codec::Deflate);
    outbox.follow(room(), plan.cursor);

    let (read, taken) = read(&mut outbox, &ring);

    assert_eq!(decoded(&read), [Downlink::Batch(comments(6..=20))]);
    assert_eq!(taken.saved_bytes, 0);
}

fn reader(ring: &Ring, codec: Codec, bytes_max: usize) -> Outbox {
    let mut outbox = Outbox::new(Framing::Stream, bytes_max);
    outbox.pack(codec);
    outbox.follow(room(), ring.cursor(Reading::Auto));
    outbox
}

fn read(outbox: &mut Outbox, ring: &Ring) -> (Vec<Bytes>, Taken) {
    let mut out = Vec::new();
    let taken = outbox.take(ring, &mut out).unwrap();
    assert!(!taken.more);
    (out, taken)
}

fn decoded(frames: &[Bytes]) -> Vec<Downlink> {
    frames.iter().map(|it| Downlink::decode(&expand(&it[4..]).unwrap()).unwrap()).collect()
}

fn comments(seqs: std::ops::RangeInclusive<u64>) -> Batch {
    let items = seqs.map(placed).collect();
    Batch { room: room(), gen_no: Gen(1), slot: SlotNo(0), part: 0, items }
}

fn placed(seq: u64) -> Placed {
    let text = format!("what was said at {seq}").into();
    let item = Item {
        id: ItemId(seq),
        lane: Lane::Comment,
        sender: SenderRef(1),
        role: Role::Viewer,
        at: Wall(1),
        body: Body::Comment { text, style: Style::default(), media_ms: None, count: 1 },
    };
    Placed { seq: Seq(seq), item }
}

fn ring(bytes_max: usize) -> Ring {
    let keep = Duration::from_secs(60);
    Ring::new(room(), Limits { bytes_max, kept_bytes_max: bytes_max, keep })
}

fn room() -> RoomId {
    RoomId::parse("r").unwrap()
}
