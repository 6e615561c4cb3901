//! JSON as programs usually write it, read straight through: known members, texts without escapes,
//! whole numbers, no `null`.
//!
//! Whoever reads with a [`Reader`] leaves to `serde_json` whatever it gives up on: that reads the
//! same in twice the time or more, and alone says what is no JSON. So a reader may give up on
//! anything, and must not take what `serde_json` would not.

use std::str::FromStr;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

/// A text, read up to somewhere. Its functions give nothing where something else stands than they
/// read; then the whole text is somebody else's.
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a str,
    /// Bytes that are read.
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// `{` members `}`
    #[inline]
    pub fn members(&mut self, member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(b'{', b'}', member)
    }

    /// This key in its quotes, and the colon behind it; nothing is read if it is another one.
    ///
    /// Compared where it lies: to read it first and then to look which one it is takes twice as
    /// long.
    #[inline]
    pub fn key<const N: usize>(&mut self, key: &[u8; N]) -> Option<()> {
        let rest = self.rest();
        if rest.first_chunk()? != key {
            return None;
        }
        let start = self.at;
        self.at += N + spaces(&rest[N..]);
        let found = self.eat(b':');
        if found.is_none() {
            self.at = start;
        }
        found
    }

    /// `[` elements `]`
    #[inline]
    pub fn elements(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(b'[', b']', element)
    }

    #[inline]
    fn list(
        &mut self,
        open: u8,
        close: u8,
        mut element: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.eat(open)?;
        if self.eat(close).is_some() {
            return Some(());
        }
        loop {
            element(self)?;
            if self.eat(b',').is_none() {
                return self.eat(close);
            }
        }
    }

    /// This ASCII character, and spaces behind it.
    #[inline]
    pub fn eat(&mut self, expected: u8) -> Option<()> {
        let rest = self.rest();
        if *rest.first()? != expected {
            return None;
        }
        self.at += 1 + spaces(&rest[1..]);
        Some(())
    }

    /// A text without escapes.
    #[inline]
    pub fn string(&mut self) -> Option<&'a str> {
        let plain = self.rest().strip_prefix(b"\"")?;
        let start = self.at + 1;
        let end = start + plain_bytes(plain);
        self.at = end;
        self.eat(b'"')?;
        self.text.get(start..end)
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// A variant by its name.
    #[inline]
    pub fn word<T: Deserialize<'a>>(&mut self) -> Option<T> {
        T::deserialize(IntoDeserializer::<Error>::into_deserializer(self.string()?)).ok()
    }

    /// A number without sign, fraction and exponent.
    #[inline]
    pub fn number<T: FromStr>(&mut self) -> Option<T> {
        let rest = self.rest();
        let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
        if digits > 1 && rest[0] == b'0' {
            return None;
        }
        let number = self.text[self.at..self.at + digits].parse().ok();
        self.at += digits + spaces(&rest[digits..]);
        number
    }

    /// `true` or `false`.
    #[inline]
    pub fn truth(&mut self) -> Option<bool> {
        let rest = self.rest();
        let truth = rest.starts_with(b"true");
        if !truth && !rest.starts_with(b"false") {
            return None;
        }
        let bytes = if truth { 4 } else { 5 };
        self.at += bytes + spaces(&rest[bytes..]);
        Some(truth)
    }
}

/// Marks a member as seen; it comes once.
#[inline]
pub fn once(seen: &mut u32, member: u32) -> Option<()> {
    let bit = 1 << member;
    let is_first = *seen & bit == 0;
    *seen |= bit;
    is_first.then_some(())
}

#[inline]
fn spaces(text: &[u8]) -> usize {
    text.iter().take_while(|&&it| it == b' ').count()
}

/// Bytes before the first one that ends a text or needs a closer look.
#[inline]
fn plain_bytes(text: &[u8]) -> usize {
    const EACH: u64 = u64::MAX / 0xff;
    // The highest bit of each byte that is below `bound`; above the lowest such byte also of others.
    let below = |word: u64, bound: u8| word.wrapping_sub(EACH * u64::from(bound)) & !word;
    let is = |word: u64, byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    // Eight at a time: tickets are long.
    let (words, _) = text.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let others = (is(word, b'"') | is(word, b'\\') | below(word, b' ')) & (EACH << 7);
        if others != 0 {
            return 8 * at + others.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |it: &&u8| !matches!(it, b'"' | b'\\' | 0..b' ');
    let start = 8 * words.len();
    start + text[start..].iter().take_while(is_plain).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn truths_and_numbers_are_read_with_the_spaces_behind_them() {
        let mut reader = Reader::new("true  false 18446744073709551615 007");

        assert_eq!((reader.truth(), reader.truth()), (Some(true), Some(false)));
        assert_eq!(reader.truth(), None);
        assert_eq!((reader.number(), reader.number::<u64>()), (Some(u64::MAX), None));
        assert!(!reader.is_at_end());
    }

    proptest! {
        #[test]
        fn plain_bytes_are_those_before_the_first_other_one(
            plain in "[ !#-\\[\\]-~\u{7f}-\u{800}]{0,40}",
            other in prop::sample::select(vec!["\"", "\\", "\n", "\u{0}", "\u{1f}"]),
            rest in "\\PC{0,20}",
        ) {
            prop_assert_eq!(plain_bytes(plain.as_bytes()), plain.len());
            prop_assert_eq!(plain_bytes(format!("{plain}{other}{rest}").as_bytes()), plain.len());
        }
    }
}
