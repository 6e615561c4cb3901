//! Listed words: what is done about a text that holds one.
//!
//! A list is compiled once into an Aho-Corasick automaton over folded letters ([`crate::fold`])
//! and shared; a text is scanned against the app's list and the room's in one pass each.
//!
//! A hit inside a longer word counts (`fucking`), with these exceptions:
//! - it lies within a hit of an allowed word (`Scunthorpe`);
//! - the word is short (three letters) or a number: it must stand alone (`class` holds no `ass`);
//! - it spans a sign (`a.s.s`): it must begin and end with words; a space besides wants a letter
//!   that stands alone (`f u c k`, but not `pen is`). Han and kana need no spaces, so that for
//!   them anything between is ignored.

mod filter;

use std::collections::BTreeMap;
use std::fmt;

use daachorse::{CharwiseDoubleArrayAhoCorasick, CharwiseDoubleArrayAhoCorasickBuilder};
use proto::control::Action;
use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use crate::fold::{Class, Folded, Gap, Glyph, LOOSE, Reading};
use crate::words::filter::Filter;

/// Words of one list.
pub const WORDS_MAX: usize = 200_000;
/// Bytes of one word.
pub const WORD_BYTES_MAX: usize = 256;
/// Hits of one text; one with more is refused, whatever the words say.
const HITS_MAX: usize = 4096;
/// Alphabetic words up to this length must stand alone.
const SHORT_MAX: usize = 3;

/// A word of a list.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// In any spelling; folded when the list is compiled.
    pub text: String,
    /// What is done about a text that holds it; [`Action::Allow`]: words within it do not count.
    pub action: Action,
}

/// Why a list cannot be compiled.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadList {
    /// More than [`WORDS_MAX`].
    #[error("a list has at most {WORDS_MAX} words")]
    TooMany,
    /// Longer than [`WORD_BYTES_MAX`].
    #[error("word {no} is longer than {WORD_BYTES_MAX} bytes")]
    TooLong {
        /// Its place, from 0.
        no: usize,
    },
    /// Nothing is left of it when it is folded.
    #[error("word {no}, {text:?}, has no letter or digit")]
    Blank {
        /// Its place, from 0.
        no: usize,
        /// The word.
        text: String,
    },
    /// It begins or ends with a sign. Signs are not read, so that another, shorter word would be
    /// listed.
    #[error("word {no}, {text:?}, begins or ends with a sign, and signs are not read")]
    Sign {
        /// Its place, from 0.
        no: usize,
        /// The word.
        text: String,
    },
    /// The automaton has no place for it.
    #[error("the list is too large to be compiled")]
    TooLarge,
}

/// A compiled list.
pub struct Words {
    automaton: Option<CharwiseDoubleArrayAhoCorasick<u32>>,
    filter: Filter,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    action: Action,
    /// Letters when folded.
    letters: usize,
    /// Whether all of it is Han or kana.
    is_ideographic: bool,
    /// Whether all of it is digits.
    is_number: bool,
    /// Whether it must stand alone.
    is_whole: bool,
}

/// A word found in a text.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Hit {
    /// Where it begins, in bytes.
    pub from: u16,
    /// Where it ends.
    pub to: u16,
    /// What is done about it.
    pub action: Action,
}

impl Words {
    /// Compiles a list; 100,000 words take half a second. Of words that fold alike the one with the
    /// latest [`Action`] counts.
    pub fn compile(words: &[Word]) -> Result<Self, BadList> {
        if words.len() > WORDS_MAX {
            return Err(BadList::TooMany);
        }
        let mut actions: BTreeMap<String, Action> = BTreeMap::new();
        let mut folded = Folded::default();
        for (no, word) in words.iter().enumerate() {
            if word.text.len() > WORD_BYTES_MAX {
                return Err(BadList::TooLong { no });
            }
            for reading in readings(&word.text) {
                folded.fold(&word.text, *reading);
                let letters: String = folded.glyphs().iter().map(|it| it.letter).collect();
                check_ends(no, &word.text, folded.glyphs())?;
                let action = actions.entry(letters).or_insert(word.action);
                *action = word.action.max(*action);
            }
        }
        let rules = actions.iter().map(|(letters, action)| Rule::new(letters, *action)).collect();
        let filter = Filter::new(actions.keys().map(String::as_str));
        if actions.is_empty() {
            return Ok(Self { automaton: None, filter, rules });
        }
        let values = actions.into_keys().zip(0_u32..);
        let automaton = CharwiseDoubleArrayAhoCorasickBuilder::new()
            // It helps searches over slices; a stepper goes letter by letter, from where the
            // filter lets it begin.
            .use_prefilter(false)
            .build_with_values(values);
        Ok(Self { automaton: Some(automaton.map_err(|_| BadList::TooLarge)?), filter, rules })
    }

    /// Words that fold differently.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn scan(&self, glyphs: &[Glyph], hits: &mut Vec<Hit>) {
        let Some(automaton) = &self.automaton else { return };
        let Some(from) = self.filter.first(glyphs) else { return };
        let mut stepper = automaton.find_overlapping_stepper();
        for (last, glyph) in glyphs.iter().enumerate().skip(from) {
            stepper.consume(glyph.letter);
            for found in stepper.matches() {
                let Some(rule) = usize::try_from(found.value()).ok().map(|it| self.rules[it])
                else {
                    continue;
                };
                let first = last + 1 - rule.letters;
                if hits.len() < HITS_MAX && rule.holds(glyphs, first, last) {
                    let (from, to) = (glyphs[first].from, glyph.to);
                    hits.push(Hit { from, to, action: rule.action });
                }
            }
        }
    }
}

