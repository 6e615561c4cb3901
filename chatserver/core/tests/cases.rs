//! The table of texts and the verdicts that a moderator would want.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use chatserver_core::judge::{self, Comment, History, Now, Rules};
use chatserver_core::repeats::{Echo, Past};
use chatserver_core::text::{self, Shown, Taste};
use chatserver_core::words::{Scanner, Word, Words};
use proto::control::{Action, RoomSettings};
use proto::item::Role;
use proto::time::Mono;

/// Fewer rows would show too little.
const ROWS_MIN: usize = 300;

struct Table<'a> {
    words: Words,
    /// Line, verdict, text.
    rows: Vec<(usize, &'a str, String)>,
}

#[test]
fn every_text_gets_the_verdict_that_a_moderator_would_want() {
    let table = read(include_str!("cases.tsv"));
    let mut scanner = Scanner::default();

    let wrong: Vec<String> = table
        .rows
        .iter()
        .filter_map(|(line, wanted, text)| {
            let got = verdict(&mut scanner, &table.words, text);
            (got != *wanted).then(|| format!("line {line}: {text:?} is {got}, not {wanted}"))
        })
        .collect();

    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(table.rows.len() >= ROWS_MIN);
    let texts: BTreeSet<&String> = table.rows.iter().map(|it| &it.2).collect();
    assert_eq!(texts.len(), table.rows.len(), "a text stands in the table twice");
}

fn verdict(scanner: &mut Scanner, words: &Words, text: &str) -> String {
    let settings = RoomSettings { graphemes_max: 40, ..RoomSettings::default() };
    let comment = Comment { text, role: Role::Viewer, may_send: true };
    let rules = Some(Rules { open: true, settings: &settings });
    let (past, echo) = (Past::default(), Echo::default());
    let taste = Taste { settings: &settings, lists: &[words], past: &past, echo: &echo };
    let judged = judge::judge(comment, &History::default(), rules, Now::default())
        .and_then(|()| text::judge(scanner, text, comment.role, taste, Mono(0)));
    match judged {
        Ok((Shown::Plain, _)) => "ok".to_owned(),
        Ok((Shown::Masked(masked), _)) => format!("mask={masked}"),
        Ok((Shown::Shadowed, _)) => "shadow".to_owned(),
        Ok((Shown::Held(_), _)) => "review".to_owned(),
        Err(refusal) => refusal.reason.name().to_owned(),
    }
}

fn read(table: &str) -> Table<'_> {
    let (mut list, mut rows) = (Vec::new(), Vec::new());
    for (no, line) in table.lines().enumerate() {
        if let Some(words) = line.strip_prefix("list ") {
            let mut words = words.split(' ');
            let action: Action = serde_json::from_value(words.next().unwrap().into()).unwrap();
            list.extend(words.map(|it| Word { text: it.to_owned(), action }));
        } else if !line.is_empty() && !line.starts_with("# ") {
            let mut cells = line.split('\t');
            let (wanted, text) = (cells.next().unwrap(), cells.next().unwrap());
            rows.push((no + 1, wanted, unescape(text)));
        }
    }
    Table { words: Words::compile(&list).unwrap(), rows }
}

fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        plain.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        plain.push_str(rest);
    }
    plain
}
