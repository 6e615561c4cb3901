//! The configuration reference is committed; `ops/check` compares it with what the command prints.

use crate::tree;

const REFERENCE: &str = "ops/deploy/barrage.reference.toml";

#[test]
fn the_configuration_reference_exists_and_is_toml() {
    let reference = tree::read(REFERENCE);

    let parsed = reference.parse::<toml::Table>();

    assert!(parsed.is_ok(), "{REFERENCE}: {parsed:?}");
}