impl Rule {
    fn new(letters: &str, action: Action) -> Self {
        let class =
            |it: char| Glyph { letter: it, from: 0, to: 0, gap: Gap::None, is_first: true }.class();
        let all = |wanted: Class| letters.chars().all(|it| class(it) == wanted);
        let count = letters.chars().count();
        let is_ideographic = all(Class::Ideographic);
        let is_number = all(Class::Digit);
        let is_whole = !is_ideographic && (count <= SHORT_MAX || is_number);
        Self { action, letters: count, is_ideographic, is_number, is_whole }
    }

    /// Whether the letters from `first` to `last` count as the word.
    fn holds(self, glyphs: &[Glyph], first: usize, last: usize) -> bool {
        let next = glyphs.get(last + 1);
        if !glyphs[first].is_first || next.is_some_and(|it| !it.is_first) {
            return false;
        }
        if self.is_ideographic {
            return true;
        }
        let inner = &glyphs[first + 1..=last];
        let widest = inner.iter().map(|it| it.gap).max().unwrap_or(Gap::None);
        if widest == Gap::None && !self.is_whole {
            return true;
        }
        let is_apart = |left: Option<&Glyph>, right: Option<&Glyph>| match (left, right) {
            (Some(left), Some(right)) => right.gap != Gap::None || self.parts(left, right),
            _ => true,
        };
        let before = first.checked_sub(1).map(|it| &glyphs[it]);
        let stands = is_apart(before, Some(&glyphs[first])) && is_apart(Some(&glyphs[last]), next);
        let alone = |at: usize| {
            (at == first || glyphs[at].gap != Gap::None)
                && (at == last || glyphs[at + 1].gap != Gap::None)
        };
        stands && (widest < Gap::Space || (first..=last).any(alone))
    }

    /// Whether a word ends between two letters with nothing between them. A number goes on in its
    /// unit (`64GB`); a word does not go on in a number (`sb250`).
    fn parts(self, left: &Glyph, right: &Glyph) -> bool {
        let (left, right) = (left.class(), right.class());
        let has_unit = left.max(right) == Class::Digit && left.min(right) == Class::Alphabetic;
        left != right && !(self.is_number && has_unit)
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({})", self.rules.len())
    }
}

/// Scans texts; holds the memory that a scan needs.
#[derive(Debug, Default)]
pub struct Scanner {
    folded: Folded,
    loose: Folded,
    hits: Vec<Hit>,
}

impl Scanner {
    /// The words of `lists` in `text`, in order, without allowed ones and those within them.
    pub fn scan(&mut self, text: &str, lists: &[&Words]) -> &[Hit] {
        self.hits.clear();
        self.folded.fold(text, Reading::Plain);
        scan(&self.folded, lists, &mut self.hits);
        if self.folded.is_loose() {
            for reading in LOOSE {
                self.loose.fold(text, reading);
                scan(&self.loose, lists, &mut self.hits);
            }
        }
        if self.hits.len() >= HITS_MAX {
            let to = u16::try_from(text.len()).unwrap_or(u16::MAX);
            self.hits.clear();
            self.hits.push(Hit { from: 0, to, action: Action::Refuse });
        } else if !self.hits.is_empty() {
            protect(&mut self.hits);
            self.hits.sort_unstable();
            self.hits.dedup();
        }
        &self.hits
    }

    /// The text scanned last, as it was read.
    #[must_use]
    pub const fn folded(&self) -> &Folded {
        &self.folded
    }
}

/// How a listed word is read: `a$$` as it is meant, other words as they are.
fn readings(word: &str) -> &'static [Reading] {
    let has_sign = word.contains(['$', '@', '!', '|']);
    let mut folded = Folded::default();
    folded.fold(word, Reading::Plain);
    if has_sign && folded.is_loose() { &LOOSE } else { &[Reading::Plain] }
}

/// Whether what a listed word is read as is all of it.
fn check_ends(no: usize, word: &str, glyphs: &[Glyph]) -> Result<(), BadList> {
    let (Some(first), Some(last)) = (glyphs.first(), glyphs.last()) else {
        return Err(BadList::Blank { no, text: word.to_owned() });
    };
    let before = word[..first.from.into()].trim();
    let behind = word[last.to.into()..].trim();
    if before.is_empty() && behind.is_empty() {
        Ok(())
    } else {
        Err(BadList::Sign { no, text: word.to_owned() })
    }
}

fn scan(folded: &Folded, lists: &[&Words], hits: &mut Vec<Hit>) {
    for list in lists {
        list.scan(folded.glyphs(), hits);
    }
}

/// Removes allowed hits, and those that lie within one of them.
fn protect(hits: &mut Vec<Hit>) {
    let mut allowed: Vec<(u16, u16)> =
        hits.extract_if(.., |it| it.action == Action::Allow).map(|it| (it.from, it.to)).collect();
    allowed.sort_unstable();
    // The farthest end of all that begin up to here.
    let mut end = 0;
    for it in &mut allowed {
        end = end.max(it.1);
        it.1 = end;
    }
    hits.retain(|hit| {
        let begun = allowed.partition_point(|it| it.0 <= hit.from);
        begun.checked_sub(1).is_none_or(|it| allowed[it].1 < hit.to)
    });
}

/// `text` with a star for every grapheme that a masked hit touches. `hits` are in order.
#[must_use]
pub fn mask(text: &str, hits: &[Hit]) -> String {
    let mut masks = hits.iter().filter(|it| it.action == Action::Mask).peekable();
    let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
    for (at, grapheme) in text.grapheme_indices(true) {
        while let Some(hit) = masks.next_if(|it| usize::from(it.from) < at + grapheme.len()) {
            end = end.max(usize::from(hit.to));
        }
        masked.push_str(if at < end { "*" } else { grapheme });
    }
    masked
}

#[cfg(test)]
mod tests;
