//! Every metric of the list is fed by the service it is named after, and listed once.

use std::collections::BTreeSet;

use crate::nothing_wrong;
use crate::tree::{Source, has_word, read, sources};

const LIST: &str = "kit/src/meter/list.rs";
const SERVICES: &[&str] = &["auth", "gslb", "link", "chatserver", "broadcaster"];

/// Constant and name of each metric: lines `CONST = Kind "name" [labels] "help";`.
fn metrics(list: &str) -> Vec<(&str, &str)> {
    list.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<(&str, &str)> {
    let (constant, rest) = line.trim().split_once(" = ")?;
    let shouting = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
    let name = rest.split('"').nth(1)?;
    (!constant.is_empty() && constant.chars().all(shouting)).then_some((constant, name))
}

fn complaints(list: &str, sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut seen = BTreeSet::new();
    for (constant, name) in metrics(list) {
        if !seen.insert(constant) {
            complaints.push(format!("{constant} is listed twice"));
        }
        if constant.to_ascii_lowercase() != name {
            complaints.push(format!("{constant} is called {name}"));
        }
        let service = name.split('_').next().unwrap_or_default();
        let is_place = |it: &&Source| {
            let own = !SERVICES.contains(&service) || it.path.starts_with(&format!("{service}/"));
            own && it.path != LIST && !it.is_tidy() && it.path.contains("/src/")
        };
        let is_fed = |it: &Source| it.code().any(|(_, line)| has_word(line, constant));
        if !sources.iter().filter(is_place).any(is_fed) {
            complaints.push(format!("{constant} is not fed"));
        }
    }
    complaints
}

#[test]
fn every_metric_is_listed_once_and_fed() {
    let list = read(LIST);
    assert!(metrics(&list).len() > 10, "the list has another form now");

    nothing_wrong(&complaints(&list, &sources()));
}

#[test]
fn a_metric_that_nobody_feeds_is_noticed() {
    let list = "LINK_A = Gauge \"link_a\" [] \"A.\";\nLINK_A = Gauge \"link_a\" [] \"A.\";\n\
                LINK_B = Counter \"link_c\" [\"x\"] \"B.\";\n";
    let sources = [
        Source::sample("link/src/a.rs", "meter.gauge(list::LINK_A)"),
        Source::sample("gslb/src/b.rs", "meter.counter(list::LINK_B)"),
    ];

    let complaints = complaints(list, &sources);

    let expected = ["LINK_A is listed twice", "LINK_B is called link_c", "LINK_B is not fed"];
    assert_eq!(complaints, expected);
}
