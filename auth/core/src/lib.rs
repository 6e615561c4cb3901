//! Who may speak, decided: tickets, epochs, keys and tokens. No I/O, no clock, no randomness.
#![deny(missing_docs)]

pub mod app;
pub mod derive;
pub mod epochs;
pub mod keyring;
pub mod ledger;
pub mod mac;
pub mod node;
pub mod oracle;
pub mod policy;
pub mod replay;
pub mod resume;
pub mod revocation;
pub mod room_key;
pub mod sealed;
pub mod secret;
pub mod ticket;
pub mod token;

mod wire;

pub use derive::link_id;
