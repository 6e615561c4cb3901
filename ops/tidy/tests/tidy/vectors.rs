//! Golden vectors come in pairs, and each is read by a test.

use std::collections::BTreeSet;

use crate::nothing_wrong;
use crate::tree::{files, read, sources};

/// The test that walks the folder and reads every pair but tokens, which the codec does not know.
const WALKER: &str = "proto/tests/golden/vector.rs";
const FOLDER: &str = "proto/vectors/";

#[test]
fn every_vector_is_a_pair_that_a_test_reads() {
    assert!(read(WALKER).contains("read_dir"), "{WALKER} does not walk the folder any more");
    let names: BTreeSet<String> =
        files(FOLDER).iter().filter_map(|it| Some(it.strip_prefix(FOLDER)?.to_owned())).collect();
    let tests: Vec<_> = sources().into_iter().filter(|it| it.path.contains("/tests/")).collect();
    let mut complaints = Vec::new();
    for name in &names {
        let Some((stem, other)) = name
            .strip_suffix(".json")
            .map(|it| (it, format!("{it}.bin")))
            .or_else(|| name.strip_suffix(".bin").map(|it| (it, format!("{it}.json"))))
        else {
            complaints.push(format!("{name} is neither bytes nor their description"));
            continue;
        };
        if !names.contains(&other) {
            complaints.push(format!("{name} has no {other}"));
        }
        let quoted = format!("\"{stem}\"");
        let is_named = || tests.iter().any(|it| it.text.contains(&quoted));
        if is_token(stem) && !is_named() {
            complaints.push(format!("no test names {stem}"));
        }
    }

    nothing_wrong(&complaints);
}

fn is_token(stem: &str) -> bool {
    let description: serde_json::Value =
        serde_json::from_str(&read(&format!("{FOLDER}{stem}.json")))
            .unwrap_or_else(|why| panic!("{stem}.json: {why}"));
    description["type"] == "Token"
}
