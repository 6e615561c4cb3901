//! Files of a size that one can hold in one's head, each of which says what it is for.

use std::cmp::Reverse;

use crate::nothing_wrong;
use crate::tree::{Source, sources};

/// How many are printed.
const LONGEST: usize = 10;
/// Lines of one file, tests included; generated ones have as many as they have.
const LINES_MAX: usize = 400;

fn without_purpose(sources: &[Source]) -> Vec<String> {
    let wrong = sources.iter().filter(|it| !it.is_generated() && !it.text.starts_with("//! "));
    wrong.map(|it| format!("{} does not begin with `//!`", it.path)).collect()
}

/// Files of more than [`LINES_MAX`] lines.
fn too_long(sources: &[Source]) -> Vec<String> {
    let written = sources.iter().filter(|it| !it.is_generated());
    let lengths = written.map(|it| (&it.path, it.text.lines().count()));
    let wrong = lengths.filter(|(_, lines)| *lines > LINES_MAX);
    wrong.map(|(path, lines)| format!("{path} has {lines} lines: {LINES_MAX} at most")).collect()
}

/// Name and lines of each function. Formatted code closes a function at its own indentation.
fn functions(source: &Source) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indentation = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indentation}}}");
        if let Some(length) = lines[at..].iter().position(|it| *it == end) {
            functions.push((format!("{}:{} {name}", source.path, at + 1), length + 1));
        }
    }
    functions
}

/// The name of the function that begins in this line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualified = before.split_whitespace().all(|it| {
        it.starts_with("pub") || it.starts_with("in") || it.ends_with(')') || {
            ["async", "const", "unsafe", "extern", "\"C\""].contains(&it)
        }
    });
    let name = after.split(['(', '<']).next()?;
    let plain = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_');
    (qualified && plain && !line.trim_end().ends_with([';', '}'])).then_some(name)
}

fn longest(what: &str, mut lengths: Vec<(String, usize)>) -> String {
    lengths.sort_by_key(|(_, lines)| Reverse(*lines));
    let lines = lengths.iter().take(LONGEST).map(|(name, lines)| format!("{lines:6}  {name}\n"));
    format!("longest {what}:\n{}", lines.collect::<String>())
}

#[test]
fn every_file_says_what_it_is_for() {
    let sources = sources();
    let written = || sources.iter().filter(|it| !it.is_generated());
    let files = written().map(|it| (it.path.clone(), it.text.lines().count()));
    println!("{}", longest("files", files.collect()));
    println!("{}", longest("functions", written().flat_map(functions).collect()));

    nothing_wrong(&without_purpose(&sources));
}

#[test]
fn a_file_without_a_purpose_is_noticed() {
    let sources = [
        Source::sample("a.rs", "//! What it is for.\n"),
        Source::sample("b.rs", "use std::fmt;\n"),
        Source::sample("proto/src/generated/c.rs", "// generated\n"),
    ];

    assert_eq!(without_purpose(&sources), ["b.rs does not begin with `//!`"]);
}

#[test]
fn a_function_is_measured_to_its_closing_brace() {
    let text = "pub(in crate::a) async fn one(\n    a: u8,\n) {\n    if a {\n    }\n}\n\nimpl B {\n    fn two() {\n    }\n}\n";

    let functions = functions(&Source::sample("a.rs", text));

    assert_eq!(functions, [("a.rs:1 one".to_owned(), 6), ("a.rs:9 two".to_owned(), 2)]);
}

#[test]
fn every_file_has_at_most_400_lines() {
    nothing_wrong(&too_long(&sources()));
}

#[test]
fn a_file_that_is_too_long_is_found() {
    let lines = |lines| Source::sample("link/src/pump.rs", &"//! x\n".repeat(lines));

    assert!(too_long(&[lines(LINES_MAX)]).is_empty());
    assert_eq!(too_long(&[lines(LINES_MAX + 1)]), ["link/src/pump.rs has 401 lines: 400 at most"]);
    assert!(
        too_long(&[Source::sample("proto/src/generated/wire.rs", &"x\n".repeat(500))]).is_empty()
    );
}
