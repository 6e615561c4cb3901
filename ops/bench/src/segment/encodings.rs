//! What each encoding of a slot costs, in bytes and in time, and what a dictionary saves.

use std::hint::black_box;

use anyhow::ensure;
use broadcaster_core::pack::train::train;
use broadcaster_core::pack::{Lexicon, compress};
use bytes::Bytes;
use proto::encoding::Encoding;

use super::{Recorded, slots};
use crate::line::Line;
use crate::timing::per_second;

/// Slots of which a dictionary is made; where a recording has fewer, it is said again with other
/// ids, senders and times.
const TRAINING: usize = 400;
/// Slots that are measured, none of them among those; a recording that is said again stands in one
/// of both halves only.
const MEASURED: usize = 100;

/// `segment.bytes.N.gzip`, `.br`, `.zstd` and `.dict` (zstd with a dictionary made of other slots of
/// that size), and how often a second a core does each, `segment.compress.N.…`.
pub(super) fn run(size: usize, recorded: &Recorded) -> anyhow::Result<Vec<Line>> {
    // The texts of both halves differ, so that nothing is learned by heart.
    let (first, second) = recorded.split_at(recorded.len() / 2);
    let encode = |texts: &Recorded, count| -> anyhow::Result<Vec<Bytes>> {
        let slots = slots(size, texts)?.take(count);
        Ok(slots.map(|it| it.encode()).collect())
    };
    let training = encode(first, TRAINING)?;
    let measured = encode(second, MEASURED + TRAINING)?.split_off(TRAINING);
    ensure!(measured.len() == MEASURED, "there are too few slots to measure");
    let lexicon = Lexicon::new(train(&training, Encoding::Zstd)?.dictionary);

    let dict = |it: &[u8]| lexicon.compress(it);
    let mut lines = Vec::new();
    for encoding in Encoding::ALL {
        let compress = |it: &[u8]| compress(it, encoding);
        lines.extend(measure(size, encoding.name(), &measured, compress));
    }
    lines.extend(measure(size, "dict", &measured, dict));
    Ok(lines)
}

fn measure(
    size: usize,
    name: &str,
    slots: &[Bytes],
    compress: impl Fn(&[u8]) -> Bytes,
) -> [Line; 2] {
    let bytes: usize = slots.iter().map(|it| compress(it).len()).sum();
    let mut turn = slots.iter().cycle();
    let rate = per_second(|| {
        black_box(turn.next().map(|it| compress(it)));
    });
    let each = bytes as f64 / (slots.len() * size) as f64;
    [
        Line::alone(format!("segment.bytes.{size}.{name}"), each, "bytes/item"),
        Line::alone(format!("segment.compress.{size}.{name}"), rate, "slots/s/core"),
    ]
}
