//! kit.
