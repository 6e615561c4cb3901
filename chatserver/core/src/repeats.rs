//! The same text again, or nearly: by one sender, and in the whole room.
//!
//! A text is remembered as a [`Sketch`] of fixed size: the lowest hashes of its pairs of folded
//! letters (Broder, "On the resemblance and containment of documents", 1997). Case, width, spaces,
//! signs, digits beside letters and drawn-out letters make no difference.

use std::collections::VecDeque;
use std::time::Duration;

use foldhash::HashMap;
use proto::time::Mono;

use crate::fold::{Class, Glyph};

/// Hashes of a sketch; a text with no more pairs is compared exactly.
const GRAMS_MAX: usize = 8;
/// Texts of fewer pairs are the same or not; there is nothing in between.
const NEAR_GRAMS_MIN: usize = 4;
/// How many of a hundred pairs near-repeats share.
const NEAR_PERCENT: usize = 60;
/// Texts remembered for one sender, 56 bytes each.
const PAST_MAX: usize = 4;
/// Different texts counted in one room, about 40 bytes each.
const TEXTS_MAX: usize = 4096;
/// A full room looks so often whether texts are over: each look takes some microseconds.
const SWEEP: Duration = Duration::from_millis(100);
/// Time in which a room counts a text.
pub const ROOM_WINDOW: Duration = Duration::from_secs(10);

/// A text in a few bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sketch {
    /// Equal for texts that read the same.
    key: u64,
    /// The lowest hashes, ascending, each once.
    grams: [u32; GRAMS_MAX],
    len: u8,
}

impl Sketch {
    /// The sketch of `text`, which folds to `glyphs`.
    #[must_use]
    pub fn new(text: &str, glyphs: &[Glyph]) -> Self {
        let has_letters = glyphs.iter().any(|it| it.class() != Class::Digit);
        let counts = |it: &&Glyph| !has_letters || it.class() != Class::Digit;
        let mut sketch = Self { key: SEED, grams: [0; GRAMS_MAX], len: 0 };
        let mut before = '\0';
        for glyph in glyphs.iter().filter(counts) {
            if glyph.letter != before {
                sketch.key = mix(sketch.key, glyph.letter);
                sketch.insert(gram(before, glyph.letter));
                before = glyph.letter;
            }
        }
        if glyphs.is_empty() {
            // Emoji and signs alone: what was sent is all there is.
            sketch.key = text.chars().fold(!SEED, mix);
        }
        sketch
    }

    /// Whether a reader would take both for the same.
    #[must_use]
    pub fn is_near(&self, other: &Self) -> bool {
        if self.key == other.key {
            return true;
        }
        let (mine, others) = (self.grams(), other.grams());
        if mine.len().min(others.len()) < NEAR_GRAMS_MIN {
            return false;
        }
        // Of the lowest hashes of both together, how many are in each.
        let (mut a, mut b, mut both, mut all) = (0, 0, 0, 0);
        while all < GRAMS_MAX && (a < mine.len() || b < others.len()) {
            let (left, right) = (mine.get(a), others.get(b));
            let is_left = left.is_some_and(|it| right.is_none_or(|other| it <= other));
            let is_right = right.is_some_and(|it| left.is_none_or(|other| it <= other));
            a += usize::from(is_left);
            b += usize::from(is_right);
            both += usize::from(is_left && is_right);
            all += 1;
        }
        both * 100 >= all * NEAR_PERCENT
    }

    /// The same for texts that read the same.
    #[must_use]
    pub const fn key(&self) -> u64 {
        self.key
    }

    fn grams(&self) -> &[u32] {
        &self.grams[..usize::from(self.len)]
    }

    fn insert(&mut self, gram: u32) {
        let len = usize::from(self.len);
        if len == GRAMS_MAX && gram > self.grams[GRAMS_MAX - 1] {
            return;
        }
        let Err(place) = self.grams[..len].binary_search(&gram) else { return };
        let end = len.min(GRAMS_MAX - 1);
        self.grams.copy_within(place..end, place + 1);
        self.grams[place] = gram;
        self.len = u8::try_from(end + 1).unwrap_or(u8::MAX);
    }
}

/// First 64 bits of the fraction of the golden ratio.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// One step of a hash: what was, turned, with what comes, times an odd number.
fn mix(hash: u64, letter: char) -> u64 {
    (hash.rotate_left(5) ^ u64::from(u32::from(letter))).wrapping_mul(SEED)
}

