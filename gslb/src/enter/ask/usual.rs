//! Questions as clients usually write them, read straight through: known members, texts without
//! escapes, no `null`.
//!
//! Whatever is written differently is left to `serde_json`, which reads the same in twice the
//! time, and which alone says what is no question.

use std::borrow::Cow;

use proto::id::{AppId, RoomId};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use super::{Ask, Client, Room, Text};

/// A text, read up to somewhere.
pub(super) struct Reader<'a> {
    text: &'a str,
    /// Bytes that are read.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Whether nothing is left.
    pub(super) const fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Reads a question into an empty one: to move what was just written costs more than to read it.
    pub(super) fn ask(&mut self, ask: &mut Ask<'a>) -> Option<()> {
        let mut seen = 0;
        self.members(|it| {
            if it.key(b"\"ticket\"").is_some() {
                ask.ticket = it.text()?;
                once(&mut seen, 0)
            } else if it.key(b"\"app\"").is_some() {
                ask.app = Some(AppId(it.number()?));
                once(&mut seen, 1)
            } else if it.key(b"\"room\"").is_some() {
                ask.room = Some(Room(RoomId::parse(it.string()?).ok()?));
                once(&mut seen, 2)
            } else if it.key(b"\"client\"").is_some() {
                it.client(&mut ask.client)?;
                once(&mut seen, 3)
            } else {
                it.key(b"\"renew\"")?;
                ask.renew = Some(it.text()?);
                once(&mut seen, 4)
            }
        })
    }

    fn client(&mut self, client: &mut Client<'a>) -> Option<()> {
        let mut seen = 0;
        self.members(|it| {
            if it.key(b"\"device\"").is_some() {
                client.device = Some(it.text()?);
                once(&mut seen, 0)
            } else if it.key(b"\"class\"").is_some() {
                client.class = it.word()?;
                once(&mut seen, 1)
            } else if it.key(b"\"transports\"").is_some() {
                it.elements(|it| {
                    client.transports.push(it.word()?);
                    Some(())
                })?;
                once(&mut seen, 2)
            } else {
                it.key(b"\"ip\"")?;
                client.ip = Some(it.string()?.parse().ok()?);
                once(&mut seen, 3)
            }
        })
    }

    /// `{` members `}`
    #[inline]
    fn members(&mut self, member: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(b'{', b'}', member)
    }

    /// This key in its quotes, and the colon behind it; nothing is read if it is another one.
    ///
    /// Compared where it lies: to read it first and then to look which one it is takes twice as
    /// long.
    #[inline]
    pub(super) fn key<const N: usize>(&mut self, key: &[u8; N]) -> Option<()> {
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
    pub(super) fn elements(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
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
    pub(super) fn eat(&mut self, expected: u8) -> Option<()> {
        let rest = self.rest();
        if *rest.first()? != expected {
            return None;
        }
        self.at += 1 + spaces(&rest[1..]);
        Some(())
    }

    /// A text without escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a str> {
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

    fn text(&mut self) -> Option<Text<'a>> {
        self.string().map(|it| Text(Cow::Borrowed(it)))
    }

    /// A variant by its name.
    fn word<T: Deserialize<'a>>(&mut self) -> Option<T> {
        T::deserialize(IntoDeserializer::<Error>::into_deserializer(self.string()?)).ok()
    }

    /// A number without sign, fraction and exponent.
    fn number(&mut self) -> Option<u32> {
        let rest = self.rest();
        let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
        if digits > 1 && rest[0] == b'0' {
            return None;
        }
        let number = self.text[self.at..self.at + digits].parse().ok();
        self.at += digits + spaces(&rest[digits..]);
        number
    }
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

/// A member comes once.
fn once(seen: &mut u8, member: u8) -> Option<()> {
    let bit = 1 << member;
    let is_first = *seen & bit == 0;
    *seen |= bit;
    is_first.then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usual(text: &str) -> Option<Ask<'_>> {
        let (mut reader, mut ask) = (Reader::new(text), Ask::default());
        reader.ask(&mut ask)?;
        reader.is_at_end().then_some(ask)
    }

    #[test]
    fn what_clients_write_is_read_straight_through() {
        for text in [
            "{}",
            r#"{"ticket":"a.b.c","client":{"class":"weak","transports":["ws","tls"]}}"#,
            r#"{"ticket": "", "app": 7, "room": "lobby", "client": {"ip": "2001:db8::1"}}"#,
            r#"{"client":{"device":"ios-1","transports":[]},"renew":"link.example:443"}"#,
        ] {
            assert_eq!(usual(text), serde_json::from_str(text).ok(), "{text}");
            assert!(usual(text).is_some(), "{text}");
        }
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

        /// Pieces of questions in any order, most of which make none.
        #[test]
        fn whatever_is_read_straight_through_is_what_serde_reads(
            pieces in proptest::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", " ", "\n", "null", "0", "7", "07", "-1", "1.5", "1e2",
                "4294967295", "4294967296", "\"", "\\", "\"a\\u002eb\"", "\"\u{1}\"", "\"é\"", "\"\"",
                "\"ticket\"", "\"app\"", "\"room\"", "\"client\"", "\"renew\"", "\"device\"",
                "\"class\"", "\"transports\"", "\"ip\"", "\"tls\"", "\"weak\"", "\"192.0.2.1\"",
                "\"ticket\":\"a\"", "\"app\":7", "\"room\":\"r\"", "\"client\":{", "\"class\":\"weak\"",
                "\"transports\":[\"tls\"", "\"ip\":\"192.0.2.1\"", "\"renew\":null",
            ]), 0..12),
        ) {
            let body = pieces.concat();
            for text in [format!("{{{body}}}"), body.clone(), format!("{{{body}}}}}")] {
                if let Some(ask) = usual(&text) {
                    let expected = serde_json::from_str(&text);
                    prop_assert_eq!(Some(ask), expected.ok(), "{}", text);
                }
            }
        }
    }
}
