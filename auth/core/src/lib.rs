//! Who may speak, decided: tickets, epochs, keys and tokens. No I/O, no clock, no randomness.
#![deny(missing_docs)]

pub mod app;
pub mod node;
pub mod secret;
