//! Segments: bytes an item costs on the CDN, and how many items a core packs.

use std::hint::black_box;
use std::ops::RangeInclusive;

use broadcaster_core::pack::{Packed, pack};
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
/// So many of them make a text: 16 bytes in the mean.
const SYLLABLES_PER_TEXT: RangeInclusive<usize> = 1..=7;
const SYLLABLES: [&str; 24] = [
    "好", "听", "哈哈", "泪目", "太", "美了", "wow", "la", "go", "唱", "神", "前排", "ok", "来了",
    "牛", "感动", "the", "best", "再来", "一首", "♪", "yes", "啊啊", "高能",
];

/// `segment.bytes.100` and `segment.pack.100`.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let flushes = flushes();
    let header = header()?;
    let packed = Packed::of(&pack(header.clone(), &flushes, Vec::new()));
    let bytes = f64::from(u32::try_from(packed.bin.len())?) / ITEMS as f64;
    let rate = per_second(|| {
        black_box(pack(black_box(header.clone()), &flushes, Vec::new()).encode());
    });
    Ok(vec![
        Line::alone("segment.bytes.100", bytes, "bytes/item"),
        Line::alone("segment.pack.100", rate * ITEMS as f64, "items/s/core"),
    ])
}

/// A second of a busy room: five flushes.
fn flushes() -> Vec<Vec<Placed>> {
    let items = Comments::new(NOW, 1000 / ITEMS as u64).take(ITEMS).enumerate();
    let placed: Vec<_> =
        items.map(|(number, item)| Placed { seq: Seq(1000 + number as u64), item }).collect();
    placed.chunks(ITEMS / 5).map(<[Placed]>::to_vec).collect()
}

/// Comments without an end: ids, senders and times as admission gives them.
pub(crate) struct Comments {
    rng: SmallRng,
    now_ms: u64,
    step_ms: u64,
}

impl Comments {
    /// One every `step_ms`.
    pub(crate) fn new(now_ms: u64, step_ms: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(7), now_ms, step_ms }
    }
}

impl Iterator for Comments {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let rng = &mut self.rng;
        self.now_ms += self.step_ms;
        let syllables = rng.random_range(SYLLABLES_PER_TEXT);
        let text =
            (0..syllables).map(|_| SYLLABLES[rng.random_range(0..SYLLABLES.len())]).collect();
        let color =
            if rng.random_bool(0.8) { 0x00FF_FFFF } else { rng.random_range(0..0x00FF_FFFF) };
        let style = Style { color, ..Style::default() };
        Some(Item {
            id: ItemId::compose(self.now_ms, 1, 0),
            lane: Lane::Comment,
            sender: SenderRef(rng.random()),
            role: Role::Viewer,
            at: Wall(self.now_ms - rng.random_range(0..60)),
            body: Body::Comment { text, style, media_ms: None },
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_16_bytes_in_the_mean() {
        const TEXTS: usize = 10_000;

        let texts = Comments::new(NOW, 1).take(TEXTS);
        let bytes: usize = texts.filter_map(|it| it.body.text().map(str::len)).sum();

        let mean = bytes as f64 / TEXTS as f64;
        assert!((15.0..18.0).contains(&mean), "{mean}");
    }
}
