//! Questions as clients usually write them, read straight through.
//!
//! Whatever is written differently is left to `serde_json`, which reads the same in twice the
//! time, and which alone says what is no question.

use std::borrow::Cow;

use proto::id::{AppId, RoomId};
use proto::json::{Reader, once};

use super::{Ask, Client, Room, Text};

/// Reads a question into an empty one: to move what was just written costs more than to read it.
pub(super) fn ask<'a>(reader: &mut Reader<'a>, ask: &mut Ask<'a>) -> Option<()> {
    let mut seen = 0;
    reader.members(|it| {
        if it.key(b"\"ticket\"").is_some() {
            ask.ticket = text(it)?;
            once(&mut seen, 0)
        } else if it.key(b"\"app\"").is_some() {
            ask.app = Some(AppId(it.number()?));
            once(&mut seen, 1)
        } else if it.key(b"\"room\"").is_some() {
            ask.room = Some(Room(RoomId::parse(it.string()?).ok()?));
            once(&mut seen, 2)
        } else if it.key(b"\"client\"").is_some() {
            client(it, &mut ask.client)?;
            once(&mut seen, 3)
        } else {
            it.key(b"\"renew\"")?;
            ask.renew = Some(text(it)?);
            once(&mut seen, 4)
        }
    })
}

fn client<'a>(reader: &mut Reader<'a>, client: &mut Client<'a>) -> Option<()> {
    let mut seen = 0;
    reader.members(|it| {
        if it.key(b"\"device\"").is_some() {
            client.device = Some(text(it)?);
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

#[inline]
fn text<'a>(reader: &mut Reader<'a>) -> Option<Text<'a>> {
    reader.string().map(|it| Text(Cow::Borrowed(it)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usual(text: &str) -> Option<Ask<'_>> {
        let (mut reader, mut read) = (Reader::new(text), Ask::default());
        ask(&mut reader, &mut read)?;
        reader.is_at_end().then_some(read)
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
