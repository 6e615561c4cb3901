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
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    line: usize,
    wanted: &'a str,
    text: String,
    settings: RoomSettings,
    /// What the sender said before.
    said: &'a str,
}

#[test]
fn every_text_gets_the_verdict_that_a_moderator_would_want() {
    let table = read(include_str!("cases.tsv"));
    let mut scanner = Scanner::default();

    let wrong: Vec<String> = table
        .rows
        .iter()
        .filter_map(|row| {
            let got = verdict(&mut scanner, &table.words, row);
            let Row { line, wanted, text, .. } = row;
            (got != *wanted).then(|| format!("line {line}: {text:?} is {got}, not {wanted}"))
        })
        .collect();

    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(table.rows.len() >= ROWS_MIN);
    let texts: BTreeSet<&String> = table.rows.iter().map(|it| &it.text).collect();
    assert_eq!(texts.len(), table.rows.len(), "a text stands in the table twice");
}

fn verdict(scanner: &mut Scanner, words: &Words, row: &Row<'_>) -> String {
    let Row { text, settings, said, .. } = row;
    let comment = Comment { text, role: Role::Viewer, may_send: true };
    let rules = Some(Rules { open: true, settings });
    let (mut past, echo) = (Past::default(), Echo::default());
    if !said.is_empty() {
        let taste = Taste { settings, lists: &[], past: &past, echo: &echo };
        let before = text::judge(scanner, said, comment.role, taste, Mono(0));
        past.push(before.unwrap().1.unwrap(), Mono(0));
    }
    let taste = Taste { settings, lists: &[words], past: &past, echo: &echo };
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
    let mut settings = RoomSettings { graphemes_max: 40, ..RoomSettings::default() };
    let mut said = "";
    for (no, line) in table.lines().enumerate() {
        if let Some(words) = line.strip_prefix("list ") {
            let mut words = words.split(' ');
            let action: Action = serde_json::from_value(words.next().unwrap().into()).unwrap();
            list.extend(words.map(|it| Word { text: it.to_owned(), action }));
        } else if let Some(changes) = line.strip_prefix("set ") {
            settings = set(&settings, changes);
        } else if let Some(text) = line.strip_prefix("said") {
            said = text.trim();
        } else if !line.is_empty() && !line.starts_with("# ") {
            let mut cells = line.split('\t');
            let (wanted, text) = (cells.next().unwrap(), cells.next().unwrap());
            let (line, text, settings) = (no + 1, unescape(text), settings.clone());
            rows.push(Row { line, wanted, text, settings, said });
        }
    }
    Table { words: Words::compile(&list).unwrap(), rows }
}

fn set(settings: &RoomSettings, changes: &str) -> RoomSettings {
    let mut all = serde_json::to_value(settings).unwrap();
    for change in changes.split(' ') {
        let (name, value) = change.split_once('=').unwrap();
        all[name] = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    }
    serde_json::from_value(all).unwrap()
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
