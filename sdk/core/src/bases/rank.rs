//! A client's draws: the same for the same base, and independent for different ones.

use proto::head::Base;

/// Draws tried until the base that `enter` put first comes first. One with a twentieth of the
/// weight is missed in one of 27 cases, and then stands where the draw puts it.
const SETTLE_MAX: u64 = 64;

/// A base's place in a client's order: the smallest is first. Of many clients, each base is first
/// for as many as its weight says.
pub(super) fn score(draw: u64, base: &str, weight: u32) -> f64 {
    -uniform(mix(draw ^ fnv(base))).ln() / f64::from(weight)
}

/// The draw nearest to this one that puts `first` first.
pub(super) fn settle(draw: u64, bases: &[Base], first: &str) -> u64 {
    let draws = (0..SETTLE_MAX).map(|it| draw.wrapping_add(it));
    let is_first = |draw: &u64| {
        let score = |it: &Base| score(*draw, &it.base, it.weight);
        let best = bases.iter().min_by(|a, b| score(a).total_cmp(&score(b)));
        best.is_some_and(|it| it.base == first)
    };
    draws.clone().find(is_first).unwrap_or(draw)
}

/// True for `part` of `whole` clients, and for the same ones as long as it may be.
pub(super) fn is_within(draw: u64, part: u64, whole: u64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
    let share = part as f64 / whole as f64;
    uniform(mix(!draw)) < share
}

/// Within 0..1, neither end included.
fn uniform(bits: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let numerator = (bits >> 11) as f64;
    (numerator + 0.5) / 9_007_199_254_740_992.0
}

/// The finalizer of SplitMix64: every bit of the input changes half of the output's.
const fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// FNV-1a, 64 bits: the same on every platform.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
