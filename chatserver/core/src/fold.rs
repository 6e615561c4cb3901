//! A text as a matcher reads it: what looks or sounds the same becomes the same.
//!
//! Folded away are case, width and style (NFKD), accents and stacked marks, look-alikes of other
//! scripts (UTS #39 skeletons), traditional characters, katakana, digits of other scripts; left
//! out are spaces, signs, emoji and everything without width. A [`Glyph`] knows the bytes that it
//! stands for, so a hit can be told in the text that was sent, which is never changed.

mod entry;

use proto::limits::TEXT_BYTES_MAX;

use crate::fold::entry::Entry;

/// A flag is two region letters in a row; one, and more than two, spell.
const FLAG: usize = 2;
/// From this many equal letters on a run is drawn out on purpose.
const RUN_MIN: usize = 3;

/// What stands between two glyphs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Gap {
    /// Nothing that shows.
    None,
    /// Signs or emoji.
    Sign,
    /// White space, perhaps with signs.
    Space,
}

/// How letters make words.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// Words stand between spaces.
    Alphabetic,
    /// Words follow each other without a space: Han and kana.
    Ideographic,
    /// A digit.
    Digit,
}

/// One folded letter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Glyph {
    /// What it reads as.
    pub letter: char,
    /// Where its source begins, in bytes of the text.
    pub from: u16,
    /// Where its source ends.
    pub to: u16,
    /// What stands before it.
    pub gap: Gap,
    /// Whether a word may begin here, and end before it: a vowel sign and the second letter of a
    /// ligature belong to the glyph before them.
    pub is_first: bool,
}

impl Glyph {
    /// How it makes words.
    #[must_use]
    pub fn class(&self) -> Class {
        match self.letter {
            '0'..='9' => Class::Digit,
            it if entry::is_ideographic(it) => Class::Ideographic,
            _ => Class::Alphabetic,
        }
    }
}

/// What one character is to a reader of addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Letters and digits, folded.
    Letters(Letters),
    /// A sign, an emoji, a space.
    Other,
    /// Nothing that shows.
    Nothing,
}

/// The letters that one character folds to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Letters {
    /// One.
    One(Option<char>),
    /// Several.
    Many(&'static str),
}

impl Iterator for Letters {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::One(letter) => letter.take(),
            Self::Many(letters) => {
                let mut rest = letters.chars();
                let first = rest.next();
                *letters = rest.as_str();
                first
            }
        }
    }
}

/// What `character` alone folds to.
pub(crate) fn part(character: char) -> Part {
    match entry::of(character) {
        Entry::Letter(it) | Entry::Mark(it) => Part::Letters(Letters::One(Some(it))),
        Entry::Letters(it) => Part::Letters(Letters::Many(it)),
        Entry::Region(_) | Entry::Sign | Entry::Space => Part::Other,
        Entry::Nothing => Part::Nothing,
    }
}

/// How much a reader forgives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reading {
    /// The text as it is.
    Plain,
    /// Digits and signs among letters are letters (`5h1t`), and drawn-out letters are short.
    Loose {
        /// What `1`, `!` and `|` are: `i` or `l`.
        one: char,
        /// To how many letters a run of three or more shrinks.
        run: usize,
    },
}

/// Every loose reading.
pub const LOOSE: [Reading; 4] = [
    Reading::Loose { one: 'i', run: 1 },
    Reading::Loose { one: 'i', run: 2 },
    Reading::Loose { one: 'l', run: 1 },
    Reading::Loose { one: 'l', run: 2 },
];

/// A folded text, and the memory for the next one.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    glyphs: Vec<Glyph>,
    is_loose: bool,
    has_address_sign: bool,
}

impl Folded {
    /// The glyphs of the text that was folded last.
    #[must_use]
    pub fn glyphs(&self) -> &[Glyph] {
        &self.glyphs
    }

    /// Whether a [`LOOSE`] reading of the same text may read otherwise than this one.
    #[must_use]
    pub const fn is_loose(&self) -> bool {
        self.is_loose
    }

    /// Whether there is a sign that links and addresses have: a dot, a slash, an `@`.
    #[must_use]
    pub(crate) const fn has_address_sign(&self) -> bool {
        self.has_address_sign
    }

    /// Reads the first [`TEXT_BYTES_MAX`] bytes of `text`, in linear time.
    pub fn fold(&mut self, text: &str, reading: Reading) {
        let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
        self.glyphs.clear();
        (self.is_loose, self.has_address_sign) = (false, false);
        let (mut word, mut flags) = (Stretch::default(), Stretch::default());
        let (mut gap, mut begin) = (Gap::None, 0);
        for (from, sent) in text.char_indices() {
            let to = from + sent.len_utf8();
            let sent = narrow(sent);
            let character = match loosened(sent, reading) {
                Some(read) if word.at(text, begin, from, mixed) => {
                    self.is_loose = true;
                    read
                }
                Some(_) | None => sent,
            };
            if !is_mixable(sent) {
                begin = to;
            }
            gap = match entry::of(character) {
                Entry::Letter(letter) => self.push(letter, from..to, gap, true),
                Entry::Letters(letters) => {
                    for (no, letter) in letters.chars().enumerate() {
                        gap = self.push(letter, from..to, gap, no == 0);
                    }
                    gap
                }
                Entry::Mark(letter) => self.push(letter, from..to, gap, self.glyphs.is_empty()),
                Entry::Region(letter) if flags.at(text, from, from, spelled) => {
                    self.push(letter, from..to, gap, true)
                }
                Entry::Region(_) => gap.max(Gap::Sign),
                Entry::Sign => {
                    self.has_address_sign |= is_address_sign(character);
                    gap.max(Gap::Sign)
                }
                Entry::Space => Gap::Space,
                Entry::Nothing => gap,
            };
        }
        if let Reading::Loose { run, .. } = reading {
            self.shrink(run);
        }
    }

