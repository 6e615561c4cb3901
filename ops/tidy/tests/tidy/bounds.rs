//! Nothing without a bound, nothing unfinished, no test that does not run.

use crate::nothing_wrong;
use crate::tree::{Source, sources};

const FORBIDDEN: &[(&str, &str)] = &[
    ("unbounded_channel", "every queue has a bound"),
    ("UnboundedSender", "every queue has a bound"),
    ("todo!", "nothing is left unfinished"),
    ("unimplemented!", "nothing is left unfinished"),
    ("#[ignore", "a test that does not run is no test"),
];

fn complaints(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|it| !it.is_generated() && !it.is_tidy()) {
        for (line, code) in source.code() {
            let found = FORBIDDEN.iter().filter(|(what, _)| code.contains(what));
            complaints.extend(
                found.map(|(what, why)| format!("{}:{line} has {what}: {why}", source.path)),
            );
        }
    }
    complaints
}

#[test]
fn nothing_is_unbounded_unfinished_or_ignored() {
    nothing_wrong(&complaints(&sources()));
}

#[test]
fn what_is_forbidden_is_noticed() {
    let sources = [
        Source::sample("a.rs", "fn a() {\n    todo!()\n}\n// todo! is a comment\n"),
        Source::sample("b.rs", "#[ignore = \"slow\"]\n"),
    ];

    let complaints = complaints(&sources);

    let expected = [
        "a.rs:2 has todo!: nothing is left unfinished",
        "b.rs:1 has #[ignore: a test that does not run is no test",
    ];
    assert_eq!(complaints, expected);
}
