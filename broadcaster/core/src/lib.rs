//! broadcaster-core.
