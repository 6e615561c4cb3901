//! broadcaster.
