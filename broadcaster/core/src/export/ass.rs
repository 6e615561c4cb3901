//! Comments as subtitles that fly over the picture from right to left.

use std::fmt::Write as _;

use proto::item::{Mode, Size, Style};

/// The picture that positions refer to; players scale it.
const WIDTH: u64 = 1920;
const HEIGHT: u64 = 1080;
/// Height of a row, and of a letter of normal size.
const ROW: u64 = 54;
const ROWS: usize = (HEIGHT / ROW) as usize;
/// How long a comment flies.
const FLIGHT_MS: u64 = 8_000;
/// How long a fixed one stays.
const STAY_MS: u64 = 4_000;

/// Everything before the first comment.
pub(super) const HEAD: &str = "\
[Script Info]
ScriptType: v4.00+
PlayResX: 1920
PlayResY: 1080
WrapStyle: 2
ScaledBorderAndShadow: yes

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, \
Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, \
Alignment, MarginL, MarginR, MarginV, Encoding
Style: Comment,sans-serif,48,&H00FFFFFF,&H00FFFFFF,&H80000000,&H80000000,0,0,0,0,100,100,0,0,1,2,0,\
7,0,0,0,1

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
";

/// Until when each row is taken: by those that fly, at the top and at the bottom.
#[derive(Debug, Default)]
pub(super) struct Rows {
    flying: [u64; ROWS],
    top: [u64; ROWS],
    bottom: [u64; ROWS],
}

impl Rows {
    /// The event of a comment.
    pub(super) fn line(&mut self, at_ms: u64, style: Style, text: &str) -> String {
        let size = match style.size {
            Size::Small => 36,
            Size::Normal => 48,
            Size::Large => 72,
        };
        let width = width(text, size);
        let (length_ms, place) = match style.mode {
            Mode::Scroll | Mode::Reverse => {
                // The next may start when this one's end has come in.
                let entry_ms = FLIGHT_MS * width / (WIDTH + width);
                let y = take(&mut self.flying, at_ms, entry_ms) * ROW;
                let (from, to) = (WIDTH.to_string(), format!("-{width}"));
                let (from, to) = if style.mode == Mode::Scroll { (from, to) } else { (to, from) };
                (FLIGHT_MS, format!("\\move({from},{y},{to},{y})"))
            }
            Mode::Top => {
                let y = take(&mut self.top, at_ms, STAY_MS) * ROW;
                (STAY_MS, format!("\\an8\\pos({},{y})", WIDTH / 2))
            }
            Mode::Bottom => {
                let y = HEIGHT - take(&mut self.bottom, at_ms, STAY_MS) * ROW;
                (STAY_MS, format!("\\an2\\pos({},{y})", WIDTH / 2))
            }
        };
        let [_, red, green, blue] = style.color.to_be_bytes();
        let (start, end) = (time(at_ms), time(at_ms.saturating_add(length_ms)));
        let mut line = format!(
            "Dialogue: 0,{start},{end},Comment,,0,0,0,,{{{place}\\fs{size}\
             \\c&H{blue:02X}{green:02X}{red:02X}&}}"
        );
        // Braces begin commands and backslashes name them; there is no way to write them as such.
        line.extend(text.chars().map(|letter| match letter {
            '{' => '｛',
            '}' => '｝',
            '\\' => '＼',
            '\n' | '\r' => ' ',
            _ => letter,
        }));
        line.push('\n');
        line
    }
}

/// The first free row, else the one that is free first; taken for `length_ms`.
fn take(rows: &mut [u64; ROWS], at_ms: u64, length_ms: u64) -> u64 {
    let free = rows.iter().position(|it| *it <= at_ms);
    let first = || (0..ROWS).min_by_key(|it| rows[*it]).unwrap_or_default();
    let row = free.unwrap_or_else(first);
    rows[row] = at_ms.saturating_add(length_ms);
    row as u64
}

/// About how wide a text is: wide letters are as wide as they are high, others half of it.
fn width(text: &str, size: u64) -> u64 {
    let halves: u64 = text.chars().map(|it| if it.is_ascii() { 1 } else { 2 }).sum();
    halves * size / 2
}

/// Hours, minutes, seconds and hundredths.
fn time(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let mut text = String::new();
    write!(text, "{hours}:{minutes:02}:{seconds:02}.{:02}", ms / 10 % 100)
        .expect("writing into a String does not fail");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_at_one_time_fly_in_rows_of_their_own() {
        let mut rows = Rows::default();
        let mut line = |at_ms| rows.line(at_ms, Style::default(), "text");

        let (first, second, later) = (line(1000), line(1000), line(10_000));

        assert!(first.starts_with("Dialogue: 0,0:00:01.00,0:00:09.00,"), "{first}");
        assert!(first.contains("\\move(1920,0,-96,0)"), "{first}");
        assert!(second.contains("\\move(1920,54,-96,54)"), "{second}");
        assert!(later.contains("\\move(1920,0,"), "{later}");
    }

    #[test]
    fn a_text_cannot_give_commands() {
        let style = Style { color: 0xFF_80_00, mode: Mode::Top, size: Size::Small };

        let line = Rows::default().line(3_723_450, style, "{\\an5}\\Nx");

        assert!(line.contains("0,1:02:03.45,"), "{line}");
        assert!(line.ends_with("\\fs36\\c&H0080FF&}｛＼an5｝＼Nx\n"), "{line}");
    }
}
