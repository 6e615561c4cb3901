//! A text's length is the same here and in a browser: a table of texts of all scripts holds both
//! sides to the same numbers.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::process::{Command, Stdio};

use chatserver_core::shape;
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// As browsers do it.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/graphemes.mjs");
/// Texts that are made of those of the table, two and three in a row.
const JOINED: usize = 5_000;

/// The file.
#[derive(Deserialize)]
struct Table {
    /// The version of Unicode that the lengths are by.
    unicode: String,
    texts: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    what: String,
    text: String,
    graphemes: usize,
    /// No comment may be so, whatever its length.
    #[serde(default)]
    refused: bool,
}

/// What the script says.
#[derive(Deserialize)]
struct Counted {
    unicode: String,
    lengths: Vec<usize>,
}

fn table() -> Table {
    serde_json::from_str(include_str!("graphemes.json")).unwrap()
}

/// A length as the pipeline counts it, also of what it refuses.
fn length(text: &str) -> usize {
    text.nfc().collect::<String>().graphemes(true).count()
}

fn browser(texts: &[String]) -> Counted {
    let mut node = Command::new("node")
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("node did not start: run ops/tools/install ({error})"));
    let input = serde_json::to_vec(texts).unwrap();
    node.stdin.take().unwrap().write_all(&input).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "node failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_pipeline_counts_what_the_table_says() {
    let Table { unicode, texts } = table();
    let (major, minor, _) = unicode_segmentation::UNICODE_VERSION;

    assert_eq!(unicode, format!("{major}.{minor}"), "look at every length again");
    for Row { what, text, graphemes, refused } in texts {
        assert_eq!(length(&text), graphemes, "{what}");
        let counted = shape::graphemes(&text).ok();
        assert_eq!(counted, (!refused).then_some(graphemes), "{what}");
    }
}

#[test]
fn a_browser_counts_what_the_table_says() {
    let rows = table().texts;
    let texts: Vec<String> = rows.iter().map(|it| it.text.clone()).collect();

    let Counted { unicode, lengths } = browser(&texts);

    for (row, length) in rows.iter().zip(lengths) {
        assert_eq!(length, row.graphemes, "{}, by Unicode {unicode}", row.what);
    }
}

#[test]
fn a_browser_counts_texts_in_a_row_as_the_pipeline_does() {
    let rows = table().texts;
    let steps = [1, 7, 31];
    let joined = (0..JOINED).map(|no| {
        let parts = steps.iter().take(2 + no % 2);
        let parts = parts.map(|step| &*rows[(no * step + no / rows.len()) % rows.len()].text);
        parts.collect::<String>()
    });
    let joined: Vec<String> = joined.collect();

    let Counted { unicode, lengths } = browser(&joined);

    for (text, counted) in joined.iter().zip(lengths) {
        assert_eq!(counted, length(text), "{text:?}, by Unicode {unicode}");
    }
}
