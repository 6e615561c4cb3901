//! Recorded comments in the formats that other tools read.
//!
//! A [`Writer`] is given items in the order in which they were shown, and makes text of each at
//! once, so a recording may be of any length.

mod ass;

use std::fmt::Write as _;

use proto::id::{ItemId, SenderRef};
use proto::item::{Body, Mode, Placed, Repeat, Size, Style};
use proto::segment::Line;
use proto::time::Wall;

use self::ass::Rows;

/// What is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// Every item as JSON, one a line, as a segment's `.json` has it.
    Jsonl,
    /// Comments as Bilibili has them: `<i>` of `<d p="…">`.
    BilibiliXml,
    /// Comments as subtitles that fly (Advanced `SubStation` Alpha, version 4.00+).
    Ass,
    /// Comments as the player `DPlayer` reads them from its API.
    Dplayer,
}

/// Turns items into text.
#[derive(Debug)]
pub struct Writer {
    format: Format,
    /// When the recording began: what has no position of its own is placed from here.
    start: Wall,
    rows: Rows,
    comments: u64,
}

/// A comment with its place in the recording.
#[derive(Clone, Copy, Debug)]
struct Comment<'a> {
    id: ItemId,
    sender: SenderRef,
    at: Wall,
    media_ms: u64,
    style: Style,
    text: &'a str,
}

impl Writer {
    /// A writer of a recording that began at `start`.
    #[must_use]
    pub fn new(format: Format, start: Wall) -> Self {
        Self { format, start, rows: Rows::default(), comments: 0 }
    }

    /// What stands before all items.
    #[must_use]
    pub const fn head(&self) -> &'static str {
        match self.format {
            Format::Jsonl => "",
            Format::BilibiliXml => "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<i>\n",
            Format::Ass => ass::HEAD,
            Format::Dplayer => "{\"code\":0,\"data\":[",
        }
    }

    /// The text of one item; empty for what the format has no place for.
    pub fn item(&mut self, item: &Repeat) -> String {
        if self.format == Format::Jsonl {
            let line = serde_json::to_string(&Line::of(item));
            return line.expect("string keys only, and no failing serializer") + "\n";
        }
        let Some(comment) = self.comment(&item.placed) else {
            return String::new();
        };
        self.comments += 1;
        match self.format {
            Format::Ass => self.rows.line(comment.media_ms, comment.style, comment.text),
            Format::Dplayer => dplayer(&comment, self.comments == 1),
            Format::Jsonl | Format::BilibiliXml => bilibili(&comment),
        }
    }

    /// What stands after all items.
    #[must_use]
    pub const fn tail(&self) -> &'static str {
        match self.format {
            Format::Jsonl | Format::Ass => "",
            Format::BilibiliXml => "</i>\n",
            Format::Dplayer => "]}\n",
        }
    }

    /// Comments written so far.
    #[must_use]
    pub const fn comments(&self) -> u64 {
        self.comments
    }

    fn comment<'a>(&self, placed: &'a Placed) -> Option<Comment<'a>> {
        let item = &placed.item;
        let Body::Comment { text, style, media_ms, .. } = &item.body else {
            return None;
        };
        let passed = proto::time::millis(item.at.since(self.start));
        Some(Comment {
            id: item.id,
            sender: item.sender,
            at: item.at,
            media_ms: media_ms.unwrap_or(passed),
            style: *style,
            text,
        })
    }
}

/// `p` is seconds, mode, size, colour, time of the comment, pool, sender, id.
fn bilibili(comment: &Comment<'_>) -> String {
    let Comment { id, sender, at, media_ms, style, text } = comment;
    let mode = match style.mode {
        Mode::Scroll => 1,
        Mode::Bottom => 4,
        Mode::Top => 5,
        Mode::Reverse => 6,
    };
    let size = match style.size {
        Size::Small => 18,
        Size::Normal => 25,
        Size::Large => 36,
    };
    let (seconds, millis, color) = (media_ms / 1000, media_ms % 1000, style.color);
    let mut line = format!(
        "  <d p=\"{seconds}.{millis:03},{mode},{size},{color},{},0,{sender},{id}\">",
        at.unix_s(),
    );
    for letter in text.chars() {
        match letter {
            '&' => line.push_str("&amp;"),
            '<' => line.push_str("&lt;"),
            '>' => line.push_str("&gt;"),
            // What XML 1.0 (section 2.2) has no place for.
            '\0'..='\x08' | '\x0B' | '\x0C' | '\x0E'..='\x1F' | '\u{FFFE}' | '\u{FFFF}' => {}
            _ => line.push(letter),
        }
    }
    line.push_str("</d>\n");
    line
}

