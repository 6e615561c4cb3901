//! bus.