    fn push(
        &mut self,
        letter: char,
        source: std::ops::Range<usize>,
        gap: Gap,
        is_first: bool,
    ) -> Gap {
        let byte = |it: usize| u16::try_from(it).expect("TEXT_BYTES_MAX fits 16 bits");
        let (from, to) = (byte(source.start), byte(source.end));
        self.glyphs.push(Glyph { letter, from, to, gap, is_first });
        if let [.., a, b, c] = self.glyphs.as_slice()
            && a.letter == b.letter
            && b.letter == c.letter
            && c.class() != Class::Digit
        {
            self.is_loose = true;
        }
        Gap::None
    }

    /// Makes `run` letters of three and more equal ones.
    fn shrink(&mut self, run: usize) {
        let mut kept = 0;
        let mut start = 0;
        while start < self.glyphs.len() {
            let first = self.glyphs[start];
            let same = |it: &&Glyph| it.letter == first.letter;
            let length = self.glyphs[start..].iter().take_while(same).count();
            let is_drawn_out = length >= RUN_MIN && first.class() != Class::Digit;
            let keep = if is_drawn_out { run.min(length) } else { length };
            self.glyphs.copy_within(start..start + keep, kept);
            kept += keep;
            self.glyphs[kept - 1].to = self.glyphs[start + length - 1].to;
            start += length;
        }
        self.glyphs.truncate(kept);
    }
}

/// A stretch of the text that was looked at once, as a whole.
#[derive(Debug, Default)]
struct Stretch {
    end: usize,
    holds: bool,
}

impl Stretch {
    /// What `look` says about the stretch that begins at `begin`, or where the last one ended, and
    /// that `from` lies in.
    fn at(
        &mut self,
        text: &str,
        begin: usize,
        from: usize,
        look: fn(&str) -> (usize, bool),
    ) -> bool {
        if from >= self.end {
            let (length, holds) = look(&text[begin..]);
            *self = Self { end: begin + length, holds };
        }
        self.holds
    }
}

/// What `sent` is among letters, if it is a digit or a sign that looks like one; the plain reading
/// leaves it as it is.
const fn loosened(sent: char, reading: Reading) -> Option<char> {
    let read = match sent {
        '0' => 'o',
        '1' | '!' | '|' => match reading {
            Reading::Plain => 'i',
            Reading::Loose { one, .. } => one,
        },
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' | '+' => 't',
        '8' => 'b',
        _ => return None,
    };
    Some(match reading {
        Reading::Plain => sent,
        Reading::Loose { .. } => read,
    })
}

/// Letters that make words with spaces between, digits, and signs that look like letters.
fn is_mixable(read: char) -> bool {
    match read {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '!' | '|' | '@' | '$' | '+' => true,
        '\0'..='\u{7F}' | '\u{4E00}'..='\u{9FFF}' => false,
        _ => is_letter(read) || read.is_numeric(),
    }
}

fn is_letter(read: char) -> bool {
    read.is_alphabetic() && !entry::is_ideographic(read)
}

/// Whether letters stand among the letters, digits and signs that `text` begins with.
fn mixed(text: &str) -> (usize, bool) {
    let (mut length, mut has_letter) = (0, false);
    for character in text.chars() {
        let read = narrow(character);
        if !is_mixable(read) {
            break;
        }
        has_letter |= is_letter(read);
        length += character.len_utf8();
    }
    (length, has_letter)
}

/// Dots, the slash and the sign of e-mail addresses; full-width ones are narrow by now.
const fn is_address_sign(sign: char) -> bool {
    matches!(sign, '/' | '@') || is_dot(sign)
}

/// What an address takes for a dot.
pub(crate) const fn is_dot(sign: char) -> bool {
    matches!(sign, '.' | '。' | '｡' | '•' | '·' | '∙' | '․' | '・' | '﹒')
}

/// The ASCII character of a full-width one.
pub(crate) fn narrow(character: char) -> char {
    match character {
        '\u{FF01}'..='\u{FF5E}' => {
            char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character)
        }
        _ => character,
    }
}

/// Whether the region letters that `text` begins with spell a word instead of a flag.
fn spelled(text: &str) -> (usize, bool) {
    let is_region = |it: &char| matches!(it, '\u{1F1E6}'..='\u{1F1FF}');
    let letters = text.chars().take_while(is_region).count();
    (letters.max(1) * 4, letters != FLAG)
}

#[cfg(test)]
mod tests;
