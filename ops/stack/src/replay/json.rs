//! One `{text, time, color}` object, as web players store comments.

use proto::item::{Mode, Size, Style};
use serde::Deserialize;

use super::{Comment, Damaged, media_ms, one_line};

/// Unknown fields are other players' business.
#[derive(Deserialize)]
struct Record {
    text: String,
    time: f64,
    #[serde(default)]
    color: Option<String>,
    #[serde(default)]
    mode: Option<u8>,
}

pub(super) fn parse(record: &[u8]) -> Result<Comment, Damaged> {
    let record: Record = serde_json::from_slice(record).map_err(|_| Damaged)?;
    let color = match record.color.as_deref().map(|it| it.trim_start_matches('#')) {
        Some(hex) if hex.len() == 6 => u32::from_str_radix(hex, 16).map_err(|_| Damaged)?,
        Some("") | None => 0x00FF_FFFF,
        Some(_) => return Err(Damaged),
    };
    let mode = match record.mode {
        Some(1) => Mode::Top,
        Some(2) => Mode::Bottom,
        Some(_) | None => Mode::Scroll,
    };
    let style = Style { color, mode, size: Size::Normal };
    Ok(Comment { media_ms: media_ms(record.time)?, text: one_line(&record.text), style })
}
