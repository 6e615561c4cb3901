//! Structure as tests: `cargo tidy` runs `ops/tidy/tests/tidy`. There is nothing to import.
