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
mod evidence;
mod flow;
mod hold;
mod keeper;
mod lately;
mod lists;
mod mail;
mod online;
mod outside;
mod outward;
mod quota;
mod review;
mod sealed;
mod service;
mod site;
pub mod store;
mod sweep;
mod upkeep;
mod uplink;
mod webhook;

pub use config::Config;
pub use evidence::{EvidenceConfig, Retention};
pub use outward::OutwardConfig;
pub use quota::QuotaConfig;
pub use review::ReviewConfig;
pub use service::{Parts, Service};
pub use webhook::WebhookConfig;
