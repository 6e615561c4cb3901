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

use super::{Ask, Client, Room, Text, Transports};

/// What is not read yet.
pub(super) struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Whether nothing is left.
    pub(super) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// A question.
    pub(super) fn ask(&mut self) -> Option<Ask<'a>> {
        let mut ask = Ask::default();
        let mut seen = 0;
        self.members(|key, it| match key {
            "ticket" => {
                ask.ticket = it.text()?;
                once(&mut seen, 0)
            }
            "app" => {
                ask.app = Some(AppId(it.number()?));
                once(&mut seen, 1)
            }
            "room" => {
                ask.room = Some(Room(RoomId::parse(it.string()?).ok()?));
                once(&mut seen, 2)
            }
            "client" => {
                ask.client = it.client()?;
                once(&mut seen, 3)
            }
            "renew" => {
                ask.renew = Some(it.text()?);
                once(&mut seen, 4)
            }
            _ => None,
        })?;
        Some(ask)
    }

    fn client(&mut self) -> Option<Client<'a>> {
        let mut client = Client::default();
        let mut seen = 0;
        self.members(|key, it| match key {
            "device" => {
                client.device = Some(it.text()?);
                once(&mut seen, 0)
            }
            "class" => {
                client.class = it.word()?;
                once(&mut seen, 1)
            }
            "transports" => {
                client.transports = it.transports()?;
                once(&mut seen, 2)
            }
            "ip" => {
                client.ip = Some(it.string()?.parse().ok()?);
                once(&mut seen, 3)
            }
            _ => None,
        })?;
        Some(client)
    }

    fn transports(&mut self) -> Option<Transports> {
        let mut transports = Transports::default();
        self.elements(|it| {
            transports.push(it.word()?);
            Some(())
        })?;
        Some(transports)
    }

    /// `{` members `}`
    fn members(&mut self, mut member: impl FnMut(&str, &mut Self) -> Option<()>) -> Option<()> {
        self.list('{', '}', |it| {
            let key = it.string()?;
            it.eat(':')?;
            member(key, it)
        })
    }

    /// `[` elements `]`
    pub(super) fn elements(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list('[', ']', element)
    }

    #[inline]
    fn list(
        &mut self,
        open: char,
        close: char,
        mut element: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.eat(open)?;
        if self.eat(close).is_some() {
            return Some(());
        }
        loop {
            element(self)?;
            if self.eat(',').is_none() {
                return self.eat(close);
            }
        }
    }

    /// This character, and spaces behind it.
    #[inline]
    pub(super) fn eat(&mut self, expected: char) -> Option<()> {
        let rest = self.0.strip_prefix(expected)?;
        self.0 = rest.trim_start_matches(' ');
        Some(())
    }

    /// A text without escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a str> {
        let rest = self.0.strip_prefix('"')?;
        let (string, rest) = rest.split_at_checked(plain_bytes(rest.as_bytes()))?;
        self.0 = rest;
        self.eat('"')?;
        Some(string)
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
        let end = self.0.bytes().position(|it| !it.is_ascii_digit())?;
        let (digits, rest) = self.0.split_at_checked(end)?;
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        self.0 = rest.trim_start_matches(' ');
        digits.parse().ok()
    }
}

/// Bytes before the first one that ends a text or needs a closer look.
#[inline]
fn plain_bytes(text: &[u8]) -> usize {
    let is_other = |it: u8| it == b'"' || it == b'\\' || it < b' ';
    // All of a chunk are compared at once: tickets are long.
    let (chunks, _) = text.as_chunks::<16>();
    let is_plain = |it: &&[u8; 16]| !it.iter().fold(false, |any, &it| any | is_other(it));
    let start = 16 * chunks.iter().take_while(is_plain).count();
    text[start..].iter().position(|&it| is_other(it)).map_or(text.len(), |it| start + it)
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
        let mut reader = Reader::new(text);
        reader.ask().filter(|_| reader.is_at_end())
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