/// An array of seconds, kind (0 flies, 1 top, 2 bottom), colour, author and text.
fn dplayer(comment: &Comment<'_>, is_first: bool) -> String {
    let Comment { sender, media_ms, style, text, .. } = comment;
    let kind = match style.mode {
        Mode::Scroll | Mode::Reverse => 0,
        Mode::Top => 1,
        Mode::Bottom => 2,
    };
    let comma = if is_first { "" } else { "," };
    let (seconds, millis) = (media_ms / 1000, media_ms % 1000);
    let text = serde_json::to_string(text).expect("a string is JSON");
    let mut line = String::new();
    let color = style.color;
    write!(line, "{comma}\n[{seconds}.{millis:03},{kind},{color},\"{sender}\",{text}]")
        .expect("writing into a String does not fail");
    line
}

#[cfg(test)]
mod tests {
    use proto::id::{Gen, Seq};
    use proto::item::{Item, Lane, Role};
    use serde_json::Value;

    use super::*;

    fn comment(id: u64, text: &str, mode: Mode) -> Repeat {
        let style = Style { color: 0x12_34_56, mode, size: Size::Large };
        let body = Body::Comment { text: text.into(), style, media_ms: None, count: 1 };
        item(id, body)
    }

    fn item(id: u64, body: Body) -> Repeat {
        let item = Item {
            id: ItemId(id),
            lane: Lane::Comment,
            sender: SenderRef(7),
            role: Role::Viewer,
            at: Wall(1_000_000 + id * 1500),
            body,
        };
        Repeat { gen_no: Gen(1), placed: Placed { seq: Seq(id), item } }
    }

    fn write(format: Format, items: &[Repeat]) -> String {
        let mut writer = Writer::new(format, Wall(1_000_000));
        let mut text = writer.head().to_owned();
        for item in items {
            text.push_str(&writer.item(item));
        }
        text + writer.tail()
    }

    #[test]
    fn xml_has_what_a_parser_needs_and_nothing_that_it_refuses() {
        let xml = write(
            Format::BilibiliXml,
            &[comment(1, "a<b>&\u{1}\u{FFFF}\"好", Mode::Top), comment(2, "二", Mode::Reverse)],
        );

        let sender = SenderRef(7);
        let first =
            format!("<d p=\"1.500,5,36,1193046,1001,0,{sender},1\">a&lt;b&gt;&amp;\"好</d>");
        assert!(xml.contains(&first), "{xml}");
        assert!(xml.contains("<d p=\"3.000,6,36,"), "{xml}");
        assert!(xml.starts_with("<?xml ") && xml.ends_with("</i>\n"), "{xml}");
    }

    #[test]
    fn dplayer_gets_json_whether_there_is_something_or_not() {
        let none: Value = serde_json::from_str(&write(Format::Dplayer, &[])).unwrap();
        let items = [comment(1, "say \"好\"", Mode::Scroll), comment(2, "二", Mode::Bottom)];
        let two: Value = serde_json::from_str(&write(Format::Dplayer, &items)).unwrap();

        assert_eq!(none["data"].as_array().unwrap().len(), 0);
        assert_eq!(two["data"][0][4], "say \"好\"");
        assert_eq!((&two["data"][1][0], &two["data"][1][1]), (&3.0.into(), &2.into()));
    }

    #[test]
    fn only_lines_of_json_have_more_than_comments() {
        let gift = item(3, Body::Gift { gift_no: 1, count: 2, text: String::new() });
        let items = [comment(1, "one", Mode::Scroll), gift];

        let lines = write(Format::Jsonl, &items);

        assert_eq!(lines.lines().count(), 2);
        let gift: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(gift["gift"]["count"], 2);
        assert_eq!(write(Format::Ass, &items).matches("Dialogue:").count(), 1);
    }
}
