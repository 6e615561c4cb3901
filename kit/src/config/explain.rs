//! Says what is wrong with a configuration, where it stands, and what to do.

use figment::error::{Actual, Error, Kind};

use super::Source;

/// Edits within which a known name is offered for an unknown one.
const EDITS_MAX: usize = 3;

/// One line about one error.
pub(super) fn explain(error: &Error, sources: &[Source]) -> String {
    let mut path: Vec<&str> = error.path.iter().map(String::as_str).collect();
    let unknown = if let Kind::UnknownField(field, known) = &error.kind {
        Some((field.as_str(), *known))
    } else {
        None
    };
    if let Some((field, _)) = unknown
        && path.last() != Some(&field)
    {
        path.push(field);
    }
    let key = path.join(".");
    let place =
        sources.iter().rev().find(|it| it.sets(&path)).map_or("the defaults", |it| &it.name);
    match unknown {
        Some((field, known)) => {
            let near = nearest(field, known)
                .map_or_else(|| ".".to_owned(), |name| format!(": did you mean `{name}`?"));
            let known = known.join(", ");
            format!("unknown key `{key}` in {place}{near} Remove it, or use one of: {known}")
        }
        None => format!("`{key}` in {place}: {}", reason(&error.kind)),
    }
}

/// Texts are not repeated, since one of them may be a secret.
#[expect(clippy::wildcard_enum_match_arm, reason = "figment words the other kinds well")]
fn reason(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(Actual::Unsigned(_) | Actual::Signed(_) | Actual::Float(_), expected)
            if expected.contains("string") =>
        {
            format!(
                "found a number, expected {expected}; put it in double quotes to make it a text"
            )
        }
        Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
            format!("found {}, expected {expected}", found(actual))
        }
        _ => kind.to_string(),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other kind comes from TOML")]
fn found(actual: &Actual) -> String {
    match actual {
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Bool(truth) => truth.to_string(),
        Actual::Seq => "a list".to_owned(),
        Actual::Map => "a table".to_owned(),
        _ => "a text".to_owned(),
    }
}

fn nearest<'a>(field: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|&name| (edits(field, name), name)).min()?;
    (near.0 <= EDITS_MAX.min(field.len() / 2)).then_some(near.1)
}

/// Levenshtein distance: insertions, removals and replacements of characters.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_count_single_changes() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("same", "same"), 0);
    }

    #[test]
    fn a_name_far_from_all_gets_no_offer() {
        assert_eq!(nearest("colour", &["name", "link"]), None);
        assert_eq!(nearest("lnik", &["name", "link"]), Some("link"));
    }
}
