//! ARCHITECTURE.md tells the truth about what exists, and every package keeps the lints.

use crate::workspace::{Package, packages};
use crate::{nothing_wrong, tree};

const PAGE: &str = "ARCHITECTURE.md";

/// The spans in backticks, code blocks left out.
fn spans(page: &str) -> Vec<&str> {
    let prose = page.split("```").step_by(2);
    prose.flat_map(|it| it.split('`').skip(1).step_by(2)).collect()
}

/// Whether a span looks like a path of this repository: a slash inside, and nothing but letters,
/// digits and `._-/`. Routes begin with a slash, topics and patterns have braces.
fn is_path(span: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || "._-/".contains(it);
    span.contains('/') && !span.starts_with('/') && span.chars().all(plain)
}

fn missing_paths(page: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let missing = spans(page).into_iter().filter(|it| is_path(it) && !exists(it));
    missing.map(|it| format!("{PAGE} names {it}, which does not exist")).collect()
}

/// A package's paragraph begins with its name, and names its folder where that is another word.
fn missing_paragraphs(page: &str, packages: &[Package]) -> Vec<String> {
    let has_paragraph = |package: &Package| {
        let name = format!("`{}`", package.name);
        let folder = format!("`{}`", package.folder);
        page.lines().any(|it| {
            it.starts_with(&name) && (package.name == package.folder || it.contains(&folder))
        })
    };
    let missing = packages.iter().filter(|it| !has_paragraph(it));
    missing.map(|it| format!("{PAGE} has no paragraph for {} ({})", it.name, it.folder)).collect()
}

fn keeps_lints(manifest: &str) -> bool {
    let manifest: toml::Table = manifest.parse().expect("cargo has read this manifest");
    let lints = manifest.get("lints").and_then(|it| it.get("workspace"));
    lints.and_then(toml::Value::as_bool) == Some(true)
}

#[test]
fn every_path_in_the_architecture_page_exists() {
    let page = tree::read(PAGE);

    nothing_wrong(&missing_paths(&page, |it| tree::root().join(it).exists()));
}

#[test]
fn every_package_has_a_paragraph_in_the_architecture_page() {
    nothing_wrong(&missing_paragraphs(&tree::read(PAGE), &packages()));
}

#[test]
fn every_package_keeps_the_lints_of_the_workspace() {
    let manifest = |it: &Package| tree::read(&format!("{}/Cargo.toml", it.folder));
    let wrong = packages().into_iter().filter(|it| !keeps_lints(&manifest(it)));
    let complaints: Vec<String> =
        wrong.map(|it| format!("{} lacks `lints.workspace = true`", it.name)).collect();

    nothing_wrong(&complaints);
}

#[test]
fn a_path_that_is_gone_and_a_missing_paragraph_are_noticed() {
    let page = "`a/b.rs` and `c/d.rs`, `/readyz`, `x/{y}`, `POST /v1`\n\n`kit` (`kit`) is.\n";
    let package = |name: &str, folder: &str| Package {
        name: name.to_owned(),
        folder: folder.to_owned(),
        imports: [].into(),
        outside: [].into(),
        named: [].into(),
    };

    let paths = missing_paths(page, |it| it == "a/b.rs");
    let paragraphs = missing_paragraphs(page, &[package("kit", "kit"), package("bus", "p/bus")]);

    assert_eq!(paths, ["ARCHITECTURE.md names c/d.rs, which does not exist"]);
    assert_eq!(paragraphs, ["ARCHITECTURE.md has no paragraph for bus (p/bus)"]);
}

#[test]
fn lints_must_be_the_workspace_s() {
    assert!(keeps_lints("[lints]\nworkspace = true\n"));
    assert!(!keeps_lints("[lints.rust]\nunsafe_code = \"allow\"\n"));
    assert!(!keeps_lints("[package]\nname = \"a\"\n"));
}
