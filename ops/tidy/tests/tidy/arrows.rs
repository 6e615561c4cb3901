//! Who may import whom. Arrows only point down; dev-dependencies are not counted.

use crate::nothing_wrong;
use crate::workspace::{Package, packages};

const CORES: &[&str] =
    &["auth-core", "gslb-core", "link-core", "chatserver-core", "broadcaster-core", "sdk-core"];
const SERVICES: &[&str] = &["auth", "gslb", "link", "chatserver", "broadcaster"];

/// What a service may import besides its own core.
const BELOW_SERVICES: &[&str] = &["auth-core", "channel", "proto", "bus", "kit"];

/// What benches, drills and long runs may import besides the cores.
const MEASURING: &[&str] = &["stack", "sdk", "sim", "channel", "kit", "proto"];

/// What a package may import; `None` where it has no row.
fn row(name: &str) -> Option<Vec<&'static str>> {
    let own_core = |core| [&[core], BELOW_SERVICES].concat();
    Some(match name {
        "proto" | "tidy" => vec![],
        "kit" | "auth-core" | "broadcaster-core" | "sdk-core" => vec!["proto"],
        "link-core" | "gslb-core" | "chatserver-core" => vec!["proto", "auth-core"],
        "bus" | "channel" => vec!["proto", "kit"],
        "auth" => own_core("auth-core"),
        "gslb" => own_core("gslb-core"),
        "link" => own_core("link-core"),
        "chatserver" => own_core("chatserver-core"),
        "broadcaster" => own_core("broadcaster-core"),
        "sdk" => vec!["sdk-core", "channel", "proto", "kit"],
        "sim" => [CORES, &["proto"]].concat(),
        "stack" => [SERVICES, &["sdk", "auth-core", "channel", "bus", "kit", "proto"]].concat(),
        "bench" => [CORES, MEASURING, &["auth", "bus", "gslb"]].concat(),
        "drill" => [CORES, MEASURING].concat(),
        "soak" => [CORES, MEASURING, &["broadcaster", "bus", "drill"]].concat(),
        "barrage" => {
            let ops = ["stack", "sim", "bench", "drill", "soak", "sdk"];
            [CORES, SERVICES, BELOW_SERVICES, &ops].concat()
        }
        _ => return None,
    })
}

fn complaints(packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    for Package { name, imports, .. } in packages {
        let Some(allowed) = row(name) else {
            complaints.push(format!("{name} has no row in the table of arrows"));
            continue;
        };
        let wrong = imports.iter().filter(|it| !allowed.contains(&it.as_str()));
        complaints.extend(wrong.map(|it| format!("{name} may not import {it}")));
    }
    complaints
}

#[test]
fn every_arrow_points_down() {
    nothing_wrong(&complaints(&packages()));
}

#[test]
fn the_cores_know_no_runtime() {
    let pure = packages().into_iter().filter(|it| it.name == "proto" || it.name.ends_with("-core"));
    let complaints: Vec<String> = pure
        .filter(|it| it.named.iter().any(|it| it.starts_with("tokio")))
        .map(|it| format!("{} names tokio in its manifest", it.name))
        .collect();

    nothing_wrong(&complaints);
}

#[test]
fn an_arrow_up_and_a_package_without_a_row_are_noticed() {
    let package = |name: &str, import: &str| Package {
        name: name.to_owned(),
        folder: String::new(),
        imports: [import.to_owned()].into(),
        outside: [].into(),
        named: [].into(),
    };

    let complaints = complaints(&[package("kit", "link"), package("new", "proto")]);

    let expected = ["kit may not import link", "new has no row in the table of arrows"];
    assert_eq!(complaints, expected);
}
