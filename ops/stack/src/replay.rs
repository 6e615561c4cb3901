//! Recorded comments from files: Bilibili XML and `{text,time,color}` JSON.
//!
//! Files are read as a stream of records; a damaged record is skipped and counted, the rest is
//! kept. Files are often not in the order of time, so a [`Script`] holds and sorts all of one.

mod bilibili;
mod json;
mod split;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use proto::item::Style;

use split::{Dialect, Splitter};

/// Comments of one file: about 100 bytes each, so a full script needs 100 MB.
pub const COMMENTS_MAX: usize = 1_000_000;

/// One recorded comment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Comment {
    /// Position in the picture.
    pub media_ms: u64,
    /// The text.
    pub text: String,
    /// How it looks.
    pub style: Style,
}

/// A record that holds no comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Damaged;

/// All comments of a file, by time.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Script {
    /// The comments, `media_ms` rising; equal times in the file's order.
    pub comments: Vec<Comment>,
    /// Records that were skipped.
    pub damaged: u64,
}

impl Script {
    /// Reads a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::read(BufReader::new(File::open(path)?))
    }

    /// Reads a stream; the first character that is no space tells JSON from XML.
    pub fn read(source: impl Read) -> io::Result<Self> {
        let mut splitter = Splitter::new(source);
        let parse = match splitter.dialect()? {
            Dialect::Json => json::parse,
            Dialect::Xml => bilibili::parse,
        };
        let mut script = Self::default();
        while let Some(record) = splitter.next_record()? {
            match record.and_then(|it| parse(&it)) {
                Ok(_) if script.comments.len() == COMMENTS_MAX => {
                    let reason = format!("the file holds more than {COMMENTS_MAX} comments");
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
                }
                Ok(comment) => script.comments.push(comment),
                Err(Damaged) => script.damaged += 1,
            }
        }
        script.comments.sort_by_key(|it| it.media_ms);
        Ok(script)
    }

    /// Position of the last comment.
    #[must_use]
    pub fn length_ms(&self) -> u64 {
        self.comments.last().map_or(0, |it| it.media_ms)
    }
}

/// Seconds in a file to milliseconds; a file may say nonsense.
fn media_ms(seconds: f64) -> Result<u64, Damaged> {
    const DAYS_30_S: f64 = 30.0 * 86_400.0;
    if !(0.0..=DAYS_30_S).contains(&seconds) {
        return Err(Damaged);
    }
    Ok(std::time::Duration::from_secs_f64(seconds).as_millis().try_into().unwrap_or(u64::MAX))
}

/// A comment is one line: `/n`, which Bilibili writes for a line break, and breaks become spaces.
fn one_line(text: &str) -> String {
    text.replace("/n", "\n").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proto::item::{Mode, Size};

    use super::*;

    const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?><i><chatserver>x</chatserver>
        <d p="12.5,1,25,16777215,1307940958,0,abc,1">second &amp; &#x597D;</d>
        <d p="3,5,18,255,1307940958,0,abc,2,10">first/n</d>
        <d p="20,7,25,16777215,1307940958,0,abc,3">["1","2","0-1","4","placed","0"]</d>
        </i>"#;

    fn read(text: &str) -> Script {
        Script::read(text.as_bytes()).unwrap()
    }

    fn texts(script: &Script) -> Vec<&str> {
        script.comments.iter().map(|it| it.text.as_str()).collect()
    }

    #[test]
    fn xml_is_read_and_sorted_by_time() {
        let script = read(XML);

        assert_eq!(texts(&script), ["first", "second & 好", "placed"]);
        assert_eq!(script.damaged, 0);
        assert_eq!(script.comments[0].media_ms, 3000);
        assert_eq!(
            script.comments[0].style,
            Style { color: 255, mode: Mode::Top, size: Size::Small }
        );
        assert_eq!(script.length_ms(), 20_000);
    }

    #[test]
    fn an_unclosed_comment_is_skipped_alone() {
        let script = read(concat!(
            "<i>\n<d p=\"1,1,25,255,1,0,a,1\">one</d>\n<d p=\"2,1,25,255,1,0,a,2\">two\n",
            "<d p=\"3,1,25,255,1,0,a,3\">three</d>\n</i>",
        ));

        assert_eq!(texts(&script), ["one", "three"]);
        assert_eq!(script.damaged, 1);
    }

    #[test]
    fn a_damaged_attribute_is_skipped_alone() {
        let script = read(concat!(
            "<i><d p=\"1,1,25,255,1,0,a,1\"[4]one</d><d p=\"x,1,25,255,1\">two</d>",
            "<d p=\"1,1\">three</d><d>four</d><d p=\"5,1,25,255,1\">five</d></i>",
        ));

        assert_eq!(texts(&script), ["five"]);
        assert_eq!(script.damaged, 4);
    }

    #[test]
    fn foreign_elements_are_damage() {
        let script = read("<img src=\"\" onerror=\"alert()\">\n<script>alert()</script>\n");

        assert!(script.comments.is_empty());
        assert_eq!(script.damaged, 2);
    }

    #[test]
    fn json_is_read_and_damaged_objects_are_skipped() {
        let script = read(
            r##"[{"text":"b","time":2.5,"color":"#FABE96"},{"text":5,"time":1},{"time":1},
               {"text":"a \"}{\" a","time":1,"mode":1},{"text":"c","time":-1}, {"text":"d","time":9}]"##,
        );

        assert_eq!(texts(&script), ["a \"}{\" a", "b", "d"]);
        assert_eq!(script.damaged, 3);
        assert_eq!(script.comments[1].style.color, 0x00FA_BE96);
    }

    #[test]
    fn a_cut_file_keeps_what_was_whole() {
        for length in 0..XML.len() {
            let script = Script::read(&XML.as_bytes()[..length]).unwrap();
            assert!(script.comments.len() <= 3 && script.damaged <= 1, "{length}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_damage_one_comment() {
        let mut bytes = b"<d p=\"1,1,25,255,1\">a\xff</d>".to_vec();
        bytes.extend_from_slice(b"<d p=\"1,1,25,255,1\">b</d>");

        let script = Script::read(&bytes[..]).unwrap();

        assert_eq!(texts(&script), ["b"]);
        assert_eq!(script.damaged, 1);
    }
}
