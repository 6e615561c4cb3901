//! The auth service: draws the epochs, publishes their public facts on `control`, and hands each
//! node the keys it may hold, over authenticated HTTPS. Operators tell it which policies hold.
//!
//! It verifies nobody's token and is on no viewer's path: links hold keys for six epochs ahead, so
//! logins survive an hour without it. Several run at a time; one draws, all answer.

mod config;
mod epochs;
mod keys;
mod lead;
mod masters;
mod node;
mod operate;
mod operators;
mod service;
mod site;
pub mod state;

pub use config::Config;
pub use masters::MastersFile;
pub use service::{Parts, Service};
