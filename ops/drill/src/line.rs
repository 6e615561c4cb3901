//! What a run came to: one JSON line, and whether all was well.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use stack::crowd::Summary;

/// A run's figures and what it found wrong.
///
/// As JSON: `{"name", "ok", "seed", "failures": […] if there are any, and the figures}`.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    name: &'static str,
    ok: bool,
    seed: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Value>,
}

impl Line {
    /// A run with nothing wrong yet.
    #[must_use]
    pub const fn new(name: &'static str, seed: u64) -> Self {
        Self { name, ok: true, seed, failures: Vec::new(), figures: BTreeMap::new() }
    }

    /// Whether nothing was wrong.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        self.ok
    }

    /// The seed of everything drawn in the run.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// A number worth knowing; its name has its unit.
    pub fn figure(&mut self, name: &'static str, value: impl Into<Value>) {
        self.figures.insert(name, value.into());
    }

    /// A promise; `failure` says in words how it was broken.
    pub fn check(&mut self, holds: bool, failure: impl FnOnce() -> String) {
        if !holds {
            self.fail(failure());
        }
    }

    /// A promise that was broken, in words.
    pub fn fail(&mut self, failure: String) {
        self.ok = false;
        self.failures.push(failure);
    }

    /// The audit of a crowd: its figures, and each of its faults as a failure.
    pub fn audit(&mut self, summary: &Summary) {
        self.failures.extend(summary.faults());
        self.ok = self.failures.is_empty();
        self.figure("sent", summary.sent);
        self.figure("admitted", summary.admitted);
        self.figure("refused", serde_json::json!(summary.refused));
        self.figure("shed", serde_json::json!(summary.shed));
        self.figure("received", serde_json::json!(summary.received));
        self.figure("latency_ms", serde_json::json!(summary.latency_ms));
    }

    /// Prints the line.
    #[expect(clippy::print_stdout, reason = "the output of a command")]
    pub fn print(&self) {
        println!("{}", serde_json::to_string(self).unwrap_or_default());
    }
}

/// Tells people how far a run is, on standard error.
#[expect(clippy::print_stderr, reason = "progress, for people at a terminal")]
pub fn progress(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_line_has_its_figures_and_no_failures() {
        let mut line = Line::new("storm", 7);
        line.figure("back_ms", 120);
        line.check(true, || "never said".to_owned());

        let text = serde_json::to_string(&line).unwrap();

        assert_eq!(text, r#"{"name":"storm","ok":true,"seed":7,"back_ms":120}"#);
    }

    #[test]
    fn a_broken_promise_is_told_in_words() {
        let mut line = Line::new("storm", 7);
        line.check(false, || "3 viewers did not come back".to_owned());

        let text = serde_json::to_string(&line).unwrap();

        assert!(!line.is_ok());
        let expected =
            r#"{"name":"storm","ok":false,"seed":7,"failures":["3 viewers did not come back"]}"#;
        assert_eq!(text, expected);
    }
}
