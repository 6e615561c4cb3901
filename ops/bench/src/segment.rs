//! Segments: bytes an item costs on the CDN, and how many items a core packs.

mod encodings;
mod rivals;

use std::hint::black_box;
use std::ops::RangeInclusive;

use anyhow::Context;
use broadcaster_core::pack::{Packed, Packing, compress, pack};
use proto::encoding::Encoding;
use proto::head::Tier;
use proto::heat::Heat;
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::segment::{Header, Segment};
use proto::time::Wall;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use stack::replay::Script;

use crate::line::Line;
use crate::timing::per_second;

pub(crate) const NOW: u64 = 1_800_000_000_000;
const ITEMS: usize = 100;
/// So many of them make a text: 16 bytes in the mean.
const SYLLABLES_PER_TEXT: RangeInclusive<usize> = 1..=7;
const SYLLABLES: [&str; 24] = [
    "好", "听", "哈哈", "泪目", "太", "美了", "wow", "la", "go", "唱", "神", "前排", "ok", "来了",
    "牛", "感动", "the", "best", "再来", "一首", "♪", "yes", "啊啊", "高能",
];

/// Items of a slot: a quiet one, a busy one, and several seconds of one.
const SIZES: [usize; 3] = [20, 100, 480];
/// Names a file of recorded comments whose texts are packed; without it they are made up.
const RECORDING: &str = "BENCH_RECORDING";

/// Sizes of which every encoding is measured.
const ENCODED: [usize; 2] = [20, 100];

/// Texts and looks of a recording; none: they are made up.
type Recorded = [(String, Style)];

/// `segment.bytes.20`, `.100` and `.480`, each with what others would need: `.json`, our own file
/// for integrators, `.protobuf`, as Bilibili does, and `.rows`, all behind the same gzip, and
/// `.rows_zstd`. Then what is behind other encodings, see [`encodings`].
/// `segment.pack.100`: encoded, not compressed.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let recorded = recorded()?;
    let mut lines = Vec::new();
    for size in SIZES {
        lines.extend(bytes(size, &recorded)?);
    }
    for size in ENCODED {
        lines.extend(encodings::run(size, &recorded)?);
    }
    lines.push(pack_rate()?);
    Ok(lines)
}

fn recorded() -> anyhow::Result<Vec<(String, Style)>> {
    let Some(file) = std::env::var_os(RECORDING) else {
        return Ok(Vec::new());
    };
    let script = Script::open(file.as_ref()).with_context(|| format!("cannot read {file:?}"))?;
    Ok(script.comments.into_iter().map(|it| (it.text, it.style)).collect())
}

/// Slots without an end, with the texts of a recording again and again.
fn slots(size: usize, recorded: &Recorded) -> anyhow::Result<impl Iterator<Item = Segment>> {
    let mut comments = Comments::new(NOW, 1000 / u64::try_from(size)?.min(1000));
    let mut texts = recorded.iter().cycle();
    let header = header()?;
    Ok(std::iter::repeat_with(move || {
        let mut items: Vec<Placed> = place(comments.by_ref().take(size));
        for (placed, (text, style)) in items.iter_mut().zip(&mut texts) {
            let (text, style) = (text.into(), *style);
            placed.item.body = Body::Comment { text, style, media_ms: None, count: 1 };
        }
        pack(header.clone(), vec![items], Vec::new())
    }))
}

fn bytes(size: usize, recorded: &Recorded) -> anyhow::Result<Vec<Line>> {
    // A recording is looked through in slots of this size, and their mean counts.
    let count = (recorded.len() / size).max(1);
    let mut sums = [0; 5];
    for segment in slots(size, recorded)?.take(count) {
        let (protobuf, rows) = (rivals::protobuf(&segment.items), rivals::rows(&segment.items));
        let [protobuf, rows_gzip] = [&protobuf, &rows].map(|it| compress(it, Encoding::Gzip).len());
        let rows_zstd = compress(&rows, Encoding::Zstd).len();
        let Packed { bin, json, .. } = Packed::of(&segment, &Packing::default());
        let all = [bin.len(), json.len(), protobuf, rows_gzip, rows_zstd];
        for (sum, bytes) in sums.iter_mut().zip(all) {
            *sum += bytes;
        }
    }
    let [own, rest @ ..] = sums.map(|it| it as f64 / (count * size) as f64);
    let name = format!("segment.bytes.{size}");
    let rivals = ["json", "protobuf", "rows", "rows_zstd"].into_iter().zip(rest);
    let mut lines = vec![Line::alone(name.clone(), own, "bytes/item")];
    lines
        .extend(rivals.map(|(rival, it)| Line::alone(format!("{name}.{rival}"), it, "bytes/item")));
    Ok(lines)
}

fn pack_rate() -> anyhow::Result<Line> {
    let flushes = flushes();
    let header = header()?;
    let rate = per_second(|| {
        black_box(pack(black_box(header.clone()), flushes.clone(), Vec::new()).encode());
    });
    Ok(Line::alone("segment.pack.100", rate * ITEMS as f64, "items/s/core"))
}

pub(crate) fn place(items: impl Iterator<Item = Item>) -> Vec<Placed> {
    let items = items.enumerate();
    items.map(|(number, item)| Placed { seq: Seq(1000 + number as u64), item }).collect()
}

/// A second of a busy room: five flushes.
fn flushes() -> Vec<Vec<Placed>> {
    let placed = place(Comments::new(NOW, 1000 / ITEMS as u64).take(ITEMS));
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
            body: Body::Comment { text, style, media_ms: None, count: 1 },
        })
    }
}

pub(crate) fn header() -> anyhow::Result<Header> {
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