/// The hash of a pair: the upper half of a product, which depends on all bits of both.
fn gram(left: char, right: char) -> u32 {
    let [a, b, c, d, ..] = mix(mix(SEED, left), right).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// What one sender said lately.
#[derive(Clone, Debug, Default)]
pub struct Past(VecDeque<(Sketch, Mono)>);

impl Past {
    /// How long `sketch` has to wait so that the sender has not said it for `window`; 0: it may go.
    #[must_use]
    pub fn wait_ms(&self, sketch: &Sketch, window: Duration, now: Mono) -> u64 {
        let counts = |it: &&(Sketch, Mono)| it.1 + window > now && it.0.is_near(sketch);
        let said = self.0.iter().filter(counts).map(|it| it.1 + window).max();
        said.map_or(0, |until| until.0.saturating_sub(now.0))
    }

    /// Remembers what was said.
    pub fn push(&mut self, sketch: Sketch, now: Mono) {
        if self.0.len() >= PAST_MAX {
            self.0.pop_front();
        }
        self.0.push_back((sketch, now));
    }

    /// Forgets the newest text of this key: it was not said after all.
    pub fn take_back(&mut self, key: u64) {
        if let Some(place) = self.0.iter().rposition(|it| it.0.key == key) {
            self.0.remove(place);
        }
    }
}

/// How often a room heard a text lately.
#[derive(Debug, Default)]
pub struct Echo {
    texts: HashMap<u64, Count>,
    /// When all of them were last looked at.
    swept: Mono,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    since: Mono,
    times: u32,
}

impl Echo {
    /// How long `sketch` has to wait, after it was heard `times_max` times in its window; 0: it
    /// may go.
    #[must_use]
    pub fn wait_ms(&self, sketch: &Sketch, times_max: u32, now: Mono) -> u64 {
        let Some(count) = self.texts.get(&sketch.key).filter(|it| it.times >= times_max) else {
            return 0;
        };
        (count.since + ROOM_WINDOW).0.saturating_sub(now.0)
    }

    /// Counts what was heard; when 4,096 texts are counted, a new one is not.
    pub fn push(&mut self, sketch: &Sketch, now: Mono) {
        if self.texts.len() >= TEXTS_MAX && !self.texts.contains_key(&sketch.key) {
            if now.since(self.swept) >= SWEEP {
                self.expire(now);
            }
            if self.texts.len() >= TEXTS_MAX {
                return;
            }
        }
        let count = self.texts.entry(sketch.key).or_insert(Count { since: now, times: 0 });
        if now.since(count.since) >= ROOM_WINDOW {
            *count = Count { since: now, times: 0 };
        }
        count.times += 1;
    }

    /// Counts one less of this key, which was heard at `at`: it was not said after all.
    pub fn take_back(&mut self, key: u64, at: Mono) {
        let Some(count) = self.texts.get_mut(&key).filter(|it| it.since <= at) else { return };
        count.times = count.times.saturating_sub(1);
        if count.times == 0 {
            self.texts.remove(&key);
        }
    }

    /// Forgets what was not heard lately.
    pub fn expire(&mut self, now: Mono) {
        self.swept = now;
        self.texts.retain(|_, it| now.since(it.since) < ROOM_WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fold::{Folded, Reading};

    fn sketch(text: &str) -> Sketch {
        let mut folded = Folded::default();
        folded.fold(text, Reading::Plain);
        Sketch::new(text, folded.glyphs())
    }

    fn near(left: &str, right: &str) -> bool {
        sketch(left).is_near(&sketch(right))
    }

    #[test]
    fn what_reads_the_same_is_the_same() {
        assert!(near("哈哈哈哈哈", "哈哈"));
        assert!(near("Buy NOW!!", "ｂｕｙ  now 🤬"));
        assert!(near("加群 123456", "加群 654321"));
        assert!(near("😂😂", "😂😂"));
        assert!(!near("😂😂", "👍"));
        assert!(!near("666", "233"));
        assert!(!near("10:9", "10:8"));
    }

    #[test]
    fn a_few_changed_letters_make_no_new_text() {
        assert!(near("这个主播唱得真好听啊大家快来", "这个主播唱得真好听呀大家快来"));
        assert!(near("join my channel for free coins", "pls join my channel for free coin"));
        assert!(!near("这个主播唱得真好听", "那首歌我昨天听过"));
        assert!(!near("good game", "well played"));
        assert!(!near("太强了", "太弱了"));
    }

    #[test]
    fn a_sender_waits_before_saying_it_again() {
        let mut past = Past::default();
        let window = Duration::from_secs(10);
        past.push(sketch("来了来了"), Mono(1000));

        assert_eq!(past.wait_ms(&sketch("来了 来了"), window, Mono(4000)), 7000);
        assert_eq!(past.wait_ms(&sketch("走了走了"), window, Mono(4000)), 0);
        assert_eq!(past.wait_ms(&sketch("来了来了"), window, Mono(11_000)), 0);
    }

    #[test]
    fn a_room_hears_a_text_only_so_often_in_its_window() {
        let mut echo = Echo::default();
        let text = sketch("关注主播");

        echo.push(&text, Mono(0));
        assert_eq!(echo.wait_ms(&text, 2, Mono(1000)), 0);
        echo.push(&text, Mono(1000));
        assert_eq!(echo.wait_ms(&text, 2, Mono(4000)), 6000);
        assert_eq!(echo.wait_ms(&text, 2, Mono(10_000)), 0);
        echo.push(&text, Mono(10_000));
        assert_eq!(echo.wait_ms(&text, 2, Mono(10_000)), 0);
    }

    #[test]
    fn a_room_counts_a_bounded_number_of_texts() {
        let mut echo = Echo::default();
        for no in 0..2 * TEXTS_MAX {
            let text: String =
                char::from_u32(0xAC00 + u32::try_from(no).unwrap()).into_iter().collect();
            echo.push(&sketch(&text), Mono(0));
        }

        assert_eq!(echo.texts.len(), TEXTS_MAX);
        echo.expire(Mono(10_000));
        assert_eq!(echo.texts.len(), 0);
    }

    proptest! {
        #[test]
        fn likeness_is_mutual_and_a_text_is_like_itself(left: String, right: String) {
            let (left, right) = (sketch(&left), sketch(&right));

            prop_assert!(left.is_near(&left));
            prop_assert_eq!(left.is_near(&right), right.is_near(&left));
        }

        #[test]
        fn grams_are_the_lowest_in_order(text in "[a-z]{0,40}") {
            let sketch = sketch(&text);

            prop_assert!(sketch.grams().windows(2).all(|it| it[0] < it[1]));
        }
    }
}
