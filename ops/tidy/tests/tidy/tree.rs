//! The files of the repository, as text.

use std::fs;
use std::path::{Path, PathBuf};

/// A Rust source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// From the root of the repository, with slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// One that a rule can be tried on.
    pub(crate) fn sample(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The lines, numbered from 1, without what stands behind `//`.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().map(|it| it.split_once("//").map_or(it, |(code, _)| code));
        (1..).zip(lines)
    }

    pub(crate) fn is_generated(&self) -> bool {
        self.path.contains("/generated/")
    }

    /// Whether it is this package, which names what it forbids.
    pub(crate) fn is_tidy(&self) -> bool {
        self.path.starts_with("ops/tidy/")
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("the package lies two folders below the root").to_owned()
}

/// A file's text, by its path from the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// Every Rust source, sorted by path.
pub(crate) fn sources() -> Vec<Source> {
    let paths = files("").into_iter().filter(|it| it.ends_with(".rs"));
    paths.map(|path| Source { text: read(&path), path }).collect()
}

/// The paths of all files below a folder, sorted; build output and hidden folders left out.
pub(crate) fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    let mut paths: Vec<String> = found
        .iter()
        .map(|it| it.strip_prefix(root()).unwrap_or(it).to_string_lossy().replace('\\', "/"))
        .collect();
    paths.sort();
    paths
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder was opened").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Whether `word` stands in `text` as a whole word.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[test]
fn a_word_is_found_only_as_a_whole() {
    assert!(has_word("use redis::Client;", "redis"));
    assert!(!has_word("use rediska::Client; let redis_url;", "redis"));
}

#[test]
fn code_is_what_stands_before_two_slashes() {
    let source = Source::sample("a.rs", "// one\nlet a = 1; // two\n");

    let code: Vec<_> = source.code().collect();

    assert_eq!(code, [(1, ""), (2, "let a = 1; ")]);
}
