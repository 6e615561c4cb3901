//! Segments: bytes an item costs on the CDN, and how many items a core packs.

use std::hint::black_box;

use broadcaster_core::pack::{Packed, pack};
use kit::clock::Clock;
use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::segment::Header;
use proto::time::Wall;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::line::Line;
use crate::timing::per_second;

const NOW: u64 = 1_800_000_000_000;
const ITEMS: usize = 100;
/// Syllables that texts are made of; two to eight of them give 16 bytes in the mean.
const SYLLABLES: [&str; 24] = [
    "好", "听", "哈哈", "泪目", "太", "美了", "wow", "la", "go", "唱", "神", "前排", "ok", "来了",
    "牛", "感动", "the", "best", "再来", "一首", "♪", "yes", "啊啊", "高能",
];

/// `segment.bytes.100` and `segment.pack.100`.
pub(crate) fn run(clock: &Clock) -> anyhow::Result<Vec<Line>> {
    let flushes = flushes();
    let header = header()?;
    let packed = Packed::of(&pack(header.clone(), &flushes, Vec::new()));
    let bytes = f64::from(u32::try_from(packed.bin.len())?) / ITEMS as f64;
    let rate = per_second(clock, || {
        black_box(pack(black_box(header.clone()), &flushes, Vec::new()).encode());
    });
    Ok(vec![
        Line::alone("segment.bytes.100", bytes, "bytes/item"),
        Line::alone("segment.pack.100", rate * ITEMS as f64, "items/s/core"),
    ])
}

/// A second of a busy room: five flushes, ids, senders and times as admission gives them.
fn flushes() -> Vec<Vec<Placed>> {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut placed = Vec::with_capacity(ITEMS);
    for number in 0..ITEMS as u64 {
        let at = NOW + number * 10 - rng.random_range(0..60);
        let syllables = rng.random_range(2..=8);
        let text =
            (0..syllables).map(|_| SYLLABLES[rng.random_range(0..SYLLABLES.len())]).collect();
        let color =
            if rng.random_bool(0.8) { 0x00FF_FFFF } else { rng.random_range(0..0x00FF_FFFF) };
        let item = Item {
            id: ItemId::compose(at, 1, u16::try_from(number % 8).unwrap_or(0)),
            lane: Lane::Comment,
            sender: SenderRef(rng.random()),
            role: Role::Viewer,
            at: Wall(at),
            body: Body::Comment {
                text,
                style: Style { color, ..Style::default() },
                media_ms: None,
            },
        };
        placed.push(Placed { seq: Seq(1000 + number), item });
    }
    placed.chunks(ITEMS / 5).map(<[Placed]>::to_vec).collect()
}

fn header() -> anyhow::Result<Header> {
    Ok(Header {
        room: RoomId::parse("concert")?,
        gen_no: Gen(1),
        slot: SlotNo(1000),
        tier: Tier::Full,
        epoch_ms: Wall(NOW - 1_000_000),
        interval_ms: 1000,
        now_ms: Wall(NOW + 1000),
        spread_ms: 500,
        next_tier: None,
        online: 1_000_000,
        heat: Heat::Hot,
        bases: Vec::new(),
        next: None,
        end: None,
    })
}
