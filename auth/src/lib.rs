//! The auth service: draws the epochs, publishes their public facts on `control`, and hands each
//! node the keys it may hold, over authenticated HTTPS.
//!
//! It verifies nobody's token and is on no viewer's path: links hold keys for six epochs ahead, so
//! logins survive an hour without it.

mod config;
mod epochs;
mod keys;
mod masters;
mod node;
mod service;

pub use config::Config;
pub use service::{Parts, Service};
