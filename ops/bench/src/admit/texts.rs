//! What is judged, and by which words.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;

use anyhow::{Context, ensure};
use chatserver_core::words::Word;
use proto::control::Action;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use stack::replay::Script;

use crate::cpu;

/// A recording to take the texts from.
const RECORDING_ENV: &str = "BENCH_COMMENTS";
/// Without one.
const SAMPLE: &str = include_str!("../../../stack/samples/concert.json");
/// Listed words.
const WORDS: usize = 100_000;
/// Listed words of two letters: more would be found in too many texts.
const SHORT_WORDS: usize = 1_000;
/// Times that all texts are read in one round.
const READ_TEXTS: usize = 100_000;

/// Real texts, and words that look like them.
pub(super) struct Texts {
    pub(super) all: Vec<String>,
    pub(super) words: Vec<Word>,
}

impl Texts {
    pub(super) fn new() -> anyhow::Result<Self> {
        let script = match std::env::var_os(RECORDING_ENV) {
            Some(path) => Script::open(Path::new(&path)),
            None => Script::read(Cursor::new(SAMPLE)),
        };
        let script = script.context("the recording cannot be read")?;
        let all: Vec<String> = script.comments.into_iter().map(|it| it.text).collect();
        ensure!(!all.is_empty(), "the recording is empty");
        let words = words(&all).into_iter();
        let words = words.map(|text| Word { text, action: Action::Refuse }).collect();
        Ok(Self { all, words })
    }

    /// Texts a second of this core that `read` takes.
    pub(super) fn rate(&self, mut read: impl FnMut(&str)) -> f64 {
        let start = cpu::thread();
        self.all.iter().cycle().take(READ_TEXTS).for_each(|it| read(it));
        READ_TEXTS as f64 / (cpu::thread() - start).as_secs_f64()
    }
}

/// Words of letters that the texts have and of others, so that a scan goes some way into many, and
/// finds few. Three of five are Han.
fn words(texts: &[String]) -> BTreeSet<String> {
    let letters = || texts.iter().flat_map(|it| it.chars());
    let han: Vec<char> = letters().filter(|it| ('\u{4E00}'..'\u{9FFF}').contains(it)).collect();
    let latin: Vec<char> = letters().filter(char::is_ascii_lowercase).collect();
    let mut rng = SmallRng::seed_from_u64(7);
    let mut words = BTreeSet::new();
    while words.len() < WORDS {
        let is_short = words.len() < SHORT_WORDS;
        let is_han = rng.random_bool(0.6);
        let (known, others) =
            if is_han { (&han, '\u{4E00}'..='\u{6E00}') } else { (&latin, 'a'..='z') };
        let length = if is_short { 2 } else { rng.random_range(if is_han { 3..6 } else { 5..10 }) };
        let letter = |_| match known.choose(&mut rng) {
            Some(letter) if rng.random_bool(0.5) => *letter,
            Some(_) | None => rng.random_range(others.clone()),
        };
        words.insert((0..length).map(letter).collect());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_words_as_are_claimed() {
        let texts = Texts::new().unwrap();

        assert_eq!(texts.words.len(), WORDS);
        assert!(texts.all.len() > 100);
    }
}
