//! Where in a text a listed word may begin: a look that most texts do not pass.
//!
//! The automaton of a long list lies in megabytes, so that each letter waits for memory. The first
//! letters of all words lie in two tables of bits that fit into nearer caches: one is asked for
//! each pair of letters, the other only where the first says yes.

use crate::fold::Glyph;

/// Bits of the table of pairs for each word, and at most: 64 KiB.
const PAIR_BITS: usize = 8;
const PAIR_BITS_MAX: usize = 1 << 19;
/// The same for the table of beginnings, 512 KiB: one in forty is there by chance.
const HEAD_BITS: usize = 40;
const HEAD_BITS_MAX: usize = 1 << 22;
/// Stands for a third letter behind a word of two.
const END: char = '\0';

/// The beginnings of all words of a list.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// None: there is a word of one letter, which may begin anywhere.
    tables: Option<Tables>,
}

#[derive(Clone, Debug)]
struct Tables {
    pairs: Bits,
    heads: Bits,
}

impl Filter {
    /// Of words in folded letters.
    pub(super) fn new<'a>(words: impl ExactSizeIterator<Item = &'a str>) -> Self {
        let count = words.len();
        let mut pairs = Bits::new((count * PAIR_BITS).min(PAIR_BITS_MAX));
        let mut heads = Bits::new((count * HEAD_BITS).min(HEAD_BITS_MAX));
        for word in words {
            let mut letters = word.chars();
            let (Some(first), Some(second)) = (letters.next(), letters.next()) else {
                return Self { tables: None };
            };
            let pair = hash(SEED, [first, second]);
            pairs.set(pair);
            heads.set(hash(pair, [letters.next().unwrap_or(END)]));
        }
        Self { tables: Some(Tables { pairs, heads }) }
    }

    /// The first letter at which a word may begin; none if there is no word in the text.
    pub(super) fn first(&self, glyphs: &[Glyph]) -> Option<usize> {
        let Some(Tables { pairs, heads }) = &self.tables else { return Some(0) };
        glyphs.windows(2).enumerate().position(|(at, pair)| {
            let pair = hash(SEED, [pair[0].letter, pair[1].letter]);
            let third = || glyphs.get(at + 2).map(|it| hash(pair, [it.letter]));
            pairs.get(pair)
                && (heads.get(hash(pair, [END])) || third().is_some_and(|it| heads.get(it)))
        })
    }
}

/// A table of bits; its length is a power of two.
#[derive(Clone, Debug)]
struct Bits {
    words: Box<[u64]>,
    /// What is left of a hash is a place.
    shift: u32,
}

impl Bits {
    fn new(bits: usize) -> Self {
        let words = (bits / 64).next_power_of_two().max(2);
        let shift = u64::BITS - (words * 64).trailing_zeros();
        Self { words: vec![0; words].into(), shift }
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let place = usize::try_from(hash >> self.shift).unwrap_or(0);
        (place / 64, 1 << (place % 64))
    }

    fn set(&mut self, hash: u64) {
        let (word, bit) = self.place(hash);
        self.words[word] |= bit;
    }

    fn get(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words[word] & bit != 0
    }
}

/// First 64 bits of the fraction of the golden ratio.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash whose upper bits depend on all letters.
fn hash<const N: usize>(seed: u64, letters: [char; N]) -> u64 {
    let step =
        |hash: u64, letter| (hash.rotate_left(5) ^ u64::from(u32::from(letter))).wrapping_mul(SEED);
    letters.into_iter().fold(seed, step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fold::{Folded, Reading};

    fn first(text: &str, words: &[&str]) -> Option<usize> {
        let mut folded = Folded::default();
        folded.fold(text, Reading::Plain);
        Filter::new(words.iter().copied()).first(folded.glyphs())
    }

    #[test]
    fn a_text_without_a_beginning_is_passed_over() {
        assert_eq!(first("hello there", &["abc", "de"]), None);
        assert_eq!(first("xxabd", &["abc"]), None);
        assert_eq!(first("xxabc", &["abc"]), Some(2));
        assert_eq!(first("xxde", &["abc", "de"]), Some(2));
        assert_eq!(first("xxab", &["abc"]), None);
        assert_eq!(first("x", &["abc"]), None);
        assert_eq!(first("x", &["y"]), Some(0), "a word of one letter may be anywhere");
    }

    proptest! {
        #[test]
        fn no_word_is_passed_over(
            before in "[a-z]{0,9}", word in "[a-z]{1,6}", behind in "[a-z]{0,9}",
            others in prop::collection::vec("[a-z]{1,6}", 0..20)
        ) {
            let words: Vec<&str> =
                others.iter().map(String::as_str).chain([word.as_str()]).collect();

            let found = first(&format!("{before}{word}{behind}"), &words);

            prop_assert!(found.is_some_and(|it| it <= before.len()), "{found:?}");
        }
    }
}
