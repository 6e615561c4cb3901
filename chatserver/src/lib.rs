//! What a room lets through: viewers' comments from `uplink` to their verdicts, and the business
//! API for rooms, gifts, notices and moderation.
//!
//! The decisions are in `chatserver-core`; this package carries them between the bus, the room
//! store and HTTP.
#![deny(missing_docs)]

mod announce;
mod api;
mod config;
mod control;
mod count;
mod desk;
mod devices;
mod keeper;
mod lists;
mod mail;
mod online;
mod sealed;
mod service;
mod site;
pub mod store;
mod upkeep;
mod uplink;

pub use config::Config;
pub use service::{Parts, Service};
