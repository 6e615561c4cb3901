//! One `<d p="…">…</d>` element of a Bilibili file.
//!
//! `p` holds 5 to 9 fields: time in s, mode, font size, colour as decimal RGB, Unix time, pool,
//! sender hash, comment id, weight. Modes: 1–3 scroll, 4 bottom, 5 top, 6 reverse, 7 positioned
//! (the text is a JSON list whose fifth entry is shown), 8 script (runs code: never a comment).

use proto::item::{Mode, Size, Style};
use quick_xml::events::{BytesRef, Event};
use quick_xml::{Reader, XmlVersion};

use super::{Comment, Damaged, media_ms, one_line};

pub(super) fn parse(record: &[u8]) -> Result<Comment, Damaged> {
    let record = std::str::from_utf8(record).map_err(|_| Damaged)?;
    let (fields, text) = element(record)?;
    let fields: Vec<&str> = fields.split(',').collect();
    if !(5..=9).contains(&fields.len()) {
        return Err(Damaged);
    }
    let seconds = fields[0].trim().parse::<f64>().map_err(|_| Damaged)?;
    let color = fields[3].trim().parse::<u32>().map_err(|_| Damaged)? & 0x00FF_FFFF;
    let size = match fields[2].trim().parse::<u32>().map_err(|_| Damaged)? {
        0..=20 => Size::Small,
        21..=30 => Size::Normal,
        _ => Size::Large,
    };
    let (mode, text) = match fields[1].trim() {
        "1" | "2" | "3" => (Mode::Scroll, text),
        "4" => (Mode::Bottom, text),
        "5" => (Mode::Top, text),
        "6" => (Mode::Reverse, text),
        "7" => (Mode::Scroll, positioned(&text)?),
        _ => return Err(Damaged),
    };
    let text = one_line(&text);
    Ok(Comment { media_ms: media_ms(seconds)?, text, style: Style { color, mode, size } })
}

/// The attribute `p` and the text of the element.
fn element(record: &str) -> Result<(String, String), Damaged> {
    let mut reader = Reader::from_str(record);
    let Ok(Event::Start(start)) = reader.read_event() else {
        return Err(Damaged);
    };
    let attribute = start.try_get_attribute("p").map_err(|_| Damaged)?.ok_or(Damaged)?;
    let fields =
        attribute.normalized_value(XmlVersion::Explicit1_0).map_err(|_| Damaged)?.into_owned();
    let mut text = String::new();
    loop {
        match reader.read_event().map_err(|_| Damaged)? {
            Event::Text(it) => text.push_str(&it.xml10_content()),
            Event::CData(it) => text.push_str(&it.xml10_content()),
            Event::GeneralRef(it) => text.push(character(&it)?),
            Event::End(_) => return Ok((fields, text)),
            Event::Comment(_) | Event::PI(_) => {}
            Event::Start(_) | Event::Empty(_) | Event::Decl(_) | Event::DocType(_) | Event::Eof => {
                return Err(Damaged);
            }
        }
    }
}

fn character(reference: &BytesRef<'_>) -> Result<char, Damaged> {
    if let Some(it) = reference.resolve_char_ref().map_err(|_| Damaged)? {
        return Ok(it);
    }
    match reference.xml10_content().as_ref() {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        _ => Err(Damaged),
    }
}

fn positioned(text: &str) -> Result<String, Damaged> {
    let list: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|_| Damaged)?;
    list.get(4).and_then(|it| it.as_str()).map(str::to_owned).ok_or(Damaged)
}
